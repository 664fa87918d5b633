//! Flash attention: products of a matrix that is computed block by block and never stored.
//!
//! Attention is two contractions with a function of each row between them:
//! `softmax(q k^T) v`. Its middle, the scores, has as many elements as queries times keys. A
//! flash attention computes blocks of it (*tiles*), passes each to a kernel that finishes it and
//! keeps what has to be known of a row so far (its *state*), and multiplies it with a block of the
//! values into *sums* that stay in cache (Milakov and Gimelshein 2018; Rabe and Staats 2021; Dao et
//! al. 2022). What the kernels do is not the library's business, so flash attention is any chain of
//! this kind: softmax is one, the gradients of attention are others.

use crate::dtype::DType;
use crate::scalar::Scalar;

/// One operand of a product in flash attention.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlashOperand {
    /// Dtype of its elements: a float.
    pub dtype: DType,
    /// Elements in front of its first.
    pub offset: isize,
    /// Stride, in elements, along each dimension of the batch.
    pub batch: Vec<isize>,
    /// Stride along the rows or the columns of the tile. Of what generated code loads, these may be two
    /// dimensions; it is 0 then.
    pub along: isize,
    /// Lengths and strides of its other dimensions, outermost first: those a tile sums over, those
    /// a sum has.
    pub inner: Vec<(usize, isize)>,
}

impl FlashOperand {
    /// Number of indices of the dimensions that are neither batch nor along the tile.
    pub fn width(&self) -> usize {
        self.inner.iter().map(|dim| dim.0).product()
    }
}

/// A matrix of products: `tile[b, row, column] = sum over e of a[b, row, e] * b[b, column, e]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlashTile {
    /// The operand along rows.
    pub a: FlashOperand,
    /// The operand along columns; the lengths of its inner dimensions are those of `a`.
    pub b: FlashOperand,
}

/// `sum[b, row, n] += sum over columns of tile[b, row, column] * b[b, column, n]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlashSum {
    /// Which tile, as the update leaves it; the spare ones come after those that are products.
    pub tile: usize,
    /// The operand along columns.
    pub b: FlashOperand,
}

/// What flash attention computes, but for its kernels.
///
/// For every index of the batch and every block of rows: sums start at zero and states at their
/// first value; for every block of columns, in order, the tiles are computed, the update kernel
/// runs and the sums are added to; then the finishing kernel runs, which stores the results. A
/// block of columns that no row of the block sees may be left out.
///
/// Both kernels have the same first arguments: a buffer of `block[0] * block[1]` accumulators for
/// each tile and each spare one, one of `block[0]` times the sum's width for each sum, one of
/// `block[0]` for each state, all row-major and alive for the block of rows only; as `Var`s
/// (`i64`) the position in the merged batch, the first row, the first column, the number of rows
/// and of columns. Their other arguments follow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlashSpec {
    /// Dtype of tiles, sums and states: `f32` or `f64`.
    pub acc: DType,
    /// Lengths of the dimensions of the batch, outermost first.
    pub batch: Vec<usize>,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// The products at the start of each block.
    pub tiles: Vec<FlashTile>,
    /// Further blocks of the size of a tile, for the update.
    pub spare: usize,
    /// The products at its end.
    pub sums: Vec<FlashSum>,
    /// First value of each state of a row.
    pub state: Vec<Scalar>,
    /// Most rows and columns of a block.
    pub block: [usize; 2],
    /// The least and the greatest difference of a column's position and a row's that matter, where
    /// that is known: tiles beyond change nothing.
    pub band: [Option<i64>; 2],
    /// How many rows, and how many columns, have positions of their own: row `i` is at
    /// `i % period[0]`, as heads that share keys follow each other.
    pub period: [usize; 2],
}

/// Number of `Var`s that both kernels of flash attention start with.
pub const FLASH_VARS: usize = 5;

impl FlashSpec {
    /// Number of buffers that both kernels start with.
    pub fn buffers(&self) -> usize {
        self.tiles.len() + self.spare + self.sums.len() + self.state.len()
    }

    /// All operands, in the order of the launch's arguments: of the tiles, then of the sums.
    pub fn operands(&self) -> impl Iterator<Item = &FlashOperand> {
        let tiles = self.tiles.iter().flat_map(|tile| [&tile.a, &tile.b]);
        tiles.chain(self.sums.iter().map(|sum| &sum.b))
    }

    /// Number of indices of the batch.
    pub fn batches(&self) -> usize {
        self.batch.iter().product()
    }

    /// Whether a block of rows sees anything of a block of columns.
    pub fn is_seen(&self, rows: std::ops::Range<usize>, columns: std::ops::Range<usize>) -> bool {
        let positions = |range: std::ops::Range<usize>, period: usize| {
            let (first, last) = (range.start, range.end.saturating_sub(1));
            match first / period == last / period {
                true => [first % period, last % period].map(|at| at as i64),
                false => [0, period as i64 - 1],
            }
        };
        let rows = positions(rows, self.period[0]);
        let columns = positions(columns, self.period[1]);
        let (least, greatest) = (columns[0] - rows[1], columns[1] - rows[0]);
        self.band[0].is_none_or(|low| greatest >= low)
            && self.band[1].is_none_or(|high| least <= high)
    }

    /// Multiplications of all products, if nothing is left out.
    pub fn multiplications(&self) -> f64 {
        let widths: usize = self.operands().map(FlashOperand::width).sum::<usize>();
        // A tile counts its inner dimensions twice, once for each operand.
        let twice: usize = self.tiles.iter().map(|tile| tile.a.width()).sum();
        (widths - twice) as f64 * self.batches() as f64 * self.rows as f64 * self.columns as f64
    }
}
