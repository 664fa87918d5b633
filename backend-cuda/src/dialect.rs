//! CUDA C++ as a table for the shared emitter, and what stands in front of every source.
//!
//! How the definitions of the op table are kept:
//!
//! | definition | spelling |
//! |---|---|
//! | no contraction of `a * b + c` | `--fmad=false`; `fma` only where the kernel says so |
//! | NaN, infinity, denormals everywhere | never `--use_fast_math` or `--ftz=true` |
//! | division and square root correctly rounded | the compiler's default, `div.rn` and `sqrt.rn` |
//! | float to integer saturates, NaN to 0 | compared explicitly: `cvt` gives the lowest integer for NaN to 64 bits |
//! | `MulAdd` rounded once | `fma` |
//! | halves rounded once, to nearest even | `cvt.rn` for `f16`; bits for `bf16`; through `f32` rounded to odd from what `f32` does not hold |
//! | integer edges, shifts, `max` and `min` of NaN | the emitter's explicit selections |
//! | products of matrices | inline `mma.sync`, whose sums are of `f32` products |
//! | error bounds of functions | decomposed by the core but for `exp2`, as for PTX: both compilers give the same bits |
//!
//! A half is held as its bits and computed with as `f32`. The language has vectors of at most four
//! lanes and no arithmetic on them, so a source that uses vectors defines a template; the compiler
//! takes it apart into registers, and moves 16 bytes at a time where addresses are aligned.

use std::borrow::Cow;
use zyx_core::codegen::Dialect;
use zyx_core::codegen::dialect::{Helper, Position, Wide};
use zyx_core::ir::ShuffleKind;
use zyx_core::ir::mma::Shape;
use zyx_core::{BinaryOp, DType, TernaryOp, UnaryOp};

/// A complete source: what the emitter gave, with the definitions of vectors, matrix instructions
/// and exchanges between lanes if it uses them.
pub(crate) fn complete(source: &str) -> String {
    let vectors = if source.contains("vec<") { include_str!("vectors.cuh") } else { "" };
    let matrices = if source.contains("= mma_") { include_str!("matrices.cuh") } else { "" };
    let wide = if source.contains("= panel(") { include_str!("wide.cuh") } else { "" };
    let copies = if source.contains("copied();") { include_str!("copies.cuh") } else { "" };
    let lanes = if source.contains("= shuffle_") { include_str!("lanes.cuh") } else { "" };
    let source = source.trim_start();
    format!(
        "{}{vectors}{matrices}{wide}{copies}{lanes}\n// Generated from the kernel.\n{source}",
        include_str!("prelude.cuh")
    )
}

pub(crate) const CUDA: Dialect = Dialect {
    prelude: |_| String::new(),
    types: [
        "u8", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "u16", "u16", "float", "double",
    ],
    suffixes: ["", "", "", "u", "ull", "", "", "", "ll", "", "", "f", ""],
    widths: &[2, 4, 8, 16, 32],
    vector_type: |name, lanes| format!("vec<{name}, {lanes}>"),
    entry: |[x, y, z]| format!("extern \"C\" __global__ void __launch_bounds__({})", x * y * z),
    function: "static __device__ __forceinline__ ",
    buffer: "",
    offsets: false,
    enter: |threads| waits(threads).then_some("enter();"),
    // What the device contract says of buffers and offsets; it decides how wide loads are.
    start: |slot| format!("__builtin_assume(((u64)p{slot} & 63) == 0);"),
    shared: "__shared__ ",
    dynamic: Some("extern __shared__ __align__(1024) u8 dynamic[];"),
    shared_pointer: "",
    position: |position, axis| {
        let name = match position {
            Position::Group => "blockIdx",
            Position::Groups => "gridDim",
            Position::Local => "threadIdx",
            Position::Locals => "blockDim",
        };
        format!("{name}.{}", ["x", "y", "z"][axis])
    },
    barrier: |_| "__syncthreads();",
    unary: |op| match op {
        UnaryOp::Abs => "fabs",
        UnaryOp::Round => "rint",
        _ => op.name(),
    },
    binary: |op| match op {
        BinaryOp::Rem => "fmod",
        _ => op.name(),
    },
    extreme: |op, dtype| match (op, dtype) {
        (BinaryOp::Max, DType::F32) => Some("max_nan"),
        (BinaryOp::Min, DType::F32) => Some("min_nan"),
        _ => None,
    },
    ternary: |op| match op {
        TernaryOp::MulAdd => "fma",
        TernaryOp::Where => "select",
    },
    lane: |x, lane| format!("{x}.s[{lane}]"),
    vector: |ty, lanes| match lanes {
        [x] => format!("fill<{ty}>({x})"),
        _ => format!("make<{ty}>({})", lanes.join(", ")),
    },
    select: |test, if_true, if_false| format!("select({test}, {if_true}, {if_false})"),
    test: |_, x| x.to_owned(),
    truth: |_, comparison| comparison.to_owned(),
    bitcast: |ty, x| format!("as<{ty}>({x})"),
    convert: |ty, x| format!("convert<{ty}>({x})"),
    saturate: |_, ty, x| format!("saturate<{ty}>({x})"),
    whole: true,
    load: |lanes, pointer| format!("load<{lanes}>({pointer})"),
    store: |_, pointer, value| format!("store({pointer}, {value})"),
    atomic,
    mma: |row| match row.factor {
        DType::F16 => Some("mma_f16"),
        DType::BF16 => Some("mma_bf16"),
        _ => None,
    },
    wide: Some(&WIDE),
    copies: Some(["copy", "copied();"]),
    normal_exp2: Some("normal_exp2"),
    shuffle: |kind, whole| {
        Some(match (kind, whole) {
            (ShuffleKind::Index, false) => "shuffle_index<false>",
            (ShuffleKind::Index, true) => "shuffle_index<true>",
            (ShuffleKind::Xor, false) => "shuffle_xor<false>",
            (ShuffleKind::Xor, true) => "shuffle_xor<true>",
            (ShuffleKind::Down, false) => "shuffle_down<false>",
            (ShuffleKind::Down, true) => "shuffle_down<true>",
        })
    },
    exchange: |_| "exchange",
    address: "u64",
    helper,
};

/// Instructions of Hopper, `wgmma`.
const WIDE: Wide = Wide {
    storage: "__shared__ __align__(1024) ",
    panel: "panel",
    address: "u64",
    function: |row, panel, zero| {
        let dtype = if row.factor == DType::F16 { "f16" } else { "bf16" };
        let turned = u8::from(row.shape == Shape::Turned);
        let (from, start) = (if panel { "panels" } else { "held" }, if zero { "_new" } else { "" });
        format!("{from}_{dtype}{start}<{turned}>")
    },
    begin: "begin();",
    end: "end();",
    wait: |later| format!("wait<{later}>();"),
    settled: "settled",
    publish: "publish();",
};

/// Whether a launch of so many threads starts by waiting for earlier ones. That costs each group
/// some time, which is worth it where all of them may be placed before the wait is over.
pub(crate) fn waits(threads: Option<u64>) -> bool {
    threads.is_some_and(|n| n <= PLACED)
}

/// Threads that large devices hold at a time.
const PLACED: u64 = 1 << 18;

/// What the language has; the rest goes by compare and exchange.
fn atomic(op: BinaryOp, dtype: DType) -> Option<&'static str> {
    use DType::{F32, F64, I32, I64, U32, U64};
    let (narrow, wide) = (matches!(dtype, I32 | U32), matches!(dtype, I64 | U64));
    match op {
        // Signed numbers of 64 bits by the same instructions as unsigned ones: `prelude.cuh`.
        BinaryOp::Add if dtype == I64 => Some("atomic_add"),
        BinaryOp::Add if narrow || matches!(dtype, U64 | F32 | F64) => Some("atomicAdd"),
        BinaryOp::Sub if narrow => Some("atomicSub"),
        BinaryOp::Sub if wide => Some("atomic_sub"),
        BinaryOp::Max if narrow || wide => Some("atomicMax"),
        BinaryOp::Min if narrow || wide => Some("atomicMin"),
        BinaryOp::And if narrow || dtype == U64 => Some("atomicAnd"),
        BinaryOp::And if dtype == I64 => Some("atomic_and"),
        BinaryOp::Or if narrow || dtype == U64 => Some("atomicOr"),
        BinaryOp::Or if dtype == I64 => Some("atomic_or"),
        BinaryOp::Xor if narrow || dtype == U64 => Some("atomicXor"),
        BinaryOp::Xor if dtype == I64 => Some("atomic_xor"),
        _ => None,
    }
}

fn helper(helper: Helper) -> String {
    let each = |lanes: u8, ty: &str, scalar: &str| match lanes {
        1 => format!("    return {scalar}(x);\n"),
        n => format!(
            "    vec<{ty}, {n}> r;\n    for (int i = 0; i < {n}; ++i) r.s[i] = {scalar}(x.s[i]);\n    \
             return r;\n"
        ),
    };
    let pairs = |n: u8, pack: &str| {
        format!(
            "    vec<u32, {}> r;\n    for (int i = 0; i < {}; ++i) \
             r.s[i] = {pack}(x.s[2 * i], x.s[2 * i + 1]);\n    return as<vec<u16, {n}>>(r);\n",
            n / 2,
            n / 2
        )
    };
    match helper {
        Helper::Pack(DType::F16, n) if n > 1 => pairs(n, "pack_pair_f16"),
        Helper::Pack(DType::BF16, n) if n > 1 => pairs(n, "pack_pair_bf16"),
        Helper::Unpack(DType::F16, n) => each(n, "float", "unpack_f16"),
        Helper::Unpack(_, n) => each(n, "float", "unpack_bf16"),
        Helper::Pack(DType::F16, n) => each(n, "u16", "pack_f16"),
        Helper::Pack(_, n) => each(n, "u16", "pack_bf16"),
        Helper::Odd(from) => {
            let (truncate, exact): (_, Cow<'_, str>) = match from {
                DType::F64 => ("__double2float_rz", "(double)f == x || x != x".into()),
                DType::I64 => ("__ll2float_rz", "saturate<s64>(f) == x".into()),
                DType::U64 => ("__ull2float_rz", "saturate<u64>(f) == x".into()),
                DType::U32 => ("__uint2float_rz", "saturate<u32>(f) == x".into()),
                _ => ("__int2float_rz", "saturate<s32>(f) == x".into()),
            };
            format!(
                "    const float f = {truncate}(x);\n    \
                 return {exact} ? f : as<float>(as<u32>(f) | 1u);\n"
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
            let name = CUDA.types[dtype as usize];
            let bits = match name {
                "float" => 32,
                "double" => 64,
                _ => name[1..].parse().unwrap(),
            };
            assert_eq!(bits, dtype.bits(), "{dtype}");
        }
    }

    #[test]
    fn only_sources_with_vectors_define_them() {
        assert!(!complete("x").contains("struct"));
        assert!(complete("vec<float, 4> x").contains("struct alignas"));
    }
}
