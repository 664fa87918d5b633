//! Rows of a table by number: [`Embedding`], and [`EmbeddingBag`] for bags of them.

use crate::init::OfLayer;
use crate::{Forward, Init, Module};
use zyx_core::{DType, Param, Result, Tensor};

/// Rows of a table by number. Parameter `weight` `[rows, width]`, standard normal at first.
#[derive(Clone, Debug, Module)]
pub struct Embedding {
    /// `[rows, width]`.
    pub weight: Param,
    /// The row that stands for no word: zeros at first, and no gradient reaches it.
    pub padding: Option<usize>,
}

impl Embedding {
    /// A table of `rows` vectors of `width` elements.
    ///
    /// ```
    /// # use zyx::nn::{Embedding, Forward, Init};
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = Embedding::new(10, 4, init)?;
    /// let x = Tensor::ones([5], DType::I64, &device);
    /// assert_eq!(layer.forward(&x)?.shape().dims(), [5, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the dtype is not a float, or the device fails.
    #[track_caller]
    pub fn new(rows: usize, width: usize, init: &mut Init) -> Result<Embedding> {
        Ok(Embedding { weight: Param::new(init.normal([rows, width], 1.0)?), padding: None })
    }

    /// A table whose row `padding` stands for no word.
    ///
    /// ```
    /// # use zyx::nn::{Embedding, Forward, Init};
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = Embedding::with_padding(10, 2, 0, init)?;
    /// let words = Tensor::new([0i64], &device)?;
    /// assert_eq!(layer.forward(&words)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such row, or as [`Embedding::new`].
    #[track_caller]
    pub fn with_padding(
        rows: usize,
        width: usize,
        padding: usize,
        init: &mut Init,
    ) -> Result<Embedding> {
        if padding >= rows {
            let reason = format!("{padding} is not one of {rows} rows");
            return Err(Init::refuse("Embedding::with_padding", reason));
        }
        let table = init.normal([rows, width], 1.0)?;
        let row = Tensor::iota(rows, DType::I64, &init.device).unsqueeze(-1)?;
        let table = row.eq(padding as i64)?.where_(table.zeros_like(), table)?;
        table.realize()?;
        Ok(Embedding { weight: Param::new(table), padding: Some(padding) })
    }
}

impl Forward for Embedding {
    /// The rows of integers `x`, along a new last axis; a number out of range gives zeros.
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let rows = self.weight.tensor().embedding(x).of_layer(&self.weight)?;
        match self.padding {
            Some(padding) => x.eq(padding as i64)?.unsqueeze(-1)?.where_(rows.detach(), rows),
            None => Ok(rows),
        }
    }
}

/// What an [`EmbeddingBag`] makes of the rows of a bag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BagMode {
    /// Their sum.
    Sum,
    /// Their mean; zeros for an empty bag.
    #[default]
    Mean,
    /// The largest of each element; zeros for an empty bag.
    Max,
}

/// Bags of rows of a table, each bag made one row. Parameter `weight` `[rows, width]`, standard
/// normal at first.
#[derive(Clone, Debug, Module)]
pub struct EmbeddingBag {
    /// `[rows, width]`.
    pub weight: Param,
    /// What becomes of a bag; the mean.
    #[module(skip)]
    pub mode: BagMode,
}

impl EmbeddingBag {
    /// A table of `rows` vectors of `width` elements.
    ///
    /// # Errors
    /// When the dtype is not a float, or the device fails.
    #[track_caller]
    pub fn new(rows: usize, width: usize, mode: BagMode, init: &mut Init) -> Result<EmbeddingBag> {
        Ok(EmbeddingBag { weight: Param::new(init.normal([rows, width], 1.0)?), mode })
    }

    /// The bags of a list `[n]` of row numbers: bag `i` begins at `offsets[i]` and ends where the
    /// next begins. The result is `[bags, width]`.
    ///
    /// ```
    /// use zyx::nn::{BagMode, EmbeddingBag, Init};
    /// use zyx::Tensor;
    /// let device = zyx::device()?;
    /// let bags = EmbeddingBag::new(10, 4, BagMode::Sum, &mut Init::new(0, &device))?;
    /// let rows = Tensor::new([1i64, 2, 4, 5, 4, 3], &device)?;
    /// let offsets = Tensor::new([0i64, 2, 2], &device)?;
    /// let y = bags.bags(&rows, &offsets)?;
    /// assert_eq!(y.shape().dims(), [3, 4]);
    /// assert_eq!(y.select_index(0, 1)?.to_vec::<f32>()?, [0.0; 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When one of them is not a list of integers.
    #[track_caller]
    pub fn bags(&self, rows: &Tensor, offsets: &Tensor) -> Result<Tensor> {
        if rows.rank() != 1 || offsets.rank() != 1 || !offsets.dtype().is_int() {
            let reason = format!("needs two lists of integers, not {rows:?} and {offsets:?}");
            return Err(Init::refuse("EmbeddingBag", reason));
        }
        let n = rows.numel();
        // Which bag a place belongs to: `[bags, n]`.
        let place = Tensor::iota(n, DType::I64, rows.device());
        let start = offsets.cast(DType::I64).unsqueeze(1)?;
        let bag = place.ge(&start)?.cast(DType::I64).sum(0)?.sub(1i64)?;
        let bags = Tensor::iota(offsets.numel(), DType::I64, rows.device()).unsqueeze(1)?;
        let inside = bag.eq(&bags)?;
        let values = self.weight.tensor().embedding(rows)?;
        self.combine(&values.unsqueeze(0)?, &inside)
    }

    /// Values `[bags or 1, n, width]` of which `inside` `[bags, n]` belong to each bag.
    #[track_caller]
    fn combine(&self, values: &Tensor, inside: &Tensor) -> Result<Tensor> {
        let weight = inside.cast(values.dtype()).unsqueeze(-1)?;
        let count = inside.cast(values.dtype()).sum_keepdim(-1)?.maximum(1.0)?;
        match self.mode {
            BagMode::Sum => values.mul(weight)?.sum(1),
            BagMode::Mean => values.mul(weight)?.sum(1)?.div(count),
            BagMode::Max => {
                let here = weight.gt(0.0)?;
                let lowest = values.zeros_like().sub(f64::INFINITY)?;
                let most = here.where_(values, lowest)?.max(1)?;
                inside.cast(DType::I64).sum_keepdim(-1)?.gt(0i64)?.where_(&most, most.zeros_like())
            }
        }
    }
}

impl Forward for EmbeddingBag {
    /// Bags `[bags, n]` of equal length.
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if x.rank() != 2 {
            let reason = format!("needs bags of one length, not shape {}", x.shape());
            return Err(Init::refuse("EmbeddingBag", reason)).of_layer(&self.weight);
        }
        let inside = Tensor::ones(x.shape(), DType::Bool, x.device());
        let rows = self.weight.tensor().embedding(x).of_layer(&self.weight)?;
        self.combine(&rows, &inside)
    }
}
