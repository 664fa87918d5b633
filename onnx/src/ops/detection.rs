//! What detectors do with boxes.

use super::one;
use crate::budget::Budget;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Result, Tensor};

/// Boxes that overlap no better one of their class by more than a threshold, on the host: how many there are depends
/// on all of them.
pub(super) fn non_max_suppression(call: &Call<'_>) -> Result<Vec<Value>> {
    let boxes = call.read(call.value(0)?)?;
    let scores = call.read(call.value(1)?)?;
    let (&[batches, n, 4], &[score_batches, classes, score_n]) = (boxes.shape(), scores.shape())
    else {
        let reason = format!("boxes {:?} and scores {:?}", boxes.shape(), scores.shape());
        return Err(call.error(reason));
    };
    if (batches, n) != (score_batches, score_n) {
        return Err(call.error("boxes and scores are not equally many"));
    }
    let most = call.optional_ints(2)?.and_then(|n| n.first().copied()).unwrap_or(0).max(0) as usize;
    let number = |i: usize| -> Result<Option<f64>> {
        call.optional(i)
            .map(|value| Ok(call.read(value)?.floats().first().copied()))
            .transpose()
            .map(Option::flatten)
    };
    let (overlap, least) = (number(3)?.unwrap_or(0.0), number(4)?);
    let centered = call.flag("center_point_box")?;
    let (boxes, scores) = (boxes.floats(), scores.floats());
    let corners = |batch: usize, i: usize| {
        let b = &boxes[(batch * n + i) * 4..][..4];
        match centered {
            true => [b[0] - b[2] / 2.0, b[1] - b[3] / 2.0, b[0] + b[2] / 2.0, b[1] + b[3] / 2.0],
            false => [b[0].min(b[2]), b[1].min(b[3]), b[0].max(b[2]), b[1].max(b[3])],
        }
    };
    let area = |b: [f64; 4]| (b[2] - b[0]) * (b[3] - b[1]);
    let overlaps = |a: [f64; 4], b: [f64; 4]| {
        let width = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
        let height = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
        let common = width * height;
        common > 0.0 && common / (area(a) + area(b) - common) > overlap
    };
    let mut chosen: Vec<i64> = Vec::new();
    for batch in 0..batches {
        for class in 0..classes {
            let scores = &scores[(batch * classes + class) * n..][..n];
            call.budget().ask(0)?;
            let mut order: Vec<usize> =
                (0..n).filter(|&i| least.is_none_or(|least| scores[i] > least)).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            let mut kept: Vec<usize> = Vec::new();
            for i in order {
                Budget::check_interrupt()?;
                if kept.len() == most {
                    break;
                }
                if !kept.iter().any(|&k| overlaps(corners(batch, k), corners(batch, i))) {
                    kept.push(i);
                }
            }
            chosen.extend(kept.iter().flat_map(|&i| [batch as i64, class as i64, i as i64]));
        }
    }
    let rows = chosen.len() / 3;
    one(if rows == 0 {
        Tensor::zeros([0, 3], DType::I64, call.device())
    } else {
        Tensor::from_slice(&chosen, [rows, 3], call.device())?
    })
}
