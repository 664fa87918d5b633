//! From what was recorded to a kernel.
//!
//! Storage that groups share is declared where groups begin, barriers that are not needed go, and accesses whose coordinates
//! are not shown to be inside get guards. Where a driver ends loops of many iterations without a word, threads notice it and tell
//! ([`Role::Cut`](super::Role)).

use super::{Lang, LangError, Place, Recorded, Site, State};
use crate::dtype::DType;
use crate::ir::{Builder, Kernel, LoopKind, Op, Ranges, Space, Type, Value, VerifyError, verify};
use crate::ops::{BinaryOp, UnaryOp};
use crate::passes::dce;
use crate::scalar::Scalar;

pub(super) fn finish(lang: &Lang) -> Result<Recorded, LangError> {
    let (name, state) = (lang.name.to_string(), lang.end());
    if let Some(error) = state.error {
        return Err(error);
    }
    let State { b, scalars, sizes, spaces, arguments, parameters, looks_back, .. } = state;
    let (places, lines, sites, unneeded) = (state.places, state.lines, state.sites, state.unneeded);
    let raw = b.finish();
    let placed =
        Placed { raw: &raw, places: &places, unneeded: &unneeded, lines: &lines, cut: state.cut };
    let (checked, checked_lines) = placed.kernel(Outside::Told);
    let site = |lines: &[u32], value: Value| -> Site {
        let line = lines.get(value.idx()).copied().unwrap_or(0);
        let none = || Site { file: "unknown".into(), line: 0 };
        sites.get(line as usize).cloned().unwrap_or_else(none)
    };
    let wrong = |lines: &[u32], error: VerifyError| LangError {
        kernel: name.clone(),
        reason: format!("{}: `{}`: {:?}", error.reason, error.op, error.rule),
        site: site(lines, error.value),
    };
    verify(&checked).map_err(|error| wrong(&checked_lines, error))?;
    let (kernel, kernel_lines) = placed.kernel(Outside::Nothing);
    verify(&kernel).map_err(|error| wrong(&kernel_lines, error))?;
    let kernel = (dce::PASS.apply)(&kernel, &crate::passes::Site::whole());
    Ok(Recorded {
        kernel,
        checked,
        arguments,
        scalars: scalars.into_iter().map(|x| x.0).collect(),
        sizes,
        spaces,
        parameters,
        looks_back,
        lines: checked_lines,
        sites,
    })
}

/// What an access does whose coordinates are outside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    /// It loads zero and stores nothing.
    Nothing,
    /// It is one of element -1, which the interpreter refuses.
    Told,
}

/// A recorded kernel and what is known of it.
struct Placed<'a> {
    raw: &'a Kernel,
    places: &'a [Place],
    unneeded: &'a [Value],
    lines: &'a [u32],
    cut: Option<Value>,
}

/// A loop that a driver may end early, being rebuilt.
struct Watched {
    open: Value,
    len: Value,
    /// The iterations that began, or whether a break ended the loop, if there is one in it.
    noticed: Value,
    has_break: bool,
}

impl Placed<'_> {
    /// The kernel, and the line of each of its ops.
    fn kernel(&self, outside: Outside) -> (Kernel, Vec<u32>) {
        let Placed { raw, places, unneeded, lines, .. } = *self;
        let ranges = Ranges::of(raw);
        let ends = raw.region_ends();
        let mut b = raw.rebuild();
        let mut map = vec![Value(u32::MAX); raw.ops().len()];
        let mut new_lines = Vec::new();
        let mut next_place = places.iter().peekable();
        let (mut watched, mut was_cut) = (Vec::new(), None);
        for (value, op, ty) in raw.iter() {
            let place = next_place.next_if(|place| place.access == value);
            let is_shared = matches!(op, Op::Alloc { space: Space::Shared, .. });
            if unneeded.contains(&value) || is_shared && map[value.idx()] != Value(u32::MAX) {
                continue;
            }
            if let Op::Loop { kind: LoopKind::Local, .. } = op {
                let inside = value.idx()..ends[value.idx()];
                for (own, new) in inside.clone().zip(&mut map[inside]) {
                    let (op, ty) = (raw.ops()[own], raw.ty(Value(own as u32)));
                    if let Op::Alloc { space: Space::Shared, .. } = op {
                        *new = b.push(op, ty);
                    }
                }
            }
            let mut new = op.map(|x| map[x.idx()]);
            if let Some(place) = place {
                outside.place(&mut b, &mut new, place, (&ranges, &map));
            }
            match op {
                Op::Loop { kind: LoopKind::Serial, len, .. }
                    if was_cut.is_some() && self.may_be_cut(value, len) =>
                {
                    let has_break = raw.loops_with_break().contains(&value);
                    let dtype = if has_break { DType::Bool } else { DType::I64 };
                    let noticed = variable(&mut b, dtype);
                    watched.push(Watched { open: value, len: map[len.idx()], noticed, has_break });
                }
                Op::Break { .. } => {
                    if let (Some(of), Op::Break { cond }) = (watched.last(), new) {
                        set(&mut b, of.noticed, cond);
                    }
                }
                Op::End { open } if self.cut.is_some() && is_local(raw.op(open)) => {
                    if let (Some(was_cut), Some(cut)) = (was_cut.take(), self.cut) {
                        tell(&mut b, map[cut.idx()], was_cut);
                    }
                }
                _ => {}
            }
            map[value.idx()] = b.emit(new, ty);
            match op {
                Op::Loop { .. } if is_local(op) && self.cut.is_some() => {
                    was_cut = Some(variable(&mut b, DType::Bool));
                }
                Op::Loop { .. } => {
                    if let Some(of) = watched.last().filter(|of| of.open == value && !of.has_break)
                    {
                        let one = b.index(1);
                        let began = b.binary(BinaryOp::Add, map[value.idx()], one);
                        set(&mut b, of.noticed, began);
                    }
                }
                Op::End { open } => {
                    if let Some(of) = watched.pop_if(|of: &mut Watched| of.open == open)
                        && let Some(was_cut) = was_cut
                    {
                        of.note(&mut b, was_cut);
                    }
                }
                _ => {}
            }
            new_lines.resize(b.kernel().ops().len(), lines[value.idx()]);
        }
        (b.finish(), new_lines)
    }
}

impl Placed<'_> {
    /// Whether the number of iterations of a loop is not known when the kernel is recorded, or a break may end it.
    fn may_be_cut(&self, open: Value, len: Value) -> bool {
        self.raw.constant(len).is_none() || self.raw.loops_with_break().contains(&open)
    }
}

fn is_local(op: Op) -> bool {
    matches!(op, Op::Loop { kind: LoopKind::Local, .. })
}

/// Tells other than 0 where a thread noticed that a loop was ended.
fn tell(b: &mut Builder, cut: Value, was_cut: Value) {
    let zero = b.index(0);
    let cond = b.load(was_cut, zero);
    let (at, one) = (b.guard(zero, cond), b.constant(Scalar::from(1i32)));
    b.atomic(BinaryOp::Max, cut, at, one);
}

/// A variable that begins with 0.
fn variable(b: &mut Builder, dtype: DType) -> Value {
    let variable = b.alloc(Space::Register, Type::scalar(dtype), 1);
    let zero = b.constant(Scalar::from_i64(dtype, 0));
    set(b, variable, zero);
    variable
}

fn set(b: &mut Builder, variable: Value, value: Value) {
    let zero = b.index(0);
    b.store(variable, zero, value);
}

impl Watched {
    /// Notes whether the loop ended before its last iteration, and not by itself.
    fn note(&self, b: &mut Builder, was_cut: Value) {
        let zero = b.index(0);
        let [noticed, before] = [self.noticed, was_cut].map(|x| b.load(x, zero));
        let cut = match self.has_break {
            true => b.unary(UnaryOp::Not, noticed),
            false => b.binary(BinaryOp::Lt, noticed, self.len),
        };
        let cut = b.binary(BinaryOp::Or, before, cut);
        set(b, was_cut, cut);
    }
}

impl Outside {
    /// Makes an access whose coordinates may be outside right.
    fn place(self, b: &mut Builder, op: &mut Op, place: &Place, known: (&Ranges<'_>, &[Value])) {
        let (ranges, map) = known;
        let (Op::Load { index, .. } | Op::Store { index, .. } | Op::Atomic { index, .. }) = op
        else {
            return;
        };
        let unknown =
            place.digits.iter().filter(|digit| !ranges.is_below(digit.0, digit.1, place.access));
        let mut inside = None;
        for &(at, extent) in unknown {
            let (at, extent) = (map[at.idx()], map[extent.idx()]);
            let zero = b.index(0);
            let low = b.binary(BinaryOp::Le, zero, at);
            let high = b.binary(BinaryOp::Lt, at, extent);
            for bound in [low, high] {
                inside = Some(match inside {
                    Some(inside) => b.binary(BinaryOp::And, inside, bound),
                    None => bound,
                });
            }
        }
        let Some(inside) = inside else { return };
        *index = match self {
            Outside::Nothing => b.guard(*index, inside),
            Outside::Told => {
                let mut conditions = Vec::new();
                let mut bare = *index;
                while let Op::Guard { index, cond } = b.op(bare) {
                    conditions.push(cond);
                    bare = index;
                }
                let dtype = b.ty(bare).dtype;
                let none = b.constant(Scalar::from_i64(dtype, -1));
                let told = b.select(inside, bare, none);
                conditions.into_iter().rev().fold(told, |index, cond| b.guard(index, cond))
            }
        };
    }
}
