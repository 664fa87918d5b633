//! What detectors do with boxes.

use super::one;
use crate::budget::Budget;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Result, Tensor};

/// Boxes that are compared at once.
const LANES: usize = 16;

/// Boxes in groups: the two corners and the area of each.
#[derive(Default)]
struct Boxes {
    count: usize,
    groups: Vec<[[f32; LANES]; 5]>,
}

fn area([left, top, right, bottom]: [f32; 4]) -> f32 {
    (right - left) * (bottom - top)
}

impl Boxes {
    fn push(&mut self, corners: [f32; 4]) {
        let lane = self.count % LANES;
        if lane == 0 {
            // Empty boxes overlap nothing.
            self.groups.push([[0.0; LANES]; 5]);
        }
        if let Some(group) = self.groups.last_mut() {
            let numbers = corners.into_iter().chain([area(corners)]);
            group.iter_mut().zip(numbers).for_each(|(lanes, x)| lanes[lane] = x);
        }
        self.count += 1;
    }

    /// Whether the area that a box has in common with any of these is more than a part of what both cover.
    fn overlap(&self, corners: [f32; 4], part: f32) -> bool {
        let own = area(corners);
        let [left, top, right, bottom] = corners;
        self.groups.iter().any(|[lefts, tops, rights, bottoms, areas]| {
            let mut found = [false; LANES];
            for (i, found) in found.iter_mut().enumerate() {
                let width = (if right < rights[i] { right } else { rights[i] })
                    - (if left > lefts[i] { left } else { lefts[i] });
                let height = (if bottom < bottoms[i] { bottom } else { bottoms[i] })
                    - (if top > tops[i] { top } else { tops[i] });
                let common = width * height;
                let all = areas[i] + own - common;
                *found = (width > 0.0) & (height > 0.0) & (common > part * all);
            }
            found.iter().fold(false, |any, &found| any | found)
        })
    }
}

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
        let corners = match centered {
            true => [b[0] - b[2] / 2.0, b[1] - b[3] / 2.0, b[0] + b[2] / 2.0, b[1] + b[3] / 2.0],
            false => [b[0].min(b[2]), b[1].min(b[3]), b[0].max(b[2]), b[1].max(b[3])],
        };
        corners.map(|x| x as f32)
    };
    let mut chosen: Vec<i64> = Vec::new();
    for batch in 0..batches {
        for class in 0..classes {
            let scores = &scores[(batch * classes + class) * n..][..n];
            call.budget().ask(0)?;
            let mut order: Vec<usize> =
                (0..n).filter(|&i| least.is_none_or(|least| scores[i] > least)).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            let mut boxes = Boxes::default();
            for i in order {
                Budget::check_interrupt()?;
                if boxes.count == most {
                    break;
                }
                let corners = corners(batch, i);
                if !boxes.overlap(corners, overlap as f32) {
                    boxes.push(corners);
                    chosen.extend([batch as i64, class as i64, i as i64]);
                }
            }
        }
    }
    let rows = chosen.len() / 3;
    one(if rows == 0 {
        Tensor::zeros([0, 3], DType::I64, call.device())
    } else {
        Tensor::from_slice(&chosen, [rows, 3], call.device())?
    })
}
