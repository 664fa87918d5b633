//! Tensors: immutable, lazy, shared.
//!
//! A [`Tensor`] is a handle to a node that owns its sources; the graph of a tensor is what it
//! reaches. Building takes no lock that two tensors share. Nothing is computed until a value is
//! asked for ([`Tensor::realize`], [`Tensor::to_vec`], printing).
//!
//! *History.* Realizing an untracked tensor frees how it was computed; a tracked one keeps it
//! until its last handle goes, so that gradients can flow through. [`Tensor::tracked`] marks a
//! leaf (a parameter); everything computed from it is tracked. Dropping is iterative: a chain of
//! a million ops drops without recursion.

mod activation;
mod arrange;
mod attention;
mod axes;
mod batch;
mod clamp;
mod convolution;
mod convolution_nd;
mod create;
mod cumulative;
mod data;
mod derivatives;
mod diagonal;
mod display;
mod distance;
mod distributions;
mod einsum;
mod einsum_parse;
mod einsum_path;
mod elementwise;
mod explain;
mod factor;
mod fft;
mod formula;
mod gather;
mod grids;
mod group;
mod index;
mod indexing;
mod indices;
mod interpolate;
mod jit;
mod join;
mod kernel;
mod linalg;
mod loss;
mod loss_ctc;
mod loss_likelihood;
mod loss_margin;
mod math;
mod math_binary;
mod movement;
mod normalize;
mod operand;
mod operators;
mod padding;
mod param;
mod pool;
mod pool_nd;
mod products;
mod quantized;
mod random;
mod random_discrete;
mod reduce;
mod scatter;
mod segments;
mod select;
mod series;
mod slice_range;
mod solve;
mod sort;
mod spectral;
mod split;
mod statistics;
mod steps;
mod stft;
mod widened;

pub use attention::Attention;
pub use axes::Axes;
pub use convolution::{Conv1dOptions, Conv2dOptions};
pub use convolution_nd::{Conv3dOptions, ConvTransposeOptions};
pub use data::Nested;
pub(crate) use derivatives::behind;
pub use einsum::EinsumPath;
pub use fft::FftNorm;
pub use grids::Indexing;
pub use indexing::Index;
pub(crate) use indices::Check;
pub use interpolate::Interpolation;
pub use jit::Jit;
pub use kernel::{Kernel, KernelGradient, KernelStep, RawLaunch};
pub use loss::{CrossEntropy, Reduction};
pub use loss_ctc::Ctc;
pub use loss_likelihood::PoissonNll;
pub use loss_margin::{MultiMargin, TripletMargin};
pub use normalize::BatchNorm;
pub use operand::Operand;
pub use padding::PadMode;
pub use param::Param;
pub(crate) use param::WeakParam;
pub use pool::{Pool, Pool2d};
pub use quantized::{Float8, QuantizedMatrix};
pub use random::Rng;
pub use scatter::ScatterReduce;
pub use slice_range::SliceRange;
pub use spectral::MatrixNorm;
pub use statistics::Unique;
pub use steps::{Step, StepOp, Steps};
pub use stft::Stft;

use crate::dtype::DType;
use crate::error::{Error, Operands, Result};
use crate::graph::Op;
use crate::origin::Origin;
use crate::runtime::{Bound, Buffer, Device, Droppable, Note};
use crate::scalar::Scalar;
use crate::shape::Shape;
use std::panic::Location;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// An immutable n-dimensional array on a device, computed when needed.
///
/// Cheap to clone (one pointer), `Send + Sync`, not generic over backend, rank or dtype.
///
/// ```
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3], &device)?;
/// let y = (&x * &x).sum(..)?;
/// assert_eq!(y.item::<f32>()?, 14.0);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor(Arc<Node>);

pub(crate) struct Node {
    shape: Shape,
    device: Device,
    dtype: DType,
    /// [`TRACKED`], [`EMPTY`], [`FLAGGED`], [`NEEDED`] and the length of a chain.
    state: AtomicU8,
    origin: Origin,
    /// The id of the parameter whose leaf this is, 0 of any other tensor.
    param: u32,
    history: Mutex<History>,
    value: OnceLock<Buffer>,
    /// The last visit that numbered it, and the number; see [`Tensor::mark`]. On a device in checked
    /// mode, which visits nothing so, the number of a note.
    mark: AtomicU64,
}

/// Properties that a node takes from its sources.
#[derive(Clone, Copy, Default)]
struct Inherited {
    tracked: bool,
    flagged: bool,
}

/// State of a node: a pending tensor that it is computed from is an index with a flag; see `indices.rs`.
const FLAGGED: u8 = 1;
/// State of a node: a part of it was computed for another value, and it was not kept.
const NEEDED: u8 = 2;
/// State of a node: gradients can be asked for.
const TRACKED: u8 = 4;
/// State of a node: it has no elements.
const EMPTY: u8 = 8;
/// State of a node, from this bit on: how many kept values came before it in a chain.
const CHAIN_SHIFT: u32 = 4;
/// Most values of a chain whose histories stay though they were not asked for.
const LONGEST_CHAIN: u8 = 6;

impl Node {
    /// Inlined, as what calls it, so that fields are written where the node is going to be.
    #[inline]
    fn new(
        history: History,
        shape: Shape,
        dtype: DType,
        device: Device,
        Inherited { tracked, flagged }: Inherited,
        note: u64,
        origin: Origin,
    ) -> Node {
        let (history, value, mark) = (Mutex::new(history), OnceLock::new(), AtomicU64::new(note));
        let bit = |holds: bool, bit: u8| if holds { bit } else { 0 };
        let state = bit(flagged, FLAGGED) | bit(tracked, TRACKED) | bit(shape.contains(&0), EMPTY);
        let state = AtomicU8::new(state);
        Node { shape, device, dtype, state, origin, param: 0, history, value, mark }
    }

    #[inline]
    fn is_tracked(&self) -> bool {
        self.state.load(Relaxed) & TRACKED != 0
    }
}

/// How a node was computed.
#[derive(Default)]
pub(crate) enum History {
    /// A leaf: data from outside, or detached.
    Leaf,
    /// Known.
    Expr(Expr),
    /// Known, and so is the value, computed on the way to another one: the device may drop it.
    Kept(Box<Kept>),
    /// Given up by [`Tensor::outlive`] at the end of a long chain of kept values. A gradient that reaches it is
    /// an error.
    Forgotten,
    /// Computed and freed.
    #[default]
    Released,
}

impl History {
    /// How a node is computed, if that is known.
    pub(crate) fn expr(&self) -> Option<&Expr> {
        match self {
            History::Expr(expr) => Some(expr),
            History::Kept(kept) => Some(&kept.expr),
            History::Leaf | History::Forgotten | History::Released => None,
        }
    }

    fn expr_mut(&mut self) -> Option<&mut Expr> {
        match self {
            History::Expr(expr) => Some(expr),
            History::Kept(kept) => Some(&mut kept.expr),
            History::Leaf | History::Forgotten | History::Released => None,
        }
    }
}

/// A tensor that is not held: the program alone decides how long it is there.
pub(crate) struct WeakTensor(Weak<Node>);

impl WeakTensor {
    /// Whether the tensor is still there.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// The value, if the tensor is still there and that is known.
    pub(crate) fn value(&self) -> Option<Buffer> {
        self.0.upgrade().and_then(|node| Tensor(node).known_value())
    }
}

/// A value that was computed on the way to another one, and how to compute it again.
pub(crate) struct Kept {
    pub(crate) expr: Expr,
    pub(crate) buffer: Buffer,
}

/// An op and its sources, the first `None` ending them.
#[derive(Clone)]
pub(crate) struct Expr {
    pub(crate) op: Op,
    pub(crate) srcs: [Option<Tensor>; 3],
}

impl Expr {
    /// The sources the value is computed from: an alias's inputs are there for gradients alone.
    pub(crate) fn operands(&self) -> impl DoubleEndedIterator<Item = &Tensor> {
        let n = if let Op::Alias(_) = self.op { 1 } else { 3 };
        self.srcs[..n].iter().flatten()
    }

    /// The inputs of an alias's gradient rule, in order. Of more than two, the first is a source of the alias and the
    /// others are sources of a chain of aliases: each has the next input and the rest of the chain.
    pub(crate) fn inputs(&self) -> Vec<Tensor> {
        let mut inputs = Vec::new();
        inputs.extend(self.srcs[1].clone());
        let mut rest = self.srcs[2].clone();
        while let Some(last) = rest.take() {
            match last.listed() {
                Some([input, others]) => {
                    inputs.push(input);
                    rest = Some(others);
                }
                None => inputs.push(last),
            }
        }
        inputs
    }

    /// Whether the node only lists inputs for the rule of another one.
    pub(crate) fn is_list(&self) -> bool {
        matches!(&self.op, Op::Alias(Some(rule)) if rule.is_list)
    }

    /// The source of a copy from another device than `here`, where the node is. All other sources
    /// are on their node's device.
    #[inline]
    pub(crate) fn source_elsewhere(&self, here: &Device) -> Option<&Tensor> {
        let Op::Copy = self.op else { return None };
        self.srcs[0].as_ref().filter(|source| source.device() != here)
    }
}

const _: () = {
    const fn send_sync<T: Send + Sync>() {}
    send_sync::<Tensor>();
    // With the two counts of the `Arc` and a word of the allocator a node fills 128 bytes, the most that the usual
    // allocator of Linux takes back without looking at the neighbours. Locks of other systems are larger.
    assert!(
        size_of::<Node>() <= 104 || !cfg!(target_os = "linux"),
        "a pending tensor costs at most 128 bytes"
    );
};

impl Tensor {
    /// A pending node.
    #[track_caller]
    pub(crate) fn pending<const N: usize>(
        op: Op,
        srcs: [&Tensor; N],
        shape: Shape,
        dtype: DType,
    ) -> Tensor {
        Tensor::pending_inlined(op, srcs, shape, dtype)
    }

    /// [`Tensor::pending`] for the ops that programs have most of. What could panic comes first, so
    /// that fields are written once, where the node is going to be.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn pending_inlined<const N: usize>(
        op: Op,
        srcs: [&Tensor; N],
        shape: Shape,
        dtype: DType,
    ) -> Tensor {
        let here = &srcs[0].0.device;
        let note = if here.is_checked() { here.note(Location::caller(), None) } else { 0 };
        let device = here.clone();
        let tracked = srcs.iter().any(|src| src.0.is_tracked()) && dtype.is_float();
        let mut owned = [None, None, None];
        for (slot, src) in owned.iter_mut().zip(srcs) {
            *slot = Some(src.clone());
        }
        let of = Inherited { tracked, flagged: srcs.iter().any(|src| src.is_flagged()) };
        let history = History::Expr(Expr { op, srcs: owned });
        let origin = Origin::here();
        Tensor(Arc::new(Node::new(history, shape, dtype, device, of, note, origin)))
    }

    /// A pending node without sources.
    #[track_caller]
    pub(crate) fn source(op: Op, shape: Shape, dtype: DType, device: &Device) -> Tensor {
        Tensor::node(Expr { op, srcs: [None, None, None] }, shape, dtype, device.clone(), false)
    }

    #[inline]
    #[track_caller]
    pub(crate) fn node(
        expr: Expr,
        shape: Shape,
        dtype: DType,
        device: Device,
        tracked: bool,
    ) -> Tensor {
        let note = if device.is_checked() { device.note(Location::caller(), None) } else { 0 };
        let flagged = expr.srcs.iter().flatten().any(Tensor::is_flagged)
            || matches!(&expr.op, Op::Within(check) if check.flagged.is_some());
        let (history, origin) = (History::Expr(expr), Origin::here());
        let of = Inherited { tracked, flagged };
        Tensor(Arc::new(Node::new(history, shape, dtype, device, of, note, origin)))
    }

    /// The same computation of other sources, or the same value, untracked and without a note.
    #[track_caller]
    pub(crate) fn twin(&self, op: Option<&Op>, sources: impl Iterator<Item = Tensor>) -> Tensor {
        let (shape, dtype) = (self.0.shape.clone(), self.0.dtype);
        let op = match (op, self.0.value.get()) {
            (Some(Op::Alias(_) | Op::Within(_)), _) => Op::Alias(None),
            (Some(op), _) => op.clone(),
            (None, Some(buffer)) => return Tensor::leaf(buffer.clone(), shape, dtype),
            (None, None) => return self.clone(),
        };
        let mut srcs = [None, None, None];
        srcs.iter_mut().zip(sources).for_each(|(slot, source)| *slot = Some(source));
        let history = History::Expr(Expr { op, srcs });
        let (device, origin) = (self.0.device.clone(), self.0.origin);
        let of = Inherited::default();
        Tensor(Arc::new(Node::new(history, shape, dtype, device, of, 0, origin)))
    }

    /// Where it was made.
    pub(crate) fn origin(&self) -> Origin {
        self.0.origin
    }

    /// What checked mode noted when this was made.
    pub(crate) fn note(&self) -> Option<Note> {
        self.0.device.noted(self.0.mark.load(Relaxed))
    }

    /// Has the note of another tensor from now on, if checked mode is on.
    pub(crate) fn take_note_of(&self, other: &Tensor) {
        if self.0.device.is_checked() {
            self.0.mark.store(other.0.mark.load(Relaxed), Relaxed);
        }
    }

    /// This index, of which checked mode knows the bound.
    #[track_caller]
    fn noted(&self, bound: Bound) -> Tensor {
        let note = self.0.device.note(Location::caller(), Some(bound));
        let expr = Expr { op: Op::Alias(None), srcs: [Some(self.clone()), None, None] };
        let (shape, device) = (self.0.shape.clone(), self.0.device.clone());
        let (history, dtype, origin) = (History::Expr(expr), self.0.dtype, self.0.origin);
        let of = Inherited::default();
        Tensor(Arc::new(Node::new(history, shape, dtype, device, of, note, origin)))
    }

    /// Whether its value is computed by indices of which a flag tells whether they are in range.
    pub(crate) fn is_flagged(&self) -> bool {
        self.0.state.load(Relaxed) & FLAGGED != 0 && self.0.value.get().is_none()
    }

    /// A leaf that holds `buffer`.
    #[track_caller]
    pub(crate) fn leaf(buffer: Buffer, shape: Shape, dtype: DType) -> Tensor {
        let device = buffer.device().clone();
        let of = Inherited::default();
        let node = Node::new(History::Leaf, shape, dtype, device, of, 0, Origin::UNKNOWN);
        let _ = node.value.set(buffer);
        Tensor(Arc::new(node))
    }

    /// A leaf without a value, for which something else will stand: realizing what depends on it
    /// is an error.
    #[track_caller]
    pub(crate) fn unknown(shape: Shape, dtype: DType, device: &Device, tracked: bool) -> Tensor {
        let (history, origin) = (History::Leaf, Origin::UNKNOWN);
        let of = Inherited { tracked, flagged: false };
        Tensor(Arc::new(Node::new(history, shape, dtype, device.clone(), of, 0, origin)))
    }

    /// The extents of the axes.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.shape().dims(), [2, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    /// The type of the elements.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.dtype(), DType::F32);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The device it is, or will be, stored on.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.device().spec(), "reference:0");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Number of axes.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.rank(), 2);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn rank(&self) -> usize {
        self.0.shape.rank()
    }

    /// Number of elements.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.numel(), 4);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn numel(&self) -> usize {
        self.0.shape.numel()
    }

    /// Whether it has no elements.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.state.load(Relaxed) & EMPTY != 0
    }

    /// Whether gradients can flow through this tensor after it was realized.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert!(!x.is_tracked() && x.tracked().exp().is_tracked());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn is_tracked(&self) -> bool {
        self.0.is_tracked()
    }

    /// Whether the value has been computed.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let y = x.exp();
    /// assert!(!y.is_realized());
    /// y.realize()?;
    /// assert!(y.is_realized());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn is_realized(&self) -> bool {
        self.0.value.get().is_some()
    }

    /// The same values as a tracked leaf: a parameter. Everything computed from it keeps its
    /// history, so [`Tensor::grad`] works even after values were read.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let w = Tensor::new(3f32, &device)?.tracked();
    /// let loss = w.square();
    /// assert_eq!(loss.item::<f32>()?, 9.0);
    /// // The value was read, and the gradient is there all the same.
    /// let dw = loss.grad(&[&w])?.remove(0).expect("the loss depends on w");
    /// assert_eq!(dw.item::<f32>()?, 6.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn tracked(&self) -> Tensor {
        self.leaf_of(true, 0)
    }

    /// [`Tensor::tracked`] as the leaf of the parameter with this id.
    #[track_caller]
    pub(crate) fn tracked_for(&self, param: u32) -> Tensor {
        self.leaf_of(true, param)
    }

    /// The id of the parameter whose leaf this is, or 0.
    pub(crate) fn param_id(&self) -> u32 {
        self.0.param
    }

    /// The same values, cut off from the history and untracked: no gradient flows back. This is the
    /// way to compute something without gradients, as there is no mode that switches them off: detach
    /// what goes in, or what comes out.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new(3f32, &device)?.tracked();
    /// let y = x.detach().square();
    /// assert!(y.grad(&[&x])?[0].is_none());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn detach(&self) -> Tensor {
        if !self.0.is_tracked() && matches!(*self.history(), History::Leaf) {
            return self.clone();
        }
        self.leaf_of(false, 0)
    }

    #[track_caller]
    fn leaf_of(&self, tracked: bool, param: u32) -> Tensor {
        let (shape, device) = (self.0.shape.clone(), self.0.device.clone());
        let (dtype, origin) = (self.0.dtype, self.0.origin);
        let of = Inherited { tracked, flagged: self.is_flagged() };
        let node = |history| {
            let mut node = Node::new(history, shape, dtype, device, of, 0, origin);
            node.param = param;
            node
        };
        Tensor(Arc::new(match self.known_value() {
            Some(buffer) => {
                let node = node(History::Leaf);
                let _ = node.value.set(buffer);
                node
            }
            None => {
                let srcs = [Some(self.clone()), None, None];
                node(History::Expr(Expr { op: Op::Alias(None), srcs }))
            }
        }))
    }

    /// Computes the value, if it is not there yet.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let y = x.exp();
    /// y.realize()?;
    /// let launches = device.stats().launches;
    /// y.realize()?;
    /// assert_eq!(device.stats().launches, launches);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails, with nothing lost: the call can be repeated.
    #[track_caller]
    pub fn realize(&self) -> Result<()> {
        if self.is_realized() { Ok(()) } else { Tensor::realize_all([self]) }
    }

    /// Computes several values as one plan, sharing work between them. The tensors may be on
    /// different devices.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let (sum, top) = (x.sum(..)?, x.max(..)?);
    /// Tensor::realize_all([&sum, &top])?;
    /// assert!(sum.is_realized() && top.is_realized());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a device fails; tensors computed before stay realized.
    #[track_caller]
    pub fn realize_all<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<()> {
        let pending: Vec<&Tensor> = tensors.into_iter().filter(|t| !t.take_kept()).collect();
        if pending.is_empty() { Ok(()) } else { crate::schedule::realize(&pending, &[]) }
    }

    /// [`Tensor::realize_all`] for values that take the place of others: `old` is given up. If all
    /// goes well it is empty afterwards, and memory of tensors in it that nobody else holds may
    /// have become the memory of results. If not, it is as it was. Pending tensors in it, as the
    /// gradients that an optimizer consumes, are not kept on the way to the values.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let mean = Tensor::ones([1024], DType::F32, &device);
    /// mean.realize()?;
    /// let (next, mut old) = (&mean * 0.5, vec![mean]);
    /// device.reset_peak();
    /// let before = device.stats().peak_bytes;
    /// Tensor::realize_replacing([&next], &mut old)?;
    /// assert!(old.is_empty());
    /// // Nothing was allocated: the new mean is where the old one was.
    /// assert_eq!(device.stats().peak_bytes, before);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::realize_all`].
    #[track_caller]
    pub fn realize_replacing<'a>(
        tensors: impl IntoIterator<Item = &'a Tensor>,
        old: &mut Vec<Tensor>,
    ) -> Result<()> {
        let pending: Vec<&Tensor> = tensors.into_iter().filter(|t| !t.take_kept()).collect();
        if !pending.is_empty() {
            crate::schedule::realize(&pending, old)?;
        }
        old.clear();
        Ok(())
    }

    /// The address of the node: equal for clones of one tensor.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    pub(crate) fn downgrade(&self) -> WeakTensor {
        WeakTensor(Arc::downgrade(&self.0))
    }

    /// Bits of a mark that are a number.
    pub(crate) const MARK_BITS: u32 = 24;

    /// Notes that a visit, which has a number of its own (less than 2^40) among those of the
    /// device, gave this tensor a number (less than 2^24). The next visit overwrites it.
    pub(crate) fn mark(&self, visit: u64, number: u32) {
        self.0.mark.store(visit << Tensor::MARK_BITS | u64::from(number), Relaxed);
    }

    /// The number that this visit gave, unless another has come meanwhile.
    pub(crate) fn marked(&self, visit: u64) -> Option<u32> {
        let mark = self.0.mark.load(Relaxed);
        let number = mark as u32 & ((1 << Tensor::MARK_BITS) - 1);
        (mark >> Tensor::MARK_BITS == visit).then_some(number)
    }

    /// How many handles there are of this tensor, those of its users in the graph included.
    pub(crate) fn owners(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    pub(crate) fn value(&self) -> Option<&Buffer> {
        self.0.value.get()
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.0.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next input and the rest, if this is part of a list of inputs; see [`Expr::inputs`].
    fn listed(&self) -> Option<[Tensor; 2]> {
        let history = self.history();
        let expr = history.expr().filter(|expr| expr.is_list())?;
        Some([expr.srcs[1].clone()?, expr.srcs[2].clone()?])
    }

    /// Shows every source that the tensor holds, those included that only gradients need.
    pub(crate) fn each_source(&self, show: &mut dyn FnMut(&Tensor)) {
        if let Some(expr) = self.history().expr() {
            expr.srcs.iter().flatten().for_each(show);
        }
    }

    /// Whether [`Tensor::set_value`] will give up how it was computed.
    pub(crate) fn releases_history(&self) -> bool {
        let stops = |expr: &Expr| matches!(expr.op, Op::Alias(None));
        !self.0.is_tracked() || matches!(&*self.history(), History::Expr(expr) if stops(expr))
    }

    /// Stores the computed value; a node that gradients do not pass gives its history up.
    pub(crate) fn set_value(&self, buffer: Buffer) {
        if self.0.dtype.is_int() {
            buffer.set_bounds(self.index_range_here());
        }
        // Another thread may have been first; both values are equal.
        let _ = self.0.value.set(buffer);
        let mut history = self.history();
        let released = match &*history {
            // Gradients stop here: from now on it is a leaf, even if it is tracked.
            History::Expr(Expr { op: Op::Alias(None), .. }) => {
                std::mem::replace(&mut *history, History::Leaf)
            }
            _ if self.0.is_tracked() => return hold_expr(&mut history),
            _ => std::mem::take(&mut *history),
        };
        drop(history);
        let mut released = released;
        if let Some(expr) = released.expr_mut() {
            drop_iteratively(expr);
        }
    }

    /// Notes a value that was computed on the way to another one. The device may drop it while its
    /// buffer has no other holder. A tensor where gradients stop becomes a leaf instead.
    pub(crate) fn keep(&self, buffer: Buffer) {
        let mut history = self.history();
        match &mut *history {
            History::Expr(Expr { op: Op::Alias(None), .. }) => {
                drop(history);
                return self.set_value(buffer);
            }
            History::Expr(_) if !self.is_realized() => {}
            _ => return,
        }
        if let History::Expr(expr) = std::mem::take(&mut *history) {
            *history = History::Kept(Box::new(Kept { expr, buffer }));
            drop(history);
            let node: Weak<Node> = Arc::downgrade(&self.0);
            self.0.device.note_droppable(node);
        }
    }

    /// Whether the value is there, if need be one that was kept, which is the tensor's from now on.
    pub(crate) fn take_kept(&self) -> bool {
        if self.is_realized() {
            return true;
        }
        let kept = match &*self.history() {
            History::Kept(kept) => kept.buffer.clone(),
            _ => return false,
        };
        self.set_value(kept);
        true
    }

    /// [`Tensor::take_kept`] for a value that the program did not ask for: the expression stays for gradients.
    pub(crate) fn remember_kept(&self) -> bool {
        if self.is_realized() {
            return true;
        }
        let mut history = self.history();
        if let History::Kept(kept) = &*history {
            let _ = self.0.value.set(kept.buffer.clone());
        }
        hold_expr(&mut history);
        self.is_realized()
    }

    /// The value, if it is there or was kept.
    pub(crate) fn known_value(&self) -> Option<Buffer> {
        match (self.0.value.get(), &*self.history()) {
            (Some(buffer), _) => Some(buffer.clone()),
            (None, History::Kept(kept)) => Some(kept.buffer.clone()),
            // Another thread may have computed it meanwhile.
            (None, _) => self.0.value.get().cloned(),
        }
    }

    /// Gives up the value of a kept tensor that only later ones were computed from: gradients can
    /// still pass. At the end of a long chain gives up how it was computed instead, as for integers,
    /// so that a loop does not hold all its steps. Returns the length of the chain from here.
    pub(crate) fn outlive(&self) -> Option<u8> {
        let length = self.0.state.load(Relaxed) >> CHAIN_SHIFT;
        let mut history = self.history();
        let History::Kept(kept) = &*history else { return None };
        if self.0.dtype.is_float() && length < LONGEST_CHAIN {
            hold_expr(&mut history);
            return Some(length + 1);
        }
        let buffer = kept.buffer.clone();
        drop(history);
        self.set_value(buffer);
        let mut history = self.history();
        if self.0.dtype.is_float() && matches!(&*history, History::Released) {
            *history = History::Forgotten;
        }
        None
    }

    /// Notes how many kept values came before this one in a chain.
    pub(crate) fn set_chain(&self, length: u8) {
        let _ = self.0.state.fetch_and((1 << CHAIN_SHIFT) - 1, Relaxed);
        let _ = self.0.state.fetch_or(length << CHAIN_SHIFT, Relaxed);
    }

    /// Whether a part of it was computed for another value, and it was not kept.
    pub(crate) fn was_needed(&self) -> bool {
        self.0.state.load(Relaxed) & NEEDED != 0
    }

    pub(crate) fn note_needed(&self) {
        let _ = self.0.state.fetch_or(NEEDED, Relaxed);
    }

    /// Stores the computed value of a tensor whose value nobody asked for: gradients can still be
    /// asked for, so how it was computed is kept.
    pub(crate) fn remember(&self, buffer: Buffer) {
        let _ = self.0.value.set(buffer);
    }

    /// The scalar every element equals, when that is known without computing.
    pub(crate) fn as_const(&self) -> Option<Scalar> {
        match &*self.history() {
            History::Expr(Expr { op: Op::Const { bits, .. }, .. }) => {
                Some(Scalar::from_bits(self.dtype(), *bits))
            }
            _ => None,
        }
    }

    #[track_caller]
    pub(crate) fn shape_error(op: &'static str, of: &[&Tensor], reason: String) -> Error {
        let operands = of.iter().copied().collect();
        Error::Shape { op, reason, operands, location: Location::caller() }
    }

    #[track_caller]
    pub(crate) fn dtype_error(op: &'static str, of: &[&Tensor], reason: String) -> Error {
        let operands = of.iter().copied().collect();
        Error::DType { op, reason, operands, location: Location::caller() }
    }

    #[track_caller]
    pub(crate) fn argument_error(op: &'static str, reason: String) -> Error {
        Error::Argument { op, reason, location: Location::caller() }
    }
}

impl<'a> FromIterator<&'a Tensor> for Operands {
    fn from_iter<I: IntoIterator<Item = &'a Tensor>>(tensors: I) -> Operands {
        tensors.into_iter().map(|t| (t.dtype(), t.shape().clone())).collect()
    }
}

/// Turns [`History::Kept`] into [`History::Expr`], and so drops its handle of the buffer.
fn hold_expr(history: &mut History) {
    if let History::Kept(_) = history
        && let History::Kept(kept) = std::mem::take(history)
    {
        *history = History::Expr(kept.expr);
    }
}

impl Droppable for Node {
    fn drop_unused(&self) -> usize {
        // A thread that has the lock may be taking the value.
        let Ok(mut history) = self.history.try_lock() else { return 0 };
        match &*history {
            History::Kept(kept) if kept.buffer.is_unique() => {
                let bytes = kept.buffer.bytes();
                hold_expr(&mut history);
                bytes
            }
            _ => 0,
        }
    }
}

/// Drops the sources of `expr` without recursion: those that nobody else holds go on a list.
fn drop_iteratively(expr: &mut Expr) {
    let mut list: smallvec::SmallVec<[Tensor; 16]> = smallvec::SmallVec::new();
    // Taken out one by one: moving the whole of it right after it was written would wait for that.
    let add = |list: &mut smallvec::SmallVec<[Tensor; 16]>, expr: &mut Expr| {
        for source in &mut expr.srcs {
            let Some(source) = source.take() else { break };
            list.push(source);
        }
    };
    add(&mut list, expr);
    while let Some(tensor) = list.pop() {
        let Some(mut node) = Arc::into_inner(tensor.0) else { continue };
        let history = node.history.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(expr) = history.expr_mut() {
            add(&mut list, expr);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let history = self.history.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(expr) = history.expr_mut()
            && expr.srcs[0].is_some()
        {
            drop_iteratively(expr);
        }
    }
}
