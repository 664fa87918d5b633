//! Attention in cuDNN.
//!
//! The library has kernels for the whole and recognises the operations that it consists of (cuDNN
//! developer guide, "Fused flash attention fprop"): a product, the factor, the comparison of positions
//! that hides what comes later, the steps of a softmax, a product. It wants the logarithms of the sums,
//! so they are written even if nobody asks for them.

use super::{Descriptor, Dnn, Kind, Name, Plan, WORKSPACE, What, contiguous, element, place};
use crate::driver::Stream;
use cudarc::cudnn::sys::{
    cudnnDataType_t as Type, cudnnPointwiseMode_t as Pointwise, cudnnReduceTensorOp_t as Reduction,
};
use std::ptr;
use std::sync::Arc;
use zyx_core::hal::AttentionSpec;

/// Names of queries, keys, values, result, logarithms, the factor and what hides a score.
const NAMES: [i64; 7] = [1, 2, 3, 4, 5, 6, 7];
/// The first name of what is never stored.
const VIRTUAL: i64 = 100;
/// What parts of the workspace are multiples of, in bytes.
const ALIGN: usize = 256;
/// Bytes that rows of operands start at a multiple of.
const ROWS: usize = 16;

/// Attention with a way chosen.
#[derive(Debug)]
pub(crate) struct Attention {
    plan: Plan,
    causal: bool,
    /// Bytes before the first elements.
    offsets: [usize; 5],
    /// Where in the workspace logarithms go that nobody asks for, and all of its bytes.
    logarithms: Option<usize>,
    workspace: usize,
}

impl Attention {
    /// Attention on this device, if the library has a way to compute it.
    pub(crate) fn new(dnn: &Arc<Dnn>, spec: &AttentionSpec) -> Option<Attention> {
        let offsets = [0, 1, 2, 3, 4].map(|i| spec.offsets[i] * spec.dtype_of(i).size());
        let places = |i: usize| spec.strides[i][..3].iter().chain([&spec.offsets[i]]);
        let aligned = |i: usize| places(i).all(|n| (n * spec.dtype.size()).is_multiple_of(ROWS));
        if !(0..4).all(aligned) || (0..4).any(|i| spec.strides[i][3] > 1) {
            return None;
        }
        let Some((graph, parts)) = graph(dnn, spec) else {
            log::debug!(target: "zyx::cuda", "cuDNN refuses {spec:?}");
            return None;
        };
        let Some(plan) = Plan::of(dnn, graph, parts, (spec.dtype, WORKSPACE), 0) else {
            log::debug!(target: "zyx::cuda", "cuDNN has nothing for {spec:?}");
            return None;
        };
        let own = plan.workspace.next_multiple_of(ALIGN);
        let unasked = 4 * spec.batch * spec.heads * spec.queries;
        let (logarithms, workspace) = match spec.logarithms {
            true => (None, plan.workspace),
            false => (Some(own), own + unasked),
        };
        let causal = spec.causal;
        Some(Attention { plan, causal, offsets, logarithms, workspace })
    }

    /// Bytes of device memory needed while it runs.
    pub(crate) fn workspace(&self) -> usize {
        self.workspace
    }

    /// Queues it on its arguments.
    ///
    /// # Safety
    /// The addresses are as many as the specification has arguments, of memory as long as it says, and of
    /// [`workspace`] bytes, that stays until the stream is done and that nothing else uses meanwhile.
    ///
    /// [`workspace`]: Self::workspace
    pub(crate) unsafe fn queue(
        &self,
        stream: &Stream,
        arguments: &[u64],
        workspace: u64,
    ) -> Result<(), String> {
        let Some((&scale, buffers)) = arguments.split_last() else {
            return Err("attention has a scale".to_owned());
        };
        let asked = buffers.iter().zip(self.offsets).map(|(&at, offset)| at + offset as u64);
        let unasked = self.logarithms.map(|at| workspace + at as u64);
        let mut places: Vec<_> = asked.chain(unasked).map(place).collect();
        let (mut scale, mut hidden) = (f32::from_bits(scale as u32), f32::NEG_INFINITY);
        places.push(ptr::from_mut(&mut scale).cast());
        if self.causal {
            places.push(ptr::from_mut(&mut hidden).cast());
        }
        // SAFETY: tensors by the caller's promise; the two numbers are read by the call.
        unsafe { self.plan.execute(stream, &NAMES[..places.len()], &places, workspace) }
    }
}

/// Makes the operations of a graph.
struct Operations<'a> {
    dnn: &'a Arc<Dnn>,
    parts: Vec<Descriptor>,
    operations: Vec<Descriptor>,
    next: i64,
}

impl Operations<'_> {
    /// A tensor that is never stored.
    fn value(&mut self, lengths: [i64; 4], dtype: Type) -> Option<Descriptor> {
        self.next += 1;
        let tensor =
            super::tensor(self.dnn, self.next, &lengths, &contiguous(&lengths), dtype, 16)?;
        tensor.set(Name::CUDNN_ATTR_TENSOR_IS_VIRTUAL, Kind::CUDNN_TYPE_BOOLEAN, &[true])?;
        tensor.finish()
    }

    /// A number of the host.
    fn number(&self, name: i64) -> Option<Descriptor> {
        let tensor = super::tensor(self.dnn, name, &[1; 4], &[1; 4], Type::CUDNN_DATA_FLOAT, 4)?;
        tensor.set(Name::CUDNN_ATTR_TENSOR_IS_BY_VALUE, Kind::CUDNN_TYPE_BOOLEAN, &[true])?;
        tensor.finish()
    }

    fn product(&mut self, a: &Descriptor, b: &Descriptor, c: &Descriptor) -> Option<()> {
        let how = Descriptor::new(self.dnn, What::CUDNN_BACKEND_MATMUL_DESCRIPTOR)?;
        let sums = [Type::CUDNN_DATA_FLOAT];
        how.set(Name::CUDNN_ATTR_MATMUL_COMP_TYPE, Kind::CUDNN_TYPE_DATA_TYPE, &sums)?;
        let how = how.finish()?;
        let product = Descriptor::new(self.dnn, What::CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)?;
        product.set_object(Name::CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)?;
        product.set_object(Name::CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)?;
        product.set_object(Name::CUDNN_ATTR_OPERATION_MATMUL_CDESC, c)?;
        product.set_object(Name::CUDNN_ATTR_OPERATION_MATMUL_DESC, &how)?;
        self.done(product, how)
    }

    /// Of one or two operands, or of two and a condition.
    fn pointwise(
        &mut self,
        mode: Pointwise,
        operands: &[&Descriptor],
        result: &Descriptor,
    ) -> Option<()> {
        let dtype = match mode {
            Pointwise::CUDNN_POINTWISE_CMP_GE => Type::CUDNN_DATA_BOOLEAN,
            _ => Type::CUDNN_DATA_FLOAT,
        };
        let how = Descriptor::new(self.dnn, What::CUDNN_BACKEND_POINTWISE_DESCRIPTOR)?;
        how.set(Name::CUDNN_ATTR_POINTWISE_MODE, Kind::CUDNN_TYPE_POINTWISE_MODE, &[mode])?;
        how.set(Name::CUDNN_ATTR_POINTWISE_MATH_PREC, Kind::CUDNN_TYPE_DATA_TYPE, &[dtype])?;
        self.apply(how, operands, result)
    }

    /// The position along an axis of each element of `like`.
    fn positions(&mut self, axis: i64, like: &Descriptor, result: &Descriptor) -> Option<()> {
        let mode = [Pointwise::CUDNN_POINTWISE_GEN_INDEX];
        let dtype = [Type::CUDNN_DATA_INT32];
        let how = Descriptor::new(self.dnn, What::CUDNN_BACKEND_POINTWISE_DESCRIPTOR)?;
        how.set(Name::CUDNN_ATTR_POINTWISE_MODE, Kind::CUDNN_TYPE_POINTWISE_MODE, &mode)?;
        how.set(Name::CUDNN_ATTR_POINTWISE_MATH_PREC, Kind::CUDNN_TYPE_DATA_TYPE, &dtype)?;
        how.set_numbers(Name::CUDNN_ATTR_POINTWISE_AXIS, &[axis])?;
        self.apply(how, &[like], result)
    }

    fn apply(
        &mut self,
        how: Descriptor,
        operands: &[&Descriptor],
        result: &Descriptor,
    ) -> Option<()> {
        let how = how.finish()?;
        let what = What::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
        let operation = Descriptor::new(self.dnn, what)?;
        operation.set_object(Name::CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, &how)?;
        let names = [
            Name::CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
            Name::CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
            Name::CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
        ];
        for (name, operand) in names.into_iter().zip(operands) {
            operation.set_object(name, operand)?;
        }
        operation.set_object(Name::CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result)?;
        self.done(operation, how)
    }

    /// Along the last axis.
    fn reduce(&mut self, op: Reduction, x: &Descriptor, result: &Descriptor) -> Option<()> {
        let how = Descriptor::new(self.dnn, What::CUDNN_BACKEND_REDUCTION_DESCRIPTOR)?;
        let (kind, dtype) = (Kind::CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, Type::CUDNN_DATA_FLOAT);
        how.set(Name::CUDNN_ATTR_REDUCTION_OPERATOR, kind, &[op])?;
        how.set(Name::CUDNN_ATTR_REDUCTION_COMP_TYPE, Kind::CUDNN_TYPE_DATA_TYPE, &[dtype])?;
        let how = how.finish()?;
        let what = What::CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR;
        let operation = Descriptor::new(self.dnn, what)?;
        operation.set_object(Name::CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x)?;
        operation.set_object(Name::CUDNN_ATTR_OPERATION_REDUCTION_YDESC, result)?;
        operation.set_object(Name::CUDNN_ATTR_OPERATION_REDUCTION_DESC, &how)?;
        self.done(operation, how)
    }

    fn done(&mut self, operation: Descriptor, how: Descriptor) -> Option<()> {
        self.operations.push(operation.finish()?);
        self.parts.push(how);
        Some(())
    }
}

/// The graph of all operations, and what it is made of.
fn graph(dnn: &Arc<Dnn>, spec: &AttentionSpec) -> Option<(Descriptor, Vec<Descriptor>)> {
    let half = element(spec.dtype)?;
    let float = Type::CUDNN_DATA_FLOAT;
    let [mut lengths, mut strides] = [spec.lengths(), spec.strides]
        .map(|all| all.map(|list| list.map(|n| i64::try_from(n).unwrap_or(i64::MAX))));
    for (lengths, strides) in lengths.iter().zip(&mut strides) {
        super::give_strides(lengths, strides, &[0, 1, 2, 3]);
    }
    if !spec.logarithms {
        strides[4] = contiguous(&lengths[4]);
    }
    // Keys are the right factor as they are.
    lengths[1].swap(2, 3);
    strides[1].swap(2, 3);
    let tensor = |i: usize| {
        let dtype = if i == 4 { float } else { half };
        super::tensor(dnn, NAMES[i], &lengths[i], &strides[i], dtype, ROWS as i64)?.finish()
    };
    let [queries, keys, values, result, logarithms] =
        [tensor(0)?, tensor(1)?, tensor(2)?, tensor(3)?, tensor(4)?];
    let mut g = Operations { dnn, parts: Vec::new(), operations: Vec::new(), next: VIRTUAL };
    let n = |n: usize| i64::try_from(n).ok();
    let rows = [n(spec.batch)?, n(spec.heads)?, n(spec.queries)?, 1];
    let all = [rows[0], rows[1], rows[2], n(spec.keys)?];
    let (products, factor) = (g.value(all, float)?, g.number(NAMES[5])?);
    g.product(&queries, &keys, &products)?;
    let mut scores = g.value(all, float)?;
    g.pointwise(Pointwise::CUDNN_POINTWISE_MUL, &[&products, &factor], &scores)?;
    if spec.causal {
        let integer = Type::CUDNN_DATA_INT32;
        let (row, column) = (g.value(all, integer)?, g.value(all, integer)?);
        g.positions(2, &scores, &row)?;
        g.positions(3, &scores, &column)?;
        let (seen, hidden) = (g.value(all, Type::CUDNN_DATA_BOOLEAN)?, g.number(NAMES[6])?);
        g.pointwise(Pointwise::CUDNN_POINTWISE_CMP_GE, &[&row, &column], &seen)?;
        let masked = g.value(all, float)?;
        let select = Pointwise::CUDNN_POINTWISE_BINARY_SELECT;
        g.pointwise(select, &[&scores, &hidden, &seen], &masked)?;
        g.parts.extend([row, column, seen, hidden, std::mem::replace(&mut scores, masked)]);
    }
    let (top, below, exponentials) =
        (g.value(rows, float)?, g.value(all, float)?, g.value(all, float)?);
    g.reduce(Reduction::CUDNN_REDUCE_TENSOR_MAX, &scores, &top)?;
    g.pointwise(Pointwise::CUDNN_POINTWISE_SUB, &[&scores, &top], &below)?;
    g.pointwise(Pointwise::CUDNN_POINTWISE_EXP, &[&below], &exponentials)?;
    let (sums, logarithm) = (g.value(rows, float)?, g.value(rows, float)?);
    g.reduce(Reduction::CUDNN_REDUCE_TENSOR_ADD, &exponentials, &sums)?;
    g.pointwise(Pointwise::CUDNN_POINTWISE_LOG, &[&sums], &logarithm)?;
    g.pointwise(Pointwise::CUDNN_POINTWISE_ADD, &[&top, &logarithm], &logarithms)?;
    let weights = g.value(all, half)?;
    g.pointwise(Pointwise::CUDNN_POINTWISE_DIV, &[&exponentials, &sums], &weights)?;
    g.product(&weights, &values, &result)?;
    let graph = super::graph_of(dnn, &g.operations)?;
    let mut parts = g.parts;
    parts.extend(g.operations);
    parts.extend([queries, keys, values, result, logarithms, products, factor, scores]);
    parts.extend([top, below, exponentials, sums, logarithm, weights]);
    Some((graph, parts))
}
