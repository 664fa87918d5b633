//! Rows of the operations beyond the op table: mathematics, rearrangement, indexing, placing.

use crate::Call;
use crate::Outcome;
use crate::calls;
use crate::source::Source;
use crate::told;
use zyx_tests::zyx_core::{BinaryOp, DType, Index, Indexing, Result, ScatterReduce, Tensor};

macro_rules! unary {
    ($($name:ident)*) => { calls! {$( $name |s| s.x().$name(); )*} };
}

macro_rules! fallible_unary {
    ($($name:ident)*) => { calls! {$( $name |s| s.x().$name()?; )*} };
}

macro_rules! binary {
    ($($name:ident)*) => {
        calls! {$( $name |s| { let x = s.x(); let y = s.operand(&x); x.$name(y)? }; )*}
    };
}

macro_rules! joins {
    ($($name:ident)*) => {
        calls! {$( $name |s| {
            let x = s.x();
            let y = s.partner(&x);
            let all: &[&Tensor] = if s.one_in(8) { &[] } else { &[&x, &y, &x] };
            Tensor::$name(all)?
        }; )*}
    };
}

macro_rules! diagonals {
    ($($name:ident)*) => { calls! {$( $name |s| s.x().$name(s.axis(), s.axis(), s.axis())?; )*} };
}

pub(crate) fn all() -> Vec<Call> {
    let mut all = vec![];
    all.extend(unary! {
        erfc erfcx erfinv ndtr log_ndtr lgamma digamma log10 asinh acosh atanh frac sinc signbit
        deg2rad rad2deg reciprocal isnan isinf isfinite isposinf isneginf
        softsign relu6 hardsigmoid hardswish logsigmoid tanhshrink
        atleast_1d atleast_2d atleast_3d
    });
    all.extend(binary! {
        hypot copysign nextafter logaddexp logaddexp2 xlogy xlog1py heaviside gcd lcm fmax fmin
        logical_xor ldexp float_power bitwise_left_shift bitwise_right_shift
    });
    all.extend(fallible_unary! { fliplr flipud trace nonzero argwhere });
    all.extend(joins! {
        hstack vstack dstack column_stack block_diag broadcast_tensors cartesian_prod
    });
    all.extend(diagonals! { diagonal diag_embed });
    all.extend(calls! { "Index::step" |s| told(format!("{:?}", Index::step(None, Some(s.axis()), s.axis()))); });
    all.extend(maths());
    all.extend(movement());
    all.extend(creation());
    all.extend(placing());
    all.extend(picking());
    all.extend(ordering());
    all.extend(statistics());
    all
}

fn maths() -> Vec<Call> {
    calls! {
        polygamma |s| { let x = s.x(); let n = s.size(); x.polygamma(n) };
        logit |s| { let x = s.x(); if s.one_in(2) { x.logit(None) } else { x.logit(Some(s.number())) } };
        nan_to_num |s| {
            let x = s.x();
            let high = if s.one_in(2) { None } else { Some(s.number()) };
            x.nan_to_num(s.number(), high, None)
        };
        addcmul |s| {
            let x = s.x();
            let (a, b) = (s.operand(&x), s.operand(&x));
            x.addcmul(a, b, s.number())?
        };
        addcdiv |s| {
            let x = s.x();
            let (a, b) = (s.operand(&x), s.operand(&x));
            x.addcdiv(a, b, s.number())?
        };
        isclose |s| {
            let x = s.x();
            let y = s.operand(&x);
            x.isclose(y, s.number(), s.number(), s.one_in(2))?
        };
        allclose |s| {
            let x = s.floats();
            let y = s.partner(&x);
            if s.large { return Ok(Outcome::nothing()); }
            told(x.allclose(y, s.number(), s.number(), true)?)
        };
        equal |s| {
            let x = s.floats();
            let y = s.partner(&x);
            if s.large { return Ok(Outcome::nothing()); }
            told(x.equal(&y)?)
        };
        hardtanh |s| s.x().hardtanh(s.number(), s.number());
        celu |s| s.x().celu(s.number());
        threshold |s| s.x().threshold(s.number(), s.number());
        softshrink |s| s.x().softshrink(s.number());
        hardshrink |s| s.x().hardshrink(s.number());
        prelu |s| { let x = s.x(); x.prelu(&s.partner(&x))? };
        glu |s| s.x().glu(s.axis())?;
        softmin |s| { let (x, axes) = (s.x(), s.axes()); x.softmin(&axes[..])? };
    }
}

fn movement() -> Vec<Call> {
    calls! {
        roll |s| { let (x, shifts, axes) = (s.x(), s.axes(), s.axes()); x.roll(shifts, axes)? };
        rot90 |s| s.x().rot90(s.axis(), [s.axis(), s.axis()])?;
        tile |s| { let x = s.x(); let times = s.per_axis(&x, Source::size); x.tile(times)? };
        repeat_interleave |s| s.x().repeat_interleave(s.size(), s.axis())?;
        movedim |s| { let (x, from, to) = (s.x(), s.axes(), s.axes()); x.movedim(from, to)? };
        swapaxes |s| s.x().swapaxes(s.axis(), s.axis())?;
        unflatten |s| { let x = s.x(); let dims = s.pair(); x.unflatten(s.axis(), dims)? };
        unfold |s| s.x().unfold(s.axis(), s.size(), s.size())?;
        narrow |s| s.x().narrow(s.axis(), s.size(), s.size())?;
        unbind |s| s.x().unbind(s.axis())?;
        tensor_split |s| { let x = s.x(); let at = s.pair(); x.tensor_split(at, s.axis())? };
        hsplit |s| { let x = s.x(); let at = s.pair(); x.hsplit(at)? };
        vsplit |s| { let x = s.x(); let at = s.pair(); x.vsplit(at)? };
        dsplit |s| { let x = s.x(); let at = s.pair(); x.dsplit(at)? };
        unravel_index |s| { let x = s.x(); let dims = s.pair(); x.unravel_index(dims)? };
        split_with_sizes |s| { let x = s.x(); let at = s.pair(); x.split_with_sizes(at, s.axis())? };
        broadcast_to |s| { let x = s.x(); let y = s.partner(&x); x.broadcast_to(y.shape())? };
        diag |s| s.x().diag(s.axis())?;
        diagflat |s| s.x().diagflat(s.axis())?;
        diagonal_scatter |s| {
            let x = s.x();
            let (offset, a, b) = (s.axis(), s.axis(), s.axis());
            let src = x.diagonal(offset, a, b).unwrap_or_else(|_| s.partner(&x));
            x.diagonal_scatter(&src, offset, a, b)?
        };
        slice_scatter |s| { let x = s.x(); x.slice_scatter(&s.partner(&x), s.axis(), s.size())? };
        select_scatter |s| {
            let x = s.x();
            let (axis, at) = (s.axis(), s.axis());
            let src = x.select_index(axis, at).unwrap_or_else(|_| s.partner(&x));
            x.select_scatter(&src, axis, at)?
        };
    }
}

fn creation() -> Vec<Call> {
    calls! {
        logspace |s| Tensor::logspace(s.number(), s.number(), s.size(), s.number(), &s.device);
        full_like |s| s.x().full_like(s.number());
        rand_like |s| { let x = s.x(); x.rand_like(&mut s.draws)? };
        randn_like |s| { let x = s.x(); x.randn_like(&mut s.draws)? };
        randint_like |s| {
            let (x, low, high) = (s.x(), s.int(), s.int());
            x.randint_like(low, high, &mut s.draws)?
        };
        meshgrid |s| {
            let x = s.x();
            let y = s.partner(&x);
            let indexing = s.pick(&[Indexing::Ij, Indexing::Xy]);
            Tensor::meshgrid(&[&x, &y], indexing)?
        };
        vander |s| s.x().vander(s.size(), s.one_in(2))?;
        tril_indices |s| {
            let (rows, columns, offset) = (s.size(), s.size(), s.axis());
            Tensor::tril_indices(rows, columns, offset, &s.device)?
        };
        triu_indices |s| {
            let (rows, columns, offset) = (s.size(), s.size(), s.axis());
            Tensor::triu_indices(rows, columns, offset, &s.device)?
        };
    }
}

fn placing() -> Vec<Call> {
    calls! {
        scatter_reduce |s| {
            use ScatterReduce::{Amax, Amin, Mean, Prod, Sum};
            let x = s.x();
            let index = s.index(&x);
            let src = s.tensor(index.shape().to_vec(), x.dtype());
            let reduce = s.pick(&[Sum, Prod, Mean, Amax, Amin]);
            x.scatter_reduce(s.axis(), &index, &src, reduce, s.one_in(2))?
        };
        index_add |s| {
            let (x, index) = { let x = s.x(); let index = s.index(&x).flatten(); (x, index) };
            let axis = s.axis();
            let src = x.index_select(axis, &index).unwrap_or_else(|_| s.partner(&x));
            x.index_add(axis, &index, &src, s.number())?
        };
        index_copy |s| {
            let (x, index) = { let x = s.x(); let index = s.index(&x).flatten(); (x, index) };
            let axis = s.axis();
            let src = x.index_select(axis, &index).unwrap_or_else(|_| s.partner(&x));
            x.index_copy(axis, &index, &src)?
        };
        index_fill |s| {
            let x = s.x();
            let index = s.index(&x);
            let value = s.operand(&x);
            x.index_fill(s.axis(), &index, value)?
        };
        masked_fill |s| {
            let x = s.x();
            let mask = s.partner(&x);
            let value = s.operand(&x);
            x.masked_fill(&mask, value)?
        };
        put |s| {
            let x = s.x();
            let index = s.index(&x);
            let src = s.tensor(index.shape().to_vec(), x.dtype());
            x.put(&index, &src, s.one_in(2))?
        };
        index_put |s| {
            let x = s.x();
            let parts = parts(s, &x);
            let values = s.tensor(vec![], x.dtype());
            x.index_put(&parts, &values, s.one_in(2))?
        };
    }
}

/// Parts of an index, in no sensible order.
fn parts(s: &mut Source, x: &Tensor) -> Vec<Index> {
    let n = s.pick(&[0, 1, 1, 2, 2, 3]);
    let mut part = |_| match s.rng.below(8) {
        0 => Index::At(s.axis()),
        1 => Index::NewAxis,
        2 => Index::Ellipsis,
        3 => s.index(x).into(),
        4 => s.partner(x).cast(DType::Bool).into(),
        5 => (..).into(),
        _ => {
            let start = if s.one_in(2) { None } else { Some(s.axis()) };
            Index::step(start, if s.one_in(2) { None } else { Some(s.axis()) }, s.axis())
        }
    };
    (0..n).map(&mut part).collect()
}

fn picking() -> Vec<Call> {
    calls! {
        index |s| { let x = s.x(); let parts = parts(s, &x); x.index(&parts)? };
        take |s| { let x = s.x(); x.take(&s.index(&x))? };
        take_along_dim |s| {
            let x = s.x();
            let axis = if s.one_in(4) { None } else { Some(s.axis()) };
            x.take_along_dim(&s.index(&x), axis)?
        };
        masked_select |s| { let x = s.x(); x.masked_select(&s.partner(&x))? };
        masked_scatter |s| {
            let x = s.x();
            let src = s.tensor(vec![3], x.dtype());
            x.masked_scatter(&s.partner(&x), &src)?
        };
        searchsorted |s| { let x = s.x(); x.searchsorted(&s.partner(&x), s.one_in(2))? };
        bucketize |s| { let x = s.x(); x.bucketize(&s.partner(&x), s.one_in(2))? };
        repeat_interleave_by |s| {
            let x = s.x();
            let times = s.index(&x).flatten();
            x.repeat_interleave_by(&times, s.axis())?
        };
    }
}

fn ordering() -> Vec<Call> {
    calls! {
        sort |s| { let (y, at) = s.x().sort(s.axis(), s.one_in(2))?; vec![y, at] };
        argsort |s| s.x().argsort(s.axis(), s.one_in(2))?;
        msort |s| s.x().msort()?;
        topk |s| { let (y, at) = s.x().topk(s.size(), s.axis(), s.one_in(2))?; vec![y, at] };
        kthvalue |s| { let (y, at) = s.x().kthvalue(s.size(), s.axis())?; vec![y, at] };
        median |s| { let (y, at) = s.x().median(s.axis())?; vec![y, at] };
        mode |s| { let (y, at) = s.x().mode(s.axis())?; vec![y, at] };
        quantile |s| { let x = s.x(); x.quantile(&[s.number(), 0.5], s.axis())? };
        unique |s| { let u = s.x().unique()?; vec![u.values, u.inverse, u.counts] };
        unique_consecutive |s| {
            let u = s.x().unique_consecutive()?;
            vec![u.values, u.inverse, u.counts]
        };
        bincount |s| {
            let (x, n) = (s.x(), s.size() % 1000);
            let mut at = s.index(&x);
            // Its extremes are read, which takes the interpreter minutes where there is no data.
            if s.large {
                at = s.tensor(vec![5], DType::I64);
            }
            at.bincount(n)?
        };
        bincount_to |s| { let x = s.x(); s.index(&x).bincount_to(s.size())? };
        histc |s| s.x().histc(s.size(), s.number(), s.number())?;
        histogram |s| {
            let (counts, edges) = s.x().histogram(s.size(), s.number(), s.number())?;
            vec![counts, edges]
        };
    }
}

fn statistics() -> Vec<Call> {
    calls! {
        count_nonzero |s| { let (x, axes) = (s.x(), s.axes()); x.count_nonzero(&axes[..])? };
        nansum |s| { let (x, axes) = (s.x(), s.axes()); x.nansum(&axes[..])? };
        nanmean |s| { let (x, axes) = (s.x(), s.axes()); x.nanmean(&axes[..])? };
        norm_p |s| { let (x, axes) = (s.x(), s.axes()); x.norm_p(s.number(), &axes[..])? };
        amax |s| { let (x, axes) = (s.x(), s.axes()); x.amax(&axes[..])? };
        amin |s| { let (x, axes) = (s.x(), s.axes()); x.amin(&axes[..])? };
        aminmax |s| { let (low, high) = s.x().aminmax(s.axis())?; vec![low, high] };
        var_mean |s| {
            let (x, axes) = (s.x(), s.axes());
            let (var, mean) = x.var_mean(&axes[..], s.size())?;
            vec![var, mean]
        };
        std_mean |s| {
            let (x, axes) = (s.x(), s.axes());
            let (std, mean) = x.std_mean(&axes[..], s.size())?;
            vec![std, mean]
        };
        cov |s| s.x().cov(s.size())?;
        corrcoef |s| s.x().corrcoef()?;
        cumprod |s| s.x().cumprod(s.axis())?;
        cummax |s| { let (y, at) = s.x().cummax(s.axis())?; vec![y, at] };
        cummin |s| { let (y, at) = s.x().cummin(s.axis())?; vec![y, at] };
        logcumsumexp |s| s.x().logcumsumexp(s.axis())?;
        diff |s| s.x().diff(s.size(), s.axis())?;
        trapezoid |s| s.x().trapezoid(s.number(), s.axis())?;
        cumulative_trapezoid |s| s.x().cumulative_trapezoid(s.number(), s.axis())?;
        linear_recurrence |s| {
            let x = s.x();
            x.linear_recurrence(&s.partner(&x), s.axis(), s.one_in(2))?
        };
        scan_with |s| {
            let op = s.pick(BinaryOp::ALL);
            s.x().scan_with(op, s.axis(), s.one_in(2), s.one_in(2))?
        };
        associative_scan |s| {
            let x = s.x();
            let y = if s.one_in(4) { s.partner(&x) } else { x.clone() };
            let wrong = s.one_in(8);
            let join = move |a: &[Tensor], b: &[Tensor]| -> Result<Vec<Tensor>> {
                let first = a[0].maximum(&b[0])?;
                Ok(if wrong { vec![first] } else { vec![first, a[1].add(&b[1])?] })
            };
            Tensor::associative_scan(join, &[&x, &y], s.axis(), s.one_in(2))?
        };
    }
}
