//! What a backend makes of each dtype, as `docs/ops.md` tells it, and that its suite is whole.
//!
//! A row of that table comes from capabilities alone, so the same names stand for the same thing
//! everywhere: how a device computes a dtype is what [`zyx_core::legalize`] does for it. Rows are
//! those of [`Caps`] that are the same on every machine; each backend compares its own
//! ([`rows_are_stated`]), as only its own tests can see it.

use crate::sources::root;
use std::io::Write;
use zyx_core::hal::Caps;
use zyx_core::{DType, Device, Tensor};

/// How a device computes a dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    /// As it is.
    Natively,
    /// In a wider one, rounded after each operation.
    In(DType),
    /// As pairs of 32-bit words.
    InPairs,
    /// Not at all: tensors of it are refused by name.
    Refused,
}

impl Computed {
    /// How a device of these capabilities computes `dtype`.
    pub fn of(dtype: DType, caps: &Caps) -> Computed {
        match caps.compute_dtype(dtype) {
            _ if !caps.storage.contains(dtype) => Computed::Refused,
            _ if caps.emulated.contains(dtype) => Computed::InPairs,
            wide if wide != dtype => Computed::In(wide),
            _ => Computed::Natively,
        }
    }

    fn cell(self) -> &'static str {
        match self {
            Computed::Natively => "●",
            Computed::In(wide) => wide.name(),
            Computed::InPairs => "pairs",
            Computed::Refused => "",
        }
    }
}

/// The row of a backend in the table of `docs/ops.md`.
pub fn row(name: &str, caps: &Caps) -> String {
    let cells = DType::ALL.iter().map(|&dtype| Computed::of(dtype, caps).cell());
    format!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "))
}

/// `docs/ops.md` has the rows of a backend; with `ZYX_BLESS=1` it has afterwards.
///
/// # Panics
/// When a row is not there or another.
pub fn rows_are_stated(rows: &[(&str, Caps)]) {
    let path = root().join("docs/ops.md");
    let mut text = std::fs::read_to_string(&path).expect("docs/ops.md is there");
    for (name, caps) in rows {
        let want = row(name, caps);
        let start = format!("| {name} |");
        let got = text.lines().find(|line| line.starts_with(&start)).map(str::to_owned);
        let got = got.unwrap_or_else(|| panic!("docs/ops.md has no row of {name}"));
        if std::env::var("ZYX_BLESS").is_ok() {
            text = text.replace(&got, &want);
            std::fs::write(&path, &text).expect("the file is writable");
        } else {
            assert_eq!(got, want, "docs/ops.md (ZYX_BLESS=1 writes it)");
        }
    }
}

/// No case of the suite is left out on this device but those of dtypes that it refuses by name;
/// only `f64` may be one. Tells how dtypes are computed that the device has no arithmetic for.
///
/// # Panics
/// When a dtype is missing that need not be, or refused in another way.
pub fn suite_is_whole(device: &Device) {
    let caps = device.caps();
    let mut told = format!("{device} computes dtypes natively, but");
    for &dtype in DType::ALL {
        let how = Computed::of(dtype, caps);
        match how {
            Computed::Natively => {}
            Computed::In(wide) => told += &format!(" {dtype} in {wide},"),
            Computed::InPairs => told += &format!(" {dtype} in pairs of words,"),
            Computed::Refused => told += &format!(" no {dtype},"),
        }
        assert!(
            how != Computed::Refused || dtype == DType::F64,
            "{device} refuses {dtype}, which something else can stand in for"
        );
        // The whole way there and back; a sum of bools is "or".
        let one = Tensor::ones([2], dtype, device);
        let read = one.add(&one).and_then(|x| x.cast(DType::I64).to_vec::<i64>());
        match (how, read) {
            (Computed::Refused, Err(error)) => {
                assert!(
                    error.to_string().contains(dtype.name()),
                    "refused without a name: {error}"
                );
            }
            (_, read) => {
                let want = if dtype == DType::Bool { 1 } else { 2 };
                assert_eq!(read.expect("a dtype that is stored"), [want; 2], "{dtype}");
            }
        }
    }
    // Written directly: the runner captures `eprintln!` of tests that pass.
    let told = told.strip_suffix(',').unwrap_or("").to_owned();
    let _ = writeln!(
        std::io::stderr(),
        "{}",
        if told.is_empty() { format!("{device} computes all dtypes natively") } else { told }
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use zyx_core::dtype::DTypeSet;

    #[test]
    fn a_row_says_how_each_dtype_is_computed() {
        let mut caps = Caps::default();
        let f64 = DTypeSet::of(&[DType::F64]);
        caps.storage = DTypeSet::ALL.without(f64);
        caps.emulated = DTypeSet::of(&[DType::I64]);
        let cells = "● | u32 | u32 | ● | ● | i32 | i32 | ● | pairs | f32 | f32 | ● | ";
        assert_eq!(row("some", &caps), format!("| some | {cells} |"));
    }
}
