//! Rows of reductions, scans, orders and statistics.

use super::{Row, rows};
use zyx_core::{BinaryOp, Tensor};

macro_rules! along {
    ($($name:ident)*) => { rows! {$( $name |s| s.x.$name(1); )*} };
}

/// The rows.
pub(super) fn table() -> Vec<Row> {
    let mut all = along! {
        sum sum_keepdim prod prod_keepdim max max_keepdim min min_keepdim mean mean_keepdim
        any any_keepdim all all_keepdim logsumexp logsumexp_keepdim norm norm_keepdim
        argmax argmin cumsum cumprod cummax cummin logcumsumexp
        softmax log_softmax softmin
        amax amin aminmax count_nonzero nansum nanmean median mode
    };
    all.extend(rows! {
        var |s| s.x.var(1, 1);
        var_keepdim |s| s.x.var_keepdim(1, 1);
        std |s| s.x.std(1, 1);
        var_mean |s| s.x.var_mean(1, 1);
        std_mean |s| s.x.std_mean(1, 1);
        norm_p |s| s.x.norm_p(3.0, 1);
        vector_norm |s| s.x.vector_norm(1.0, 1);
        scan_with |s| s.x.scan_with(BinaryOp::Max, 1, true, false);
        associative_scan |s| Tensor::associative_scan(
            |a, b| Ok(vec![a[0].maximum(&b[0])?]), &[&s.x], 1, false,
        );
        linear_recurrence |s| s.unit.linear_recurrence(&s.x, 1, false);
        diff |s| s.x.diff(1, 1);
        trapezoid |s| s.x.trapezoid(0.5, 1);
        cumulative_trapezoid |s| s.x.cumulative_trapezoid(0.5, 1);
        sort |s| s.x.sort(1, true);
        argsort |s| s.x.argsort(1, false);
        msort |s| s.x.msort();
        topk |s| s.x.topk(2, 1, true);
        kthvalue |s| s.x.kthvalue(2, 1);
        quantile |s| s.x.quantile(&[0.25, 0.5], 1);
        unique |s| s.x.unique();
        unique_consecutive |s| s.x.unique_consecutive();
        histc |s| s.x.histc(4, 0.0, 4.0);
        histogram |s| s.x.histogram(4, 0.0, 4.0);
        cov |s| s.x.cov(1);
        corrcoef |s| s.x.corrcoef();
    });
    all
}
