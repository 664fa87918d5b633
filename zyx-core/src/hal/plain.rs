//! Calls as plain kernels: loops over the result, in each a sum of products.
//!
//! The kernel takes the arguments of the call, so it can take the call's place.

use super::{Call, ContractDim, ContractSpec, ConvolutionSpec, Convolved, Signature};
use crate::dtype::DType;
use crate::ir::{Access, Builder, Kernel, LoopKind, Space, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;

impl Call {
    /// The kernel that computes the call from the same arguments, of a contraction that takes no kernels
    /// along and of a convolution.
    pub fn kernel(&self) -> Option<Kernel> {
        match self {
            Call::Contract { spec, prologue: None, epilogue: None } => contraction(spec, self),
            Call::Convolve(spec) => convolution(spec, self),
            _ => None,
        }
    }
}

/// Loops over a result and over what is summed, with the dtypes of both operands, a bias if there is one, and
/// the result, and that of the sums.
struct Nest {
    outer: Vec<usize>,
    inner: Vec<usize>,
    dtypes: Vec<DType>,
    acc: DType,
}

impl Nest {
    /// The kernel. `place` gives the index into an argument, from the counters of all open loops.
    fn kernel(
        &self,
        call: &Call,
        signature: &Signature,
        place: impl Fn(&mut Builder, usize, &[Value]) -> Value,
    ) -> Option<Kernel> {
        if self.outer.iter().chain(&self.inner).any(|&len| len == 0) {
            return None;
        }
        let mut b = Builder::new(&call.name());
        let (last, computed) = (self.dtypes.len() - 1, self.dtypes[self.dtypes.len() - 1]);
        let params: Vec<Value> = (self.dtypes.iter().zip(signature.spans()).enumerate())
            .map(|(i, (&dtype, bytes))| {
                let access = if i == last { Access::Write } else { Access::Read };
                b.param(dtype, (bytes / dtype.size()) as u64, access)
            })
            .collect();
        let mut counters = Vec::new();
        let open = |b: &mut Builder, kind, lens: &[usize], counters: &mut Vec<Value>| {
            for &len in lens {
                let (number, end) = (b.depth() as u8, b.index(len as i64));
                counters.push(if len == 1 { b.index(0) } else { b.open_loop(kind, number, end) });
            }
        };
        let close = |b: &mut Builder, lens: &[usize]| {
            lens.iter().filter(|&&len| len != 1).for_each(|_| b.close());
        };
        open(&mut b, LoopKind::Parallel, &self.outer, &mut counters);
        let sum = b.alloc(Space::Register, Type::scalar(self.acc), 1);
        let (first, zero) = (b.index(0), b.constant(Scalar::from_i64(self.acc, 0)));
        b.store(sum, first, zero);
        open(&mut b, LoopKind::Serial, &self.inner, &mut counters);
        let [x, y] = [0, 1].map(|operand| {
            let at = place(&mut b, operand, &counters);
            let factor = b.load(params[operand], at);
            b.cast(self.acc, factor)
        });
        let product = b.binary(BinaryOp::Mul, x, y);
        let before = b.load(sum, first);
        let after = b.binary(BinaryOp::Add, before, product);
        b.store(sum, first, after);
        close(&mut b, &self.inner);
        let mut total = b.load(sum, first);
        let outer = &counters[..self.outer.len()];
        for &bias in &params[2..last] {
            let at = place(&mut b, 2, outer);
            let bias = b.load(bias, at);
            let bias = b.cast(self.acc, bias);
            total = b.binary(BinaryOp::Add, total, bias);
        }
        let total = b.cast(computed, total);
        let at = place(&mut b, last, outer);
        b.store(params[last], at, total);
        close(&mut b, &self.outer);
        Some(b.finish())
    }
}

/// A constant and products of values and constants.
fn linear(b: &mut Builder, terms: impl IntoIterator<Item = (Value, i64)>, constant: i64) -> Value {
    let mut sum: Option<Value> = None;
    for (x, by) in terms.into_iter().filter(|term| term.1 != 0) {
        let by = b.index(by);
        let term = b.binary(BinaryOp::Mul, x, by);
        sum = Some(sum.map_or(term, |sum| b.binary(BinaryOp::Add, sum, term)));
    }
    let constant = b.index(constant);
    sum.map_or(constant, |sum| b.binary(BinaryOp::Add, sum, constant))
}

fn contraction(spec: &ContractSpec, call: &Call) -> Option<Kernel> {
    // The strides of each dimension in the arguments. Dimensions of n merge.
    let apart = spec.n.last().map_or(1, |dim| dim.c);
    let strides = |dim: &ContractDim, bias: isize| match spec.bias {
        true => vec![dim.a, dim.b, bias, dim.c],
        false => vec![dim.a, dim.b, dim.c],
    };
    let rows = spec.batch.iter().chain(&spec.m).map(|dim| (dim, 0));
    let mut dims: Vec<(&ContractDim, isize)> =
        rows.chain(spec.n.iter().map(|dim| (dim, dim.c / apart))).collect();
    super::sort_by_number(&mut dims, |dim| -(dim.0.c as i128));
    let outer = dims.iter().map(|dim| dim.0.len).collect();
    dims.extend(spec.k.iter().map(|dim| (dim, 0)));
    let inner = spec.k.iter().map(|dim| dim.len).collect();
    let bias = spec.bias.then_some(spec.c);
    let dtypes = [spec.a, spec.b].into_iter().chain(bias).chain([spec.c]).collect();
    let nest = Nest { outer, inner, dtypes, acc: spec.acc };
    nest.kernel(call, &Signature::of_contraction(spec)?, |b, argument, counters| {
        let stride = |&(dim, bias): &(&ContractDim, isize)| strides(dim, bias)[argument] as i64;
        let terms = counters.iter().copied().zip(dims.iter().map(stride));
        linear(b, terms, spec.offset.get(argument).map_or(0, |&offset| offset as i64))
    })
}

/// What an index of a convolution counts: images, groups, channels, outputs; elements of the image, of the
/// kernel and of the result along an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    Images,
    Groups,
    Channels,
    Outputs,
    Image(usize),
    Kernel(usize),
    Result(usize),
}

fn convolution(spec: &ConvolutionSpec, call: &Call) -> Option<Kernel> {
    let along = |count: fn(usize) -> Count| (0..spec.axes.len()).map(count);
    let of =
        |lead: [Count; 3], axes: fn(usize) -> Count| lead.into_iter().chain(along(axes)).collect();
    // As `ConvolutionSpec::lengths`.
    let counts: [Vec<Count>; 3] = [
        of([Count::Images, Count::Groups, Count::Channels], Count::Image),
        of([Count::Groups, Count::Outputs, Count::Channels], Count::Kernel),
        of([Count::Images, Count::Groups, Count::Outputs], Count::Result),
    ];
    let (operands, computed) = spec.roles();
    let (summed, places): (Count, fn(usize) -> Count) = match spec.computes {
        Convolved::Result => (Count::Channels, Count::Kernel),
        Convolved::Image => (Count::Outputs, Count::Kernel),
        Convolved::Kernel => (Count::Images, Count::Result),
    };
    let mut order = counts[computed].clone();
    order.push(summed);
    order.extend(along(places));
    let len = |&count: &Count| match count {
        Count::Images => spec.images,
        Count::Groups => spec.groups,
        Count::Channels => spec.channels,
        Count::Outputs => spec.outputs,
        Count::Image(axis) => spec.axes[axis].image,
        Count::Kernel(axis) => spec.axes[axis].kernel,
        Count::Result(axis) => spec.axes[axis].result,
    };
    let (outer, inner) = order.split_at(counts[computed].len());
    let (outer, inner) = (outer.iter().map(len).collect(), inner.iter().map(len).collect());
    let sums = if spec.operands == DType::F64 { DType::F64 } else { DType::F32 };
    let roles = [operands[0], operands[1], computed];
    let nest =
        Nest { outer, inner, dtypes: roles.map(|role| spec.dtype(role)).to_vec(), acc: sums };
    nest.kernel(call, &Signature::of_convolution(spec)?, |b, argument, counters| {
        let role = roles[argument];
        let counter =
            |count| order.iter().position(|&known| known == count).and_then(|at| counters.get(at));
        let mut inside: Option<Value> = None;
        let mut terms = Vec::new();
        for (&count, &stride) in counts[role].iter().zip(&spec.strides[role]) {
            let known = counter(count).copied();
            let index = known.unwrap_or_else(|| guarded(b, spec, count, &counter, &mut inside));
            terms.push((index, stride as i64));
        }
        let index = linear(b, terms, spec.offsets[role] as i64);
        inside.map_or(index, |inside| b.guard(index, inside))
    })
}

/// The index along an axis that follows from the other two, and where it exists.
fn guarded<'a>(
    b: &mut Builder,
    spec: &ConvolutionSpec,
    count: Count,
    counter: &impl Fn(Count) -> Option<&'a Value>,
    inside: &mut Option<Value>,
) -> Value {
    let (Count::Image(n) | Count::Kernel(n) | Count::Result(n)) = count else {
        unreachable!("invariant: all but one of the indices along an axis are counters")
    };
    let axis = &spec.axes[n];
    let (stride, dilation, before) = (axis.stride as i64, axis.dilation as i64, axis.before as i64);
    let of = |count| *counter(count).expect("invariant: two indices along an axis are counters");
    let place = of(Count::Kernel(n));
    let mut hold = |b: &mut Builder, condition: Value| {
        *inside = Some(inside.map_or(condition, |all| b.binary(BinaryOp::And, all, condition)));
    };
    let zero = b.index(0);
    if count == Count::Image(n) {
        let index = linear(b, [(of(Count::Result(n)), stride), (place, dilation)], -before);
        let last = stride * (axis.result as i64 - 1) + dilation * (axis.kernel as i64 - 1) - before;
        if before > 0 {
            let condition = b.binary(BinaryOp::Le, zero, index);
            hold(b, condition);
        }
        if last >= axis.image as i64 {
            let end = b.index(axis.image as i64);
            let condition = b.binary(BinaryOp::Lt, index, end);
            hold(b, condition);
        }
        return index;
    }
    let scaled = linear(b, [(of(Count::Image(n)), 1), (place, -dilation)], before);
    let condition = b.binary(BinaryOp::Le, zero, scaled);
    hold(b, condition);
    let mut index = scaled;
    if stride > 1 {
        let by = b.index(stride);
        index = b.binary(BinaryOp::Div, scaled, by);
        let rest = b.binary(BinaryOp::Rem, scaled, by);
        let condition = b.binary(BinaryOp::Eq, rest, zero);
        hold(b, condition);
    }
    let end = b.index(axis.result as i64);
    let condition = b.binary(BinaryOp::Lt, index, end);
    hold(b, condition);
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::interp::{self, interpret};

    /// Strides that overlap, repeat and go backwards; two dimensions of each kind.
    #[test]
    fn a_contraction_is_the_sum_it_says() {
        let dim = |len, a, b, c| ContractDim { len, a, b, c };
        let (batch, m) = ([dim(2, 40, 0, 60)], [dim(3, -5, 0, 20), dim(2, 2, 0, 10)]);
        let (n, k) = ([dim(5, 0, 3, 2)], [dim(3, 1, -4, 0), dim(1, 9, 9, 0), dim(4, 3, 1, 0)]);
        let f = DType::F32;
        let spec = ContractSpec {
            a: f,
            b: f,
            c: f,
            acc: f,
            bias: false,
            offset: [10, 8],
            batch: batch.to_vec(),
            m: m.to_vec(),
            n: n.to_vec(),
            k: k.to_vec(),
        };
        let kernel = Call::contract(spec).kernel().unwrap();
        let number = |i: usize| ((i * 37 + 11) % 23) as f32 - 11.0;
        let mut buffers: Vec<Vec<u8>> = (kernel.params().iter())
            .map(|p| (0..p.len as usize).flat_map(|i| number(i).to_le_bytes()).collect())
            .collect();
        let mut expected: Vec<f32> = (0..kernel.params()[2].len as usize).map(number).collect();
        for i in 0..2 * 3 * 2 * 5 {
            let counters = [i / 30, i / 10 % 3, i / 5 % 2, i % 5];
            let outer = [batch[0], m[0], m[1], n[0]];
            let at = |offset: isize, stride: fn(&ContractDim) -> isize, rest: [usize; 2]| {
                let dims = outer.iter().zip(counters).chain([&k[0], &k[2]].into_iter().zip(rest));
                (offset + dims.map(|(dim, i)| stride(dim) * i as isize).sum::<isize>()) as usize
            };
            let terms = (0..12).map(|j| {
                let rest = [j / 4, j % 4];
                number(at(10, |dim| dim.a, rest)) * number(at(8, |dim| dim.b, rest))
            });
            expected[at(0, |dim| dim.c, [0; 2])] = terms.sum();
        }
        interpret(&kernel, &mut buffers, &[], &interp::Options::default()).unwrap();
        let found: Vec<f32> =
            buffers[2].chunks(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect();
        assert_eq!(found, expected);
    }
}
