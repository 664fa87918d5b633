//! What a library kernel may be asked to do.
//!
//! A call is described by its meaning, not by a routine's name, so that each device can answer
//! with whatever it has. Accepted calls are programs like any other.

use super::attention::AttentionSpec;
use super::convolution::{ConvolutionSpec, Convolved};
use super::flash::FlashSpec;
use super::raw::RawKernel;
use crate::dtype::DType;
use crate::ir::Kernel;
use std::sync::Arc;

/// One dimension of a contraction with the strides (in elements) of operand A, operand B and the
/// result C along it. Stride 0 means the operand does not depend on the dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContractDim {
    /// Length of the dimension.
    pub len: usize,
    /// Stride of A.
    pub a: isize,
    /// Stride of B.
    pub b: isize,
    /// Stride of C.
    pub c: isize,
}

/// `C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n]`, each of `b`, `m`, `n`, `k` a list of
/// dimensions. Overlapping strides express convolution windows, negative ones flips.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContractSpec {
    /// Dtype of A.
    pub a: DType,
    /// Dtype of B.
    pub b: DType,
    /// Dtype of C.
    pub c: DType,
    /// Dtype products are summed in.
    pub acc: DType,
    /// Whether a bias is added to sums before they are rounded to `c`: a row of that dtype, contiguous,
    /// with a number for each position of n. Asked for where [`Caps::biases`](super::Caps::biases) says so.
    pub bias: bool,
    /// Element offset of A's first element, then B's (flips start at the end).
    pub offset: [isize; 2],
    /// Dimensions of A, B and C.
    pub batch: Vec<ContractDim>,
    /// Dimensions of A and C (`b` is 0).
    pub m: Vec<ContractDim>,
    /// Dimensions of B and C (`a` is 0).
    pub n: Vec<ContractDim>,
    /// Summed dimensions of A and B (`c` is 0).
    pub k: Vec<ContractDim>,
}

/// What a library kernel may be asked to do.
///
/// Devices rely on it that kernels within a call keep to the blocks that the library hands them, so
/// the core alone makes calls that have any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Call {
    /// A contraction. Arguments: A, B, the bias if there is one, then C. With a prologue its own buffers (all its `Param`s
    /// but the first) stand between the operands, without the one it computes, and C; with an
    /// epilogue the epilogue's own replace C. The kernels' own scalars follow alike.
    #[non_exhaustive]
    Contract {
        /// Shapes, strides and dtypes.
        spec: ContractSpec,
        /// What computes an operand block by block instead of it being read from memory. Asked for
        /// where [`Caps::prologues`](super::Caps::prologues) says so.
        prologue: Option<Prologue>,
        /// An elementwise kernel run on each finished tile of C while it is in cache.
        ///
        /// Its `Param` 0 is the tile of accumulated values (dtype `acc`), row-major with n
        /// contiguous; its `Var`s 0–5 (`i64`) are: batch index, first m, first n, rows, columns
        /// and row stride of the tile, with b, m, n counted over their merged dimensions.
        epilogue: Option<Arc<Kernel>>,
    },
    /// A convolution, or one of its gradients. Asked for where
    /// [`Caps::convolutions`](super::Caps::convolutions) says so. Arguments: the two of image, kernel and
    /// result that are operands, in this order, then the third.
    Convolve(ConvolutionSpec),
    /// Scaled dot-product attention. Arguments: those of the [specification](AttentionSpec).
    Attend(Box<AttentionSpec>),
    /// Products of a matrix that is computed in blocks and never stored. Asked for where
    /// [`Caps::flash`](super::Caps::flash) gives a block. Arguments: the buffers of all
    /// [operands](FlashSpec::operands), then of the update beyond those that both kernels start
    /// with, then of the finishing kernel; then their scalars alike.
    #[non_exhaustive]
    Flash {
        /// Shapes, strides and dtypes.
        spec: FlashSpec,
        /// What runs on the tiles of each block.
        update: Arc<Kernel>,
        /// What runs when all columns of a block of rows are done.
        finish: Arc<Kernel>,
    },
    /// A kernel in the language of one backend, which only plans that name it have: a backend is asked to
    /// [compile](super::Device::compile_raw) it. Arguments: those of [`RawKernel::arguments`].
    Raw(RawKernel),
    /// Several computations in one launch, none of which reads what another writes. Asked for where
    /// [`Caps::fused_calls`](super::Caps::fused_calls) says so. Arguments: the buffers, then the scalars
    /// of all parts, each once; the parts say which are theirs.
    #[non_exhaustive]
    Fused {
        /// The computations.
        parts: Vec<Part>,
    },
}

/// An operand of a contraction that is computed as it is needed and never stored: weights of few
/// bits, whose numbers the product alone needs.
///
/// The steps of k are counted in *runs*, the lengths of the innermost dimension of k, so that what is
/// the same along a run (a scale) is found without a division.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prologue {
    /// 0 if it computes A, 1 for B. The strides and the offset that the specification has for this
    /// operand are those of a matrix that does not exist.
    pub operand: usize,
    /// Elementwise.
    ///
    /// Its `Param` 0 is the block to compute (dtype `acc`), row-major with k contiguous; its `Var`s
    /// 0–7 (`i64`) are: batch index, first m (n for B), first run, first step in a run, rows, runs,
    /// steps of each run and row stride of the block, with b, m and n counted over their merged
    /// dimensions. A block has either whole runs or, of runs longer than [`Prologue::WHOLE`], steps
    /// of a single one.
    pub kernel: Arc<Kernel>,
}

impl Prologue {
    /// Steps up to which runs are never cut, so that kernels have loops of known lengths.
    pub const WHOLE: usize = 256;
}

/// `convolve_` and what is computed; images, groups, channels and outputs; then of each axis the lengths
/// of image and kernel, with stride and dilation.
fn convolution(spec: &ConvolutionSpec) -> String {
    let computes = match spec.computes {
        Convolved::Result => "result",
        Convolved::Image => "image",
        Convolved::Kernel => "kernel",
    };
    let (images, groups) = (spec.images, spec.groups);
    let mut name =
        format!("convolve_{computes}_{images}x{groups}x{}x{}", spec.channels, spec.outputs);
    for axis in &spec.axes {
        name += &format!("_{}k{}s{}d{}", axis.image, axis.kernel, axis.stride, axis.dilation);
    }
    format!("{name}_{}_{}", spec.operands, spec.computed)
}

/// `attention_`, batch, heads and those of keys; queries, keys and their elements; the dtype.
fn attention(spec: &AttentionSpec) -> String {
    let AttentionSpec { batch, heads, key_heads, queries, keys, width, value_width, .. } = spec;
    let widths =
        if width == value_width { format!("{width}") } else { format!("{width}_{value_width}") };
    let causal = if spec.causal { "_causal" } else { "" };
    let heads = format!("{batch}x{heads}_{key_heads}");
    format!("attention{causal}_{heads}_{queries}x{keys}x{widths}_{}", spec.dtype)
}

/// What one part of [`Call::Fused`] does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PartWork {
    /// A kernel, not tuned or legalised yet.
    Kernel(Arc<Kernel>),
    /// A call that the device accepts alone, no `Fused`.
    Call(Call),
}

/// One computation of several in a launch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// What it does.
    pub work: PartWork,
    /// Positions of its buffers, in its own order, among the buffers of the launch.
    pub buffers: Vec<u16>,
    /// Positions of its scalars among the scalars of the launch.
    pub scalars: Vec<u16>,
}

impl Part {
    fn bytes(&self) -> usize {
        let work = match &self.work {
            PartWork::Kernel(kernel) => kernel.bytes(),
            PartWork::Call(call) => call.bytes(),
        };
        size_of::<Part>() + 2 * (self.buffers.len() + self.scalars.len()) + work
    }
}

impl Call {
    /// A contraction of operands in memory.
    pub fn contract(spec: ContractSpec) -> Call {
        Call::Contract { spec, prologue: None, epilogue: None }
    }

    /// The kernels that the library runs within.
    pub fn kernels(&self) -> impl Iterator<Item = &Arc<Kernel>> {
        let pair = match self {
            Call::Contract { prologue, epilogue, .. } => {
                [prologue.as_ref().map(|prologue| &prologue.kernel), epilogue.as_ref()]
            }
            Call::Flash { update, finish, .. } => [Some(update), Some(finish)],
            Call::Convolve(_) | Call::Attend(_) | Call::Raw(_) | Call::Fused { .. } => [None, None],
        };
        pair.into_iter().flatten()
    }

    /// Bytes of memory it takes, roughly.
    pub fn bytes(&self) -> usize {
        let own = match self {
            Call::Fused { parts } => parts.iter().map(Part::bytes).sum(),
            _ => 512,
        };
        own + self.kernels().map(|kernel| kernel.bytes()).sum::<usize>()
    }

    /// What the call computes, for profiles and messages: the lengths of the merged dimensions
    /// batch, m, n and k, the dtypes, and the names of prologue and epilogue.
    pub fn name(&self) -> String {
        let spec = match self {
            Call::Contract { spec, .. } => spec,
            Call::Convolve(spec) => return convolution(spec),
            Call::Attend(spec) => return attention(spec),
            Call::Raw(kernel) => return kernel.name.clone(),
            Call::Flash { spec, finish, .. } => {
                let (rows, columns) = (spec.rows, spec.columns);
                return format!("flash_{}x{rows}x{columns}_{}", spec.batches(), finish.name());
            }
            Call::Fused { parts } => {
                let name = |part: &Part| match &part.work {
                    PartWork::Kernel(kernel) => kernel.name().to_owned(),
                    PartWork::Call(call) => call.name(),
                };
                return parts.iter().map(name).collect::<Vec<_>>().join("+");
            }
        };
        let merged = |dims: &[ContractDim]| dims.iter().map(|d| d.len).product::<usize>();
        let mut name = format!(
            "contract_{}x{}x{}x{}_{}_{}",
            merged(&spec.batch),
            merged(&spec.m),
            merged(&spec.n),
            merged(&spec.k),
            spec.a,
            spec.c
        );
        if spec.bias {
            name += "_bias";
        }
        for kernel in self.kernels() {
            name.push('_');
            name.push_str(kernel.name());
        }
        name
    }
}
