//! The kernels of each instruction set, behind function pointers.
//!
//! This is the only place where code meets CPU features: each instruction set instantiates the
//! generic loops inside `#[target_feature]` functions, and [`Real32Or64::kernels`] hands the table
//! out only for an [`Isa`], which cannot be obtained on a machine that lacks it.

use super::pack::{self, Panel, Rows};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::simd::Zip;
use super::simd::{Element, Load, Real, Save, Simd, portable::Portable};
use super::spec::{DType, Isa};
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
    /// Whether the plain variant is so much faster that tails are packed for it.
    pub(super) by_lane: bool,
    /// For each number of rows, and in it of vectors: the variants.
    tiles: &'static [[TileFn<T>; 3]],
    /// For each element type, in the order of [`DType`].
    moves: [Option<Moves<T>>; 4],
    /// For each element type.
    stores: [unsafe fn(&Store<'_, T>); 4],
    /// Transposes a finished block.
    pub(super) turn: unsafe fn(&Turn<T>),
}

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
        self.tiles[(rows - 1) * self.vectors + vectors - 1][variant as usize]
    }

    /// The copies of operands of this type, if the accumulators can hold them.
    pub(super) fn moves(&self, dtype: DType) -> Option<&Moves<T>> {
        self.moves[dtype as usize].as_ref()
    }

    /// The store of accumulators as elements of this type.
    pub(super) fn store(&self, dtype: DType) -> unsafe fn(&Store<'_, T>) {
        self.stores[dtype as usize]
    }
}

/// An accumulator type with kernels.
pub(super) trait Real32Or64: Real {
    /// The kernels of an instruction set; with `pairs` those for products of two `bf16` at once.
    fn kernels(isa: Isa, pairs: bool) -> &'static Kernels<Self>;
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

            const fn stores<S>() -> [unsafe fn(&Store<'_, S::Elem>); 4]
            where
                S: Save<f16> + Save<bf16> + Save<f32> + Save<f64>,
            {
                [store::<S, f16>, store::<S, bf16>, store::<S, f32>, store::<S, f64>]
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
                by_lane: <$f32 as Simd>::BY_LANE,
                tiles: &[$([
                    tile::<$f32, $mr, $nv, { Variant::Plain as u8 }>,
                    tile::<$f32, $mr, $nv, { Variant::Tail as u8 }>,
                    tile::<$f32, $mr, $nv, { Variant::Table as u8 }>,
                ]),*],
                moves: [moves::<$f32, f16>(), moves::<$f32, bf16>(), moves::<$f32, f32>(), None],
                stores: stores::<$f32>(),
                turn: turn::<$f32>,
            };

            pub(super) static F32: Kernels<f32> = KERNELS_F32;

            pub(super) static F64: Kernels<f64> = Kernels {
                lanes: <$f64 as Simd>::LANES,
                rows: $rows,
                vectors: $vectors,
                depth: 1,
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
                ],
                stores: stores::<$f64>(),
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
pub(super) fn has_pairs(isa: Isa) -> bool {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => isa.is_available() && is_x86_feature_detected!("avx512bf16"),
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => std::arch::is_aarch64_feature_detected!("bf16"),
        _ => false,
    }
}

/// Instantiates the kernels for products of pairs of `bf16` in a module `pairs`; what touches sums
/// alone is that of the instruction set they belong to. Operands are always packed, so that no
/// kernel meets a tail or a table.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! instantiate_pairs {
    (
        $features:literal, $isa:ident, tiles: [$(($mr:literal $nv:literal))*]
    ) => {
        mod pairs {
            use super::super::pairs;
            use super::super::simd::$isa::Pairs;
            use super::*;

            instantiate_pairs!(@copy $features, panel_runs, Panel);
            instantiate_pairs!(@copy $features, panel_transposed, Panel);
            instantiate_pairs!(@copy $features, panel_scattered, Panel);
            instantiate_pairs!(@copy $features, rows, Rows);
            instantiate_pairs!(@copy $features, strips, Rows);

            #[target_feature(enable = $features)]
            unsafe fn tile<const MR: usize, const NV: usize>(t: &tile::TileArgs<f32>) {
                // SAFETY: the caller's contract is the same; the features are enabled here.
                unsafe { tile::tile::<Pairs, MR, NV, { Variant::Plain as u8 }>(t) }
            }

            const MOVES: Moves<f32> = Moves {
                panel_runs: panel_runs::<Pairs>,
                panel_transposed: panel_transposed::<Pairs>,
                panel_scattered: panel_scattered::<Pairs>,
                rows: rows::<Pairs>,
                strips: strips::<Pairs>,
            };

            pub(super) static F32: Kernels<f32> = Kernels {
                depth: pairs::DEPTH,
                tiles: &[$([tile::<$mr, $nv>; 3]),*],
                moves: [None, Some(MOVES), None, None],
                ..$isa::KERNELS_F32
            };
        }
    };
    (@copy $features:literal, $name:ident, $args:ident) => {
        #[target_feature(enable = $features)]
        unsafe fn $name<S: Zip>(args: &$args<'_, f32>) {
            // SAFETY: the caller's contract is the same; the features are enabled here.
            unsafe { pairs::$name::<S>(args) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
instantiate_pairs!(
    "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16", avx512,
    tiles: [
        (1 1) (1 2) (1 3) (2 1) (2 2) (2 3) (3 1) (3 2) (3 3) (4 1) (4 2) (4 3)
        (5 1) (5 2) (5 3) (6 1) (6 2) (6 3) (7 1) (7 2) (7 3) (8 1) (8 2) (8 3)
    ]
);

#[cfg(target_arch = "aarch64")]
instantiate_pairs!(
    "neon,bf16", neon,
    tiles: [
        (1 1) (1 2) (1 3) (2 1) (2 2) (2 3) (3 1) (3 2) (3 3) (4 1) (4 2) (4 3)
        (5 1) (5 2) (5 3) (6 1) (6 2) (6 3) (7 1) (7 2) (7 3)
    ]
);

instantiate!(
    portable, [], Portable<f32, 8>, Portable<f64, 4>, rows: 4, vectors: 1,
    tiles: [(1 1) (2 1) (3 1) (4 1)]
);

macro_rules! real32or64 {
    ($type:ty, $table:ident $(, $pairs:path)?) => {
        impl Real32Or64 for $type {
            fn kernels(isa: Isa, pairs: bool) -> &'static Kernels<$type> {
                match (isa, pairs) {
                    $(#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
                    (_, true) => &$pairs,)?
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

real32or64!(f32, F32, pairs::F32);
real32or64!(f64, F64);
