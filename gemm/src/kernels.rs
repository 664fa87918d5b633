//! The kernels of each instruction set, behind function pointers.
//!
//! This is the only place where code meets CPU features: each instruction set instantiates the
//! generic loops inside `#[target_feature]` functions, and [`Real32Or64::kernels`] hands the table
//! out only for an [`Isa`], which cannot be obtained on a machine that lacks it.

#[cfg(target_arch = "x86_64")]
use super::amx;
use super::bytes::{self, Form};
use super::pack::{self, Panel, Rows};
use super::plan::Extensions;
use super::simd::bytes::Baseline;
use super::simd::{Element, Factors, Load, Real, Save, Simd, portable::Portable};
use super::spec::{Acc, DType, Isa, Spec};
use super::store::{self, Store, Turn};
use super::tile::{self, TileFn, Variant};
use half::{bf16, f16};

/// Everything a contraction with accumulators of type `T` calls.
pub(super) struct Kernels<T: 'static> {
    /// Accumulators per vector.
    pub(super) lanes: usize,
    /// The most rows of a tile.
    pub(super) rows: usize,
    /// The most vectors of a tile.
    pub(super) vectors: usize,
    /// Steps of k that a packed number holds.
    pub(super) depth: usize,
    /// Packed numbers along k come in groups of so many, multiplied at once.
    pub(super) group: usize,
    /// Packed numbers behind those.
    pub(super) behind: usize,
    /// Whether A is always packed in strips.
    pub(super) strips: bool,
    /// Whether A is never packed in strips.
    pub(super) along: bool,
    /// Instructions of a multiply-add, of which there are two a cycle.
    pub(super) ops: f64,
    /// Whether bytes of A and B are multiplied as signed; `None` if words are multiplied.
    pub(super) signed: Option<[bool; 2]>,
    /// Whether the plain variant is so much faster that tails are packed for it.
    pub(super) by_lane: bool,
    /// For each number of rows, and in it of vectors: the variants. More rows than are listed have the
    /// kernels of the last.
    tiles: &'static [[TileFn<T>; 3]],
    /// For each element type, in the order of [`DType`].
    moves: [Option<Moves<T>>; DType::COUNT],
    /// For each element type.
    stores: [Option<unsafe fn(&Store<'_, T>)>; DType::COUNT],
    /// Adds numbers to as many others.
    pub(super) add: unsafe fn(*mut T, *const T, usize),
    /// Writes, behind so many packed rows of so many factors of an operand, what tiles add for them.
    pub(super) add_up: Option<AddUp<T>>,
    /// What is called before tiles, as often as others may have run contractions since, and after a task.
    pub(super) around: Option<(unsafe fn(), unsafe fn())>,
    /// Transposes a finished block.
    pub(super) turn: unsafe fn(&Turn<T>),
}

/// See [`super::bytes::add_up`].
pub(super) type AddUp<T> = unsafe fn(*mut T, usize, usize, usize, Form);

/// The copies of operands of one element type.
#[derive(Clone, Copy)]
pub(super) struct Moves<T> {
    pub(super) panel_runs: unsafe fn(&Panel<'_, T>),
    pub(super) panel_transposed: unsafe fn(&Panel<'_, T>),
    pub(super) panel_scattered: unsafe fn(&Panel<'_, T>),
    pub(super) rows: unsafe fn(&Rows<'_, T>),
    pub(super) strips: unsafe fn(&Rows<'_, T>),
}

impl<T> Kernels<T> {
    /// The tile kernel for so many rows and vectors.
    pub(super) fn tile(&self, rows: usize, vectors: usize, variant: Variant) -> TileFn<T> {
        debug_assert!((1..=self.rows).contains(&rows) && (1..=self.vectors).contains(&vectors));
        let listed = self.tiles.len() / self.vectors;
        self.tiles[(rows.min(listed) - 1) * self.vectors + vectors - 1][variant as usize]
    }

    /// The copies of operands of this type, if the accumulators can hold them.
    pub(super) fn moves(&self, dtype: DType) -> Option<&Moves<T>> {
        self.moves[dtype as usize].as_ref()
    }

    /// The store of accumulators as elements of this type.
    pub(super) fn store(&self, dtype: DType) -> Option<unsafe fn(&Store<'_, T>)> {
        self.stores[dtype as usize]
    }
}

/// An accumulator type with kernels.
pub(super) trait Real32Or64: Real {
    /// The kernels of an instruction set for such products.
    fn kernels(isa: Isa, products: Products) -> &'static Kernels<Self>;
}

/// With fewer rows, matrix registers are not used.
const LEAST_ROWS: usize = 16;

/// What is multiplied at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Products {
    /// Numbers of the type of the accumulators.
    Single,
    /// Pairs of `bf16` or more of them.
    Bf16,
    /// Bytes, whose sums are `i32`, in the place of `f32`: all but the kernels only move them.
    Bytes {
        /// Whether to use instructions that the instruction set was extended by.
        extended: bool,
        /// Whether to use matrix registers.
        tiles: bool,
    },
}

impl Products {
    /// The products of a contraction.
    pub(super) fn of(spec: &Spec, isa: Isa, extensions: Extensions) -> Products {
        let halves = [spec.a, spec.b] == [DType::BF16; 2] && spec.acc == Acc::F32;
        match spec.acc {
            Acc::I32 => Products::Bytes {
                extended: extensions != Extensions::None,
                tiles: extensions == Extensions::All
                    && spec.m.iter().map(|d| d.len).product::<usize>() >= LEAST_ROWS,
            },
            _ if extensions == Extensions::None => Products::Single,
            _ if halves
                && has_pairs(isa)
                && spec.k.iter().map(|d| d.len).product::<usize>() > 1 =>
            {
                Products::Bf16
            }
            _ => Products::Single,
        }
    }
}

/// Instantiates the kernels of one instruction set: a module with a table per accumulator type.
///
/// For AVX2, say, it expands to `mod avx2` with a `#[target_feature(enable = "avx2,fma,f16c")]`
/// function around each generic loop, a table of tile kernels over all (rows, vectors) pairs, and
/// the statics `F32` and `F64` that collect them.
macro_rules! instantiate {
    (
        $name:ident, [$($features:literal)?], $f32:ty, $f64:ty, rows: $rows:literal,
        vectors: $vectors:literal, tiles: [$(($mr:literal $nv:literal))*]
    ) => {
        mod $name {
            use super::*;

            $(#[target_feature(enable = $features)])?
            unsafe fn tile<S: Simd, const MR: usize, const NV: usize, const VARIANT: u8>(
                t: &tile::TileArgs<S::Elem>,
            ) {
                // SAFETY: the caller's contract is the same; the features are enabled here.
                unsafe { tile::tile::<S, MR, NV, VARIANT>(t) }
            }

            instantiate!(@copy [$($features)?] pack, panel_runs, Load<E>, Panel);
            instantiate!(@copy [$($features)?] pack, panel_transposed, Load<E>, Panel);
            instantiate!(@copy [$($features)?] pack, panel_scattered, Load<E>, Panel);
            instantiate!(@copy [$($features)?] pack, rows, Load<E>, Rows);
            instantiate!(@copy [$($features)?] pack, strips, Load<E>, Rows);
            instantiate!(@copy [$($features)?] store, store, Save<E>, Store);

            $(#[target_feature(enable = $features)])?
            unsafe fn turn<S: Simd>(args: &Turn<S::Elem>) {
                // SAFETY: the caller's contract is the same; the features are enabled here.
                unsafe { store::turn::<S>(args) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn add<T: Real>(to: *mut T, from: *const T, n: usize) {
                // SAFETY: the caller's contract is the same; the features are enabled here.
                unsafe { store::add(to, from, n) }
            }

            const fn stores<S>() -> [Option<unsafe fn(&Store<'_, S::Elem>)>; DType::COUNT]
            where
                S: Save<f16> + Save<bf16> + Save<f32> + Save<f64>,
            {
                let [f16, bf16] = [Some(store::<S, f16> as _), Some(store::<S, bf16> as _)];
                [f16, bf16, Some(store::<S, f32>), Some(store::<S, f64>), None, None, None]
            }

            const fn moves<S: Load<E>, E: Element>() -> Option<Moves<S::Elem>> {
                Some(Moves {
                    panel_runs: panel_runs::<S, E>,
                    panel_transposed: panel_transposed::<S, E>,
                    panel_scattered: panel_scattered::<S, E>,
                    rows: rows::<S, E>,
                    strips: strips::<S, E>,
                })
            }

            pub(super) const KERNELS_F32: Kernels<f32> = Kernels {
                lanes: <$f32 as Simd>::LANES,
                rows: $rows,
                vectors: $vectors,
                depth: 1,
                group: 1,
                behind: 0,
                strips: false,
                along: false,
                ops: 1.0,
                around: None,
                signed: None,
                by_lane: <$f32 as Simd>::BY_LANE,
                tiles: &[$([
                    tile::<$f32, $mr, $nv, { Variant::Plain as u8 }>,
                    tile::<$f32, $mr, $nv, { Variant::Tail as u8 }>,
                    tile::<$f32, $mr, $nv, { Variant::Table as u8 }>,
                ]),*],
                moves: [
                    moves::<$f32, f16>(),
                    moves::<$f32, bf16>(),
                    moves::<$f32, f32>(),
                    None,
                    None,
                    None,
                    None,
                ],
                stores: stores::<$f32>(),
                add: add::<f32>,
                add_up: None,
                turn: turn::<$f32>,
            };

            pub(super) static F32: Kernels<f32> = KERNELS_F32;

            pub(super) static F64: Kernels<f64> = Kernels {
                lanes: <$f64 as Simd>::LANES,
                rows: $rows,
                vectors: $vectors,
                depth: 1,
                group: 1,
                behind: 0,
                strips: false,
                along: false,
                ops: 1.0,
                around: None,
                signed: None,
                by_lane: <$f64 as Simd>::BY_LANE,
                tiles: &[$([
                    tile::<$f64, $mr, $nv, { Variant::Plain as u8 }>,
                    tile::<$f64, $mr, $nv, { Variant::Tail as u8 }>,
                    tile::<$f64, $mr, $nv, { Variant::Table as u8 }>,
                ]),*],
                moves: [
                    moves::<$f64, f16>(),
                    moves::<$f64, bf16>(),
                    moves::<$f64, f32>(),
                    moves::<$f64, f64>(),
                    None,
                    None,
                    None,
                ],
                stores: stores::<$f64>(),
                add: add::<f64>,
                add_up: None,
                turn: turn::<$f64>,
            };
        }
    };
    (@copy [$($features:literal)?] $module:ident, $name:ident, $bound:path, $args:ident) => {
        $(#[target_feature(enable = $features)])?
        unsafe fn $name<S: $bound, E: Element>(args: &$args<'_, S::Elem>) {
            // SAFETY: the caller's contract is the same; the features are enabled here.
            unsafe { $module::$name::<S, E>(args) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
instantiate!(
    avx512, ["avx512f,avx512bw,avx512dq,avx512vl"],
    super::super::simd::avx512::F32, super::super::simd::avx512::F64, rows: 8, vectors: 3,
    tiles: [
        (1 1) (1 2) (1 3) (2 1) (2 2) (2 3) (3 1) (3 2) (3 3) (4 1) (4 2) (4 3)
        (5 1) (5 2) (5 3) (6 1) (6 2) (6 3) (7 1) (7 2) (7 3) (8 1) (8 2) (8 3)
    ]
);

#[cfg(target_arch = "x86_64")]
instantiate!(
    avx2, ["avx2,fma,f16c"],
    super::super::simd::avx2::F32, super::super::simd::avx2::F64, rows: 6, vectors: 2,
    tiles: [
        (1 1) (1 2) (2 1) (2 2) (3 1) (3 2) (4 1) (4 2) (5 1) (5 2) (6 1) (6 2)
    ]
);

#[cfg(target_arch = "aarch64")]
instantiate!(
    neon, ["neon"],
    super::super::simd::neon::F32, super::super::simd::neon::F64, rows: 7, vectors: 3,
    tiles: [
        (1 1) (1 2) (1 3) (2 1) (2 2) (2 3) (3 1) (3 2) (3 3) (4 1) (4 2) (4 3)
        (5 1) (5 2) (5 3) (6 1) (6 2) (6 3) (7 1) (7 2) (7 3)
    ]
);

/// Whether this machine multiplies pairs of `bf16`.
fn has_pairs(isa: Isa) -> bool {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => isa.is_available() && is_x86_feature_detected!("avx512bf16"),
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => std::arch::is_aarch64_feature_detected!("bf16"),
        _ => false,
    }
}

/// Instantiates the kernels for products of several steps of `bf16` in a module `pairs`, from the
/// functions of a module of this crate; what touches sums alone is that of the instruction set they
/// belong to. Operands are always packed, so that no kernel meets a tail or a table.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! instantiate_pairs {
    (
        $features:literal, $isa:ident, $module:ident, rows: $rows:literal,
        tiles: [$(($mr:literal $nv:literal))*]
    ) => {
        mod pairs {
            use super::super::$module;
            use super::*;

            instantiate_pairs!(@copy $features, $module, panel_runs, Panel);
            instantiate_pairs!(@copy $features, $module, panel_transposed, Panel);
            instantiate_pairs!(@copy $features, $module, panel_scattered, Panel);
            instantiate_pairs!(@copy $features, $module, rows, Rows);
            instantiate_pairs!(@copy $features, $module, strips, Rows);

            #[target_feature(enable = $features)]
            unsafe fn tile<const MR: usize, const NV: usize>(t: &tile::TileArgs<f32>) {
                // SAFETY: the caller's contract is the same; the features are enabled here.
                unsafe { $module::tile::<MR, NV>(t) }
            }

            const MOVES: Moves<f32> =
                Moves { panel_runs, panel_transposed, panel_scattered, rows, strips };

            pub(super) static F32: Kernels<f32> = Kernels {
                rows: $rows,
                depth: $module::DEPTH,
                group: $module::GROUP,
                strips: $module::GROUP > 1,
                tiles: &[$([tile::<$mr, $nv>; 3]),*],
                moves: [None, Some(MOVES), None, None, None, None, None],
                ..$isa::KERNELS_F32
            };
        }
    };
    (@copy $features:literal, $module:ident, $name:ident, $args:ident) => {
        #[target_feature(enable = $features)]
        unsafe fn $name(args: &$args<'_, f32>) {
            // SAFETY: the caller's contract is the same; the features are enabled here.
            unsafe { $module::$name(args) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
instantiate_pairs!(
    "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16", avx512, pairs, rows: 8,
    tiles: [
        (1 1) (1 2) (1 3) (2 1) (2 2) (2 3) (3 1) (3 2) (3 3) (4 1) (4 2) (4 3)
        (5 1) (5 2) (5 3) (6 1) (6 2) (6 3) (7 1) (7 2) (7 3) (8 1) (8 2) (8 3)
    ]
);

#[cfg(target_arch = "aarch64")]
instantiate_pairs!(
    "neon,bf16", neon, quads, rows: 8,
    tiles: [
        (1 1) (1 2) (1 3) (2 1) (2 2) (2 3) (3 1) (3 2) (3 3) (4 1) (4 2) (4 3)
        (5 1) (5 2) (5 3) (6 1) (6 2) (6 3) (7 1) (7 2) (7 3) (8 1) (8 2) (8 3)
    ]
);

instantiate!(
    portable, [], Portable<f32, 8>, Portable<f64, 4>, rows: 4, vectors: 1,
    tiles: [(1 1) (2 1) (3 1) (4 1)]
);

/// The copies of operands of bytes, one of which may be particular to an instruction set.
const fn moves_of_bytes(panel_runs: unsafe fn(&Panel<'_, f32>)) -> Moves<f32> {
    Moves {
        panel_runs,
        panel_transposed: bytes::panel_transposed::<Baseline>,
        panel_scattered: bytes::panel_scattered,
        rows: bytes::rows,
        strips: bytes::strips::<Baseline>,
    }
}

/// [`bytes::panel_runs`] with masks.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn masked_runs(args: &Panel<'_, f32>) {
    // SAFETY: the caller's contract is the same; the features are enabled here.
    unsafe { bytes::panel_runs::<super::simd::avx512::Masked>(args) }
}

/// [`bytes::write`] in 512 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn write512(t: &tile::TileArgs<f32>, block: *const f32, vectors: usize) {
    // SAFETY: the caller's contract is the same; the features are enabled here.
    unsafe { bytes::write::<super::simd::avx512::Quads>(t, block, vectors) }
}

/// [`bytes::write`] in 256 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn write256(t: &tile::TileArgs<f32>, block: *const f32, vectors: usize) {
    // SAFETY: the caller's contract is the same; the features are enabled here.
    unsafe { bytes::write::<super::simd::avx2::Words>(t, block, vectors) }
}

/// Instantiates the kernels for products of bytes in a module; what moves sums alone is that of the
/// instruction set they belong to. A tile of so many rows is computed by the kernel listed in its
/// place, which may have more. Operands are always packed, so that no kernel meets a tail or a table.
macro_rules! instantiate_bytes {
    (
        $name:ident, [$($features:literal)?], $factors:ty, $isa:ident, runs: $runs:expr, write: $write:expr,
        rows: $rows:literal, vectors: $vectors:literal, tiles: [$(($mr:literal $nv:literal))*]
    ) => {
        mod $name {
            use super::*;

            $(#[target_feature(enable = $features)])?
            unsafe fn tile<const MR: usize, const NV: usize>(t: &tile::TileArgs<f32>) {
                // SAFETY: the caller's contract is the same; the features are enabled here.
                unsafe { <$factors>::tile::<MR, NV>(t, $write) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn add_up(first: *mut f32, steps: usize, n: usize, side: usize, form: Form) {
                // SAFETY: the caller's contract is the same; the features are enabled here.
                unsafe { bytes::add_up::<$factors>(first, steps, n, side, form) }
            }

            const MOVES: Option<Moves<f32>> = Some(moves_of_bytes($runs));

            pub(super) static I32: Kernels<f32> = KERNELS;

            pub(super) const KERNELS: Kernels<f32> = Kernels {
                rows: $rows,
                vectors: $vectors,
                depth: <$factors as Factors>::DEPTH,
                behind: bytes::BEHIND,
                strips: <$factors as Factors>::STRIPS,
                ops: <$factors as Factors>::OPS,
                signed: <$factors as Factors>::SIGNED,
                tiles: &[$([tile::<$mr, $nv>; 3]),*],
                moves: [None, None, None, None, MOVES, MOVES, None],
                stores: [None, None, None, None, None, None, Some(bytes::store)],
                add: bytes::add,
                add_up: Some(add_up),
                ..$isa::KERNELS_F32
            };
        }
    };
}

#[cfg(target_arch = "x86_64")]
instantiate_bytes!(
    avx512_bytes, ["avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"],
    super::super::simd::avx512::Quads, avx512, runs: masked_runs, write: write512, rows: 8, vectors: 3,
    tiles: [
        (4 1) (4 2) (4 3) (4 1) (4 2) (4 3) (4 1) (4 2) (4 3) (4 1) (4 2) (4 3)
        (8 1) (8 2) (8 3) (8 1) (8 2) (8 3) (8 1) (8 2) (8 3) (8 1) (8 2) (8 3)
    ]
);

/// The kernels for products of bytes by AMX, which differ from those of AVX-512 in the tiles.
#[cfg(target_arch = "x86_64")]
static AMX_BYTES: Kernels<f32> = Kernels {
    rows: amx::ROWS,
    vectors: amx::VECTORS,
    along: true,
    ops: 0.25,
    around: Some((amx::begin, amx::end)),
    tiles: &[[amx_tile::<1>; 3], [amx_tile::<2>; 3]],
    ..avx512_bytes::KERNELS
};

/// [`amx::tile`].
#[cfg(target_arch = "x86_64")]
unsafe fn amx_tile<const NV: usize>(t: &tile::TileArgs<f32>) {
    // SAFETY: the caller's contract.
    unsafe { amx::tile::<NV>(t, &avx512_bytes::I32, write512) }
}

#[cfg(target_arch = "x86_64")]
instantiate_bytes!(
    avx_vnni_bytes, ["avx2,fma,f16c,avxvnni"],
    super::super::simd::avx2::Quads, avx2, runs: bytes::panel_runs::<Baseline>,
    write: write256, rows: 6, vectors: 2,
    tiles: [(3 1) (3 2) (3 1) (3 2) (3 1) (3 2) (6 1) (6 2) (6 1) (6 2) (6 1) (6 2)]
);

#[cfg(target_arch = "x86_64")]
instantiate_bytes!(
    avx2_bytes, ["avx2,fma,f16c"],
    super::super::simd::avx2::Words, avx2, runs: bytes::panel_runs::<Baseline>,
    write: write256, rows: 6, vectors: 2,
    tiles: [(3 1) (3 2) (3 1) (3 2) (3 1) (3 2) (6 1) (6 2) (6 1) (6 2) (6 1) (6 2)]
);

#[cfg(target_arch = "aarch64")]
instantiate_bytes!(
    dot_bytes, ["neon,dotprod"], super::super::simd::neon::Quads, neon,
    runs: bytes::panel_runs::<Baseline>, write: bytes::write::<super::super::simd::neon::Quads>,
    rows: 8, vectors: 3,
    tiles: [
        (4 1) (4 2) (4 3) (4 1) (4 2) (4 3) (4 1) (4 2) (4 3) (4 1) (4 2) (4 3)
        (8 1) (8 2) (8 3) (8 1) (8 2) (8 3) (8 1) (8 2) (8 3) (8 1) (8 2) (8 3)
    ]
);

#[cfg(target_arch = "aarch64")]
instantiate_bytes!(
    neon_bytes, ["neon"], super::super::simd::neon::Halves, neon,
    runs: bytes::panel_runs::<Baseline>, write: bytes::write::<super::super::simd::neon::Quads>,
    rows: 4, vectors: 2, tiles: [(4 1) (4 2) (4 1) (4 2) (4 1) (4 2) (4 1) (4 2)]
);

instantiate_bytes!(
    portable_bytes, [], super::super::simd::portable::Words, portable,
    runs: bytes::panel_runs::<Baseline>, write: bytes::write::<super::super::simd::portable::Words>,
    rows: 4, vectors: 1,
    tiles: [(4 1) (4 1) (4 1) (4 1)]
);

/// The kernels for products of bytes, with instructions of extensions or without, in
/// matrix registers or not.
fn bytes_kernels(isa: Isa, extended: bool, tiles: bool) -> &'static Kernels<f32> {
    match (isa, extended, tiles) {
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512, true, true)
            if is_x86_feature_detected!("avx512vnni") && amx::is_available() =>
        {
            &AMX_BYTES
        }
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512, true, _) if is_x86_feature_detected!("avx512vnni") => &avx512_bytes::I32,
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx2 | Isa::Avx512, true, _) if is_x86_feature_detected!("avxvnni") => {
            &avx_vnni_bytes::I32
        }
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx2 | Isa::Avx512, ..) => &avx2_bytes::I32,
        #[cfg(target_arch = "aarch64")]
        (Isa::Neon, true, _) if std::arch::is_aarch64_feature_detected!("dotprod") => {
            &dot_bytes::I32
        }
        #[cfg(target_arch = "aarch64")]
        (Isa::Neon, ..) => &neon_bytes::I32,
        _ => &portable_bytes::I32,
    }
}

macro_rules! real32or64 {
    ($type:ty, $table:ident $(, $pairs:path, $bytes:path)?) => {
        impl Real32Or64 for $type {
            fn kernels(isa: Isa, products: Products) -> &'static Kernels<$type> {
                match (isa, products) {
                    $(#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
                    (_, Products::Bf16) => &$pairs,
                    (_, Products::Bytes { extended, tiles }) => $bytes(isa, extended, tiles),)?
                    #[cfg(target_arch = "x86_64")]
                    (Isa::Avx512, _) => &avx512::$table,
                    #[cfg(target_arch = "x86_64")]
                    (Isa::Avx2, _) => &avx2::$table,
                    #[cfg(target_arch = "aarch64")]
                    (Isa::Neon, _) => &neon::$table,
                    _ => &portable::$table,
                }
            }
        }
    };
}

real32or64!(f32, F32, pairs::F32, bytes_kernels);
real32or64!(f64, F64);
