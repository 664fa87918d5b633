//! What detectors do with boxes.

use super::one;
use crate::budget::Budget;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Result, Tensor};

/// Boxes that were kept, in cells by where their left sides are: boxes overlap those of few cells.
struct Boxes {
    count: usize,
    cells: Vec<Vec<[f32; 4]>>,
    /// Where the first cell starts, and the width of each: no box is wider.
    origin: f32,
    width: f32,
}

fn area([left, top, right, bottom]: [f32; 4]) -> f32 {
    (right - left) * (bottom - top)
}

impl Boxes {
    /// None yet of these.
    fn of(all: &[[f32; 4]]) -> Boxes {
        let (mut origin, mut last, mut width) = (f32::INFINITY, f32::NEG_INFINITY, 0f32);
        for &[left, _, right, _] in all {
            (origin, last, width) = (origin.min(left), last.max(left), width.max(right - left));
        }
        // One cell where there is no finite number of them.
        let cells = (last - origin) / width;
        let cells = if cells.is_finite() { (cells as usize).min(all.len()) + 1 } else { 1 };
        // As many as there are boxes are enough.
        let width = width.max((last - origin) / cells as f32);
        Boxes { count: 0, cells: vec![Vec::new(); cells], origin, width }
    }

    fn cell(&self, x: f32) -> usize {
        (((x - self.origin) / self.width) as usize).min(self.cells.len() - 1)
    }

    fn push(&mut self, corners: [f32; 4]) {
        let cell = self.cell(corners[0]);
        self.cells[cell].push(corners);
        self.count += 1;
    }

    /// Whether the area that a box has in common with any of these is more than a part of what both cover.
    fn overlap(&self, corners: [f32; 4], part: f32) -> bool {
        let [left, top, right, bottom] = corners;
        let own = area(corners);
        let overlaps = |other: &[f32; 4]| {
            let width = right.min(other[2]) - left.max(other[0]);
            let height = bottom.min(other[3]) - top.max(other[1]);
            let common = width * height;
            width > 0.0 && height > 0.0 && common > part * (area(*other) + own - common)
        };
        // A cell more, since the difference is rounded.
        let first = self.cell(left - self.width).saturating_sub(1);
        self.cells[first..=self.cell(right).max(first)].iter().flatten().any(overlaps)
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
            let all: Vec<[f32; 4]> = order.iter().map(|&i| corners(batch, i)).collect();
            let mut boxes = Boxes::of(&all);
            for (i, corners) in order.into_iter().zip(all) {
                Budget::check_interrupt()?;
                if boxes.count == most {
                    break;
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_in_cells_overlap_as_all_do() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 40) as f32 / (1u64 << 24) as f32
        };
        let mut found = [0, 0];
        for [spread, widest] in [[1.0, 0.2], [1000.0, 30.0], [1e30, 1e29], [1.0, 0.0], [0.0, 2.0]] {
            let mut all: Vec<[f32; 4]> = Vec::new();
            for _ in 0..300 {
                let [x, y] = [random() * spread - spread / 3.0, random() * widest];
                all.push([x, y, x + random() * widest, y + random() * widest]);
            }
            if spread == 1.0 {
                all.extend([[f32::NAN; 4], [0.1, f32::NAN, 0.2, 1.0]]);
                all.push([f32::NEG_INFINITY, 0.0, 0.3, f32::INFINITY]);
            }
            let mut kept = Boxes::of(&all);
            let mut simple = Boxes { cells: vec![Vec::new()], ..Boxes::of(&all) };
            for &corners in &all {
                for part in [0.0, 0.3] {
                    let expected = simple.overlap(corners, part);
                    assert_eq!(kept.overlap(corners, part), expected, "{corners:?} {part}");
                    found[usize::from(expected)] += 1;
                }
                kept.push(corners);
                simple.push(corners);
            }
        }
        assert!(found.iter().all(|&n| n > 100), "{found:?}");
    }
}
