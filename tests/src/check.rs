//! Collects the outcomes of one test: every wrong result is told, not only the first.
//!
//! Results are computed at the end of the test, not one by one. A device that compiles in
//! microseconds computes each in a plan of its own, so that every op is a kernel. On a device with
//! a compiler of its own (tens of milliseconds and more for the smallest kernel) results of one
//! shape are *tied*: one further result, whether any of them differs from zero, uses them all, and
//! the scheduler then makes one kernel that stores each; and everything is handed over as one
//! plan. Every result is still compared by itself. `ZYX_TIED=0` and `ZYX_TIED=1` choose one way
//! for all devices.

use crate::oracle::{Array, flush};
use std::cell::RefCell;
use std::fmt::Display;
use zyx_core::{BinaryOp, DType, Device, Result, Tensor};

/// Whether nothing is to be left out that takes long.
pub fn full() -> bool {
    std::env::var("ZYX_FULL").is_ok_and(|value| value == "1")
}

thread_local! {
    /// What this thread has compared, while somebody listens.
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// The names of all that `run` compares, without comparing it: a list of what a case covers that
/// is taken from the case as it runs.
pub fn heard(run: impl FnOnce()) -> Vec<String> {
    HEARD.set(Some(Vec::new()));
    run();
    HEARD.take().unwrap_or_default()
}

/// Whether somebody listens, who is told.
fn is_heard(what: &str) -> bool {
    HEARD.with_borrow_mut(|heard| heard.as_mut().map(|all| all.push(what.to_owned())).is_some())
}

/// A test under way on a device.
#[derive(Debug)]
pub struct Check<'a> {
    /// The device under test.
    pub device: &'a Device,
    /// What went wrong so far.
    failures: Vec<String>,
    checked: usize,
    /// Results that are not compared yet.
    pending: Vec<Pending>,
    sharing: Sharing,
}

/// What results have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// Nothing: each has a plan.
    Nothing,
    /// A plan.
    Plans,
    /// Plans, and a kernel where shapes are equal.
    Kernels,
}

/// A result to be compared.
#[derive(Debug)]
struct Pending {
    what: String,
    got: Tensor,
    want: Array,
    /// Whether signs of zeros count.
    signed: bool,
}

/// How many failures are printed in full.
const SHOWN: usize = 12;

/// Most results of one plan.
const PLAN: usize = 200;

/// Most results of one kernel.
const TIED: usize = 12;

/// Buffers that a result needs: itself and two operands.
const BUFFERS: usize = 3;

impl<'a> Check<'a> {
    /// A test on `device`.
    pub fn new(device: &'a Device) -> Check<'a> {
        flush::expect_of(device.caps());
        let tied = match std::env::var("ZYX_TIED").as_deref() {
            Ok("0") => false,
            Ok("1") => true,
            _ => device.caps().simt,
        };
        let sharing = if tied { Sharing::Kernels } else { Sharing::Nothing };
        Check { device, failures: Vec::new(), checked: 0, pending: Vec::new(), sharing }
    }

    /// The same test without ties, for results that no kernel can share: those of scans and
    /// scatters, which another kernel reads.
    #[must_use]
    pub fn untied(mut self) -> Check<'a> {
        if self.sharing == Sharing::Kernels {
            self.sharing = Sharing::Plans;
        }
        self
    }

    /// Whether a case that is about shapes and indices, not about values, tries all of them on
    /// this dtype. Where kernels are dear, one dtype of each width does: signed and unsigned, and
    /// computed in itself and in a wider one. Others try the shapes that differ in kind, all of
    /// them if `ZYX_FULL=1`.
    pub fn thorough(&self, dtype: DType) -> bool {
        let chosen = matches!(dtype, DType::U8 | DType::F16 | DType::F32 | DType::I64);
        chosen || self.sharing == Sharing::Nothing || full()
    }

    /// The dtypes whose elements the device can store.
    pub fn dtypes(&self) -> impl Iterator<Item = DType> + use<> {
        let stored = self.device.caps().storage;
        DType::ALL.iter().copied().filter(move |&dtype| stored.contains(dtype))
    }

    /// A tensor of an input's elements.
    ///
    /// # Panics
    /// When the device cannot hold it.
    pub fn input(&self, array: &Array) -> Tensor {
        array.tensor(self.device).expect("inputs fit the device")
    }

    /// Notes a failure.
    pub fn fail(&mut self, what: impl Display) {
        self.failures.push(what.to_string());
    }

    /// Notes a failure unless `holds`.
    pub fn that(&mut self, holds: bool, what: impl Display) {
        self.checked += 1;
        if !holds {
            self.fail(what);
        }
    }

    /// Compares with the expected elements; the sign of a zero does not matter.
    pub fn equal(&mut self, what: impl Display, got: Result<Tensor>, want: &Array) {
        self.compare(what, got, want, false);
    }

    /// Compares with the expected elements, signs of zeros included.
    pub fn identical(&mut self, what: impl Display, got: Result<Tensor>, want: &Array) {
        self.compare(what, got, want, true);
    }

    fn compare(&mut self, what: impl Display, got: Result<Tensor>, want: &Array, signed: bool) {
        self.checked += 1;
        let (what, want) = (what.to_string(), want.clone());
        match got {
            Err(error) if self.lacks(&error.to_string()) => {}
            Err(error) => self.fail(format!("{what}: {error}")),
            Ok(_) if is_heard(&what) => {}
            Ok(got) => self.pending.push(Pending { what, got, want, signed }),
        }
        if self.pending.len() >= PLAN {
            self.settle();
        }
    }

    /// Computes and compares what was asked for so far.
    pub fn settle(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        if self.sharing == Sharing::Kernels {
            pending.extend(ties(&pending, self.device));
        }
        if self.sharing != Sharing::Nothing {
            let all: Vec<&Tensor> = pending.iter().map(|p| &p.got).collect();
            // Should that fail, each is computed alone below and tells why.
            let _ = Tensor::realize_all(all);
        }
        for Pending { what, got, want, signed } in pending {
            match Array::read(&got) {
                Err(error) if self.lacks(&error.to_string()) => {}
                Err(error) => self.fail(format!("{what}: {error}")),
                Ok(got) => {
                    if let Some(wrong) = want.mismatch(&got, signed) {
                        self.fail(format!("{what}: {wrong}"));
                    }
                }
            }
        }
    }

    /// Whether an error says that the device has no elements of a dtype, and that is so. Only
    /// `f64` may be missing, the one dtype that nothing else can stand in for.
    fn lacks(&self, error: &str) -> bool {
        let missing = !self.device.caps().storage.contains(DType::F64);
        missing && error.contains("no ") && error.contains(DType::F64.name())
    }

    /// Asks for an error whose text has all of `parts`.
    pub fn refused<T>(&mut self, what: impl Display, got: Result<T>, parts: &[&str]) {
        self.checked += 1;
        match got {
            Ok(_) => self.fail(format!("{what}: accepted where an error is due")),
            Err(error) => {
                let text = error.to_string();
                if let Some(part) = parts.iter().find(|part| !text.contains(**part)) {
                    self.fail(format!("{what}: the error `{text}` does not name `{part}`"));
                }
            }
        }
    }

    /// Ends the test.
    ///
    /// # Panics
    /// When something went wrong, or nothing was checked.
    pub fn finish(mut self) {
        self.settle();
        assert!(self.checked > 0, "the test checked nothing");
        let n = self.failures.len();
        let shown = self.failures.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n  ");
        assert!(n == 0, "on {}: {n} of {} checks failed:\n  {shown}", self.device, self.checked);
    }
}

/// For each group of results of one shape, whether any of them differs from zero.
fn ties(results: &[Pending], device: &Device) -> Vec<Pending> {
    let most = (device.caps().max_buffers.saturating_sub(1) / BUFFERS).clamp(1, TIED);
    let mut groups: Vec<Vec<&Pending>> = Vec::new();
    for result in results {
        let dims = result.got.shape().dims();
        if dims != result.want.dims || dims.contains(&0) || result.got.is_realized() {
            continue;
        }
        let open =
            |group: &&mut Vec<&Pending>| group.len() < most && group[0].got.shape().dims() == dims;
        match groups.iter_mut().find(open) {
            Some(group) => group.push(result),
            None => groups.push(vec![result]),
        }
    }
    groups.iter().filter(|group| group.len() > 1).filter_map(|group| tie(group)).collect()
}

/// Whether any of some results of one shape differs from zero.
fn tie(group: &[&Pending]) -> Option<Pending> {
    let (mut got, mut want) = (None::<Tensor>, None::<Array>);
    for Pending { got: result, want: expected, .. } in group {
        let (a, x) = (result.cast(DType::Bool), expected.cast(DType::Bool));
        got = Some(got.map_or(Ok(a.clone()), |got| got.bitwise_or(&a)).ok()?);
        want = Some(want.map_or(x.clone(), |want| want.binary(BinaryOp::Or, &x)));
    }
    let names: Vec<&str> = group.iter().map(|p| p.what.as_str()).collect();
    let what = format!("a kernel that computes {}", names.join("; "));
    Some(Pending { what, got: got?, want: want?, signed: false })
}
