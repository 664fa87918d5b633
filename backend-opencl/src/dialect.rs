//! OpenCL C 1.2 as a table for the shared emitter.
//!
//! How the definitions of the op table are kept:
//!
//! | definition | spelling |
//! |---|---|
//! | no contraction of `a * b + c` | `FP_CONTRACT OFF` at file scope; no build option does it |
//! | NaN and infinity everywhere | never `-cl-fast-relaxed-math`, `-cl-finite-math-only` |
//! | division and square root of `f32` correctly rounded | build option where the device has it |
//! | float to integer saturates, NaN to 0 | `convert_T_sat` (OpenCL C 1.2, 6.2.3.3) of a number; NVIDIA's gives the lowest integer for NaN, so NaN is replaced before |
//! | `MulAdd` rounded once | `fma`, exact by OpenCL C 1.2, 7.4 |
//! | halves rounded once, to nearest even | `vstore_half_rte` for `f16`; bits for `bf16`; through `f32` rounded to odd from what `f32` does not hold |
//! | integer edges, shifts, `max` and `min` of NaN | the emitter's explicit selections |
//! | error bounds of functions | those of the full profile (7.4) are within the op table's |
//!
//! Denormals of `f32` are optional in OpenCL; a device that flushes them differs there, and
//! reports so by `CL_FP_DENORM`.
//!
//! A half is held as its bits in a `ushort` unless the device has `cl_khr_fp16`; loading and
//! storing it then moves bits, and only casts convert.

use zyx_core::codegen::Dialect;
use zyx_core::codegen::dialect::{Helper, Position};
use zyx_core::hal::Caps;
use zyx_core::ir::{BarrierScope, Type};
use zyx_core::{BinaryOp, DType, TernaryOp, UnaryOp};

/// The table for a device with these capabilities.
pub(crate) fn dialect(caps: &Caps) -> Dialect {
    let mut dialect = OPENCL;
    if caps.compute.contains(DType::F16) {
        dialect.types[DType::F16 as usize] = "half";
    }
    dialect
}

const OPENCL: Dialect = Dialect {
    prelude,
    types: [
        "uchar", "uchar", "ushort", "uint", "ulong", "char", "short", "int", "long", "ushort",
        "ushort", "float", "double",
    ],
    suffixes: ["", "", "", "u", "ul", "", "", "", "l", "", "", "f", ""],
    widths: &[2, 4, 8, 16],
    vector_type: |name, lanes| format!("{name}{lanes}"),
    entry: |[x, y, z]| {
        format!("__kernel __attribute__((reqd_work_group_size({x}, {y}, {z}))) void")
    },
    function: "",
    buffer: "__global ",
    offsets: true,
    enter: |_| None,
    start: |slot| format!("p{slot} += o{slot};"),
    shared: "__local ",
    dynamic: None,
    shared_pointer: "__local ",
    position: |position, axis| {
        let name = match position {
            Position::Group => "get_group_id",
            Position::Groups => "get_num_groups",
            Position::Local => "get_local_id",
            Position::Locals => "get_local_size",
        };
        format!("{name}({axis})")
    },
    barrier: |scope| match scope {
        BarrierScope::Shared => "barrier(CLK_LOCAL_MEM_FENCE);",
        BarrierScope::Group => "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    },
    unary: |op| match op {
        UnaryOp::Abs => "fabs",
        UnaryOp::Round => "rint",
        _ => op.name(),
    },
    binary: |op| match op {
        BinaryOp::Rem => "fmod",
        _ => op.name(),
    },
    ternary: |op| match op {
        TernaryOp::MulAdd => "fma",
        TernaryOp::Where => "select",
    },
    lane: |x, lane| format!("{x}.s{lane:x}"),
    vector: |ty, lanes| format!("({ty})({})", lanes.join(", ")),
    select: |test, if_true, if_false| format!("select({if_false}, {if_true}, {test})"),
    test: |ty, x| format!("-convert_{}{}({x})", mask(ty.dtype), ty.lanes),
    truth: |lanes, comparison| format!("convert_uchar{lanes}(-({comparison}))"),
    bitcast: |ty, x| format!("as_{ty}({x})"),
    convert: |ty, x| format!("convert_{ty}({x})"),
    saturate,
    whole: true,
    load: |lanes, pointer| format!("vload{lanes}(0, {pointer})"),
    store: |lanes, pointer, value| format!("vstore{lanes}({value}, 0, {pointer})"),
    atomic,
    mma: |_| None,
    wide: None,
    copies: None,
    normal_exp2: None,
    extreme: |_, _| None,
    shuffle: |_, _| None,
    exchange: |bits| if bits == 64 { "atom_cmpxchg" } else { "atomic_cmpxchg" },
    address: "size_t",
    helper,
};

/// The signed integer of a dtype's width: the element of a comparison's result.
fn mask(dtype: DType) -> &'static str {
    match dtype.bits() {
        8 => "char",
        16 => "short",
        32 => "int",
        _ => "long",
    }
}

fn saturate(from: Type, to: &str, x: &str) -> String {
    if !from.is_vector() {
        return format!("convert_{to}_sat({x} == {x} ? {x} : 0)");
    }
    let zero = format!("({}{})(0)", OPENCL.types[from.dtype as usize], from.lanes);
    format!("convert_{to}_sat(select({zero}, {x}, {x} == {x}))")
}

fn prelude(caps: &Caps) -> String {
    let mut text = String::new();
    let extensions = [
        ("cl_khr_fp64", caps.compute.contains(DType::F64)),
        ("cl_khr_fp16", caps.compute.contains(DType::F16)),
        ("cl_khr_int64_base_atomics", caps.atomics.contains(DType::U64)),
    ];
    for (name, _) in extensions.into_iter().filter(|e| e.1) {
        text.push_str(&format!("#pragma OPENCL EXTENSION {name} : enable\n"));
    }
    text + "#pragma OPENCL FP_CONTRACT OFF\n"
}

/// OpenCL 1.2 has atomics on `int` and `uint`, and the extension of wide ones sums; the others and
/// floats go by compare and exchange.
fn atomic(op: BinaryOp, dtype: DType) -> Option<&'static str> {
    use DType::{I32, I64, U32, U64};
    if !matches!(dtype, I32 | U32 | I64 | U64) {
        return None;
    }
    Some(match op {
        BinaryOp::Add if matches!(dtype, I64 | U64) => "atom_add",
        BinaryOp::Sub if matches!(dtype, I64 | U64) => "atom_sub",
        _ if matches!(dtype, I64 | U64) => return None,
        BinaryOp::Add => "atomic_add",
        BinaryOp::Sub => "atomic_sub",
        BinaryOp::Max => "atomic_max",
        BinaryOp::Min => "atomic_min",
        BinaryOp::And => "atomic_and",
        BinaryOp::Or => "atomic_or",
        BinaryOp::Xor => "atomic_xor",
        _ => return None,
    })
}

fn helper(helper: Helper) -> String {
    let name = |name: &str, lanes: u8| {
        if lanes == 1 { name.to_owned() } else { format!("{name}{lanes}") }
    };
    let suffix = |lanes: u8| if lanes == 1 { String::new() } else { lanes.to_string() };
    match helper {
        Helper::Unpack(DType::F16, n) => {
            format!("    return vload_half{}(0, (const __private half *)&x);\n", suffix(n))
        }
        Helper::Pack(DType::F16, n) => format!(
            "    {} r;\n    vstore_half{}_rte(x, 0, (__private half *)&r);\n    return r;\n",
            name("ushort", n),
            suffix(n)
        ),
        Helper::Unpack(_, n) => {
            let (float, uint) = (name("float", n), name("uint", n));
            format!("    return as_{float}(convert_{uint}(x) << 16);\n")
        }
        // Adding half of what is cut off, less one unless the last kept bit is odd, rounds ties
        // to even; a NaN keeps its upper bits and stays quiet.
        Helper::Pack(_, n) => {
            let (uint, ushort) = (name("uint", n), name("ushort", n));
            let pick = if n == 1 { "x != x ? q : r" } else { "select(r, q, x != x)" };
            format!(
                "    const {uint} u = as_{uint}(x);\n    \
                 const {uint} r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;\n    \
                 const {uint} q = (u >> 16) | 0x40u;\n    \
                 return convert_{ushort}({pick});\n"
            )
        }
        Helper::Odd(from) => {
            let exact = match from {
                DType::F64 => "(double)f == x || x != x".to_owned(),
                _ => format!("convert_{}_sat(f) == x", OPENCL.types[from as usize]),
            };
            format!(
                "    const float f = convert_float_rtz(x);\n    \
                 return {exact} ? f : as_float(as_uint(f) | 1u);\n"
            )
        }
        Helper::Pow(_) | Helper::Atomic(..) | Helper::Await(_) => {
            unreachable!("invariant: the emitter spells these itself")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_a_type_of_its_width() {
        for &dtype in DType::ALL {
            let bits = match OPENCL.types[dtype as usize] {
                "uchar" | "char" => 8,
                "ushort" | "short" => 16,
                "uint" | "int" | "float" => 32,
                _ => 64,
            };
            assert_eq!(bits, dtype.bits(), "{dtype}");
        }
    }

    #[test]
    fn masks_are_as_wide_as_what_they_select() {
        assert_eq!((OPENCL.test)(Type::vector(DType::F64, 4), "c"), "-convert_long4(c)");
        assert_eq!((OPENCL.test)(Type::vector(DType::BF16, 8), "c"), "-convert_short8(c)");
    }
}
