//! Images of another size by factors that give no whole extent, against the formula of each mode
//! evaluated element by element.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use zyx_core::{Device, Interpolation, Runtime, Tensor};

fn device() -> Device {
    Runtime::default().device("reference").unwrap()
}

/// Keys's kernel with `a = -3/4`, by distance.
fn keys(d: f64) -> f64 {
    let (a, d) = (-0.75, d.abs());
    match d {
        d if d <= 1.0 => (a + 2.0) * d.powi(3) - (a + 3.0) * d.powi(2) + 1.0,
        d if d < 2.0 => a * (d.powi(3) - 5.0 * d.powi(2) + 8.0 * d - 4.0),
        _ => 0.0,
    }
}

/// How much of element `j` of `n` is in element `i` of the result, whose neighbours are `apart`
/// elements apart: PyTorch's `(i + 1/2) apart - 1/2`, or `i apart` for the nearest.
fn weight(mode: Interpolation, apart: f64, n: usize, i: usize, j: usize) -> f64 {
    let last = n as f64 - 1.0;
    let middle = (i as f64 + 0.5) * apart;
    match mode {
        Interpolation::Nearest => f64::from((i as f64 * apart).floor().min(last) == j as f64),
        Interpolation::NearestExact => f64::from(middle.floor().min(last) == j as f64),
        Interpolation::Linear => {
            let at = (middle - 0.5).clamp(0.0, last);
            (1.0 - (at - j as f64).abs()).max(0.0)
        }
        _ => {
            let at = middle - 0.5;
            let taps = (-1..3).map(|tap| at.floor() + f64::from(tap));
            taps.filter(|t| t.clamp(0.0, last) == j as f64).map(|t| keys(at - t)).sum()
        }
    }
}

#[test]
fn neighbours_are_as_far_apart_as_the_factor_says() {
    use Interpolation::{Cubic, Linear, Nearest, NearestExact};
    let device = device();
    let (height, width) = (5, 7);
    let data: Vec<f64> =
        (0..height * width).map(|i| ((i * i * 37 + i) % 23) as f64 - 9.0).collect();
    let x = Tensor::from_slice(&data, [height, width], &device).unwrap();
    for mode in [Nearest, NearestExact, Linear, Cubic] {
        let mut moved = 0;
        for scale in [[1.5, 1.5], [0.7, 2.3], [2.0, 0.45], [1.1, 1.05], [0.2, 3.9]] {
            let y = x.interpolate_by(&scale, mode, false).unwrap();
            let size = [(5.0 * scale[0]) as usize, (7.0 * scale[1]) as usize];
            assert_eq!(y.shape().dims(), size);
            let got = y.to_vec::<f64>().unwrap();
            for (at, got) in got.iter().enumerate() {
                let (row, column) = (at / size[1], at % size[1]);
                let mut want = 0.0;
                for (j, x) in data.iter().enumerate() {
                    want += x
                        * weight(mode, 1.0 / scale[0], height, row, j / width)
                        * weight(mode, 1.0 / scale[1], width, column, j % width);
                }
                assert!((got - want).abs() < 1e-12, "{mode:?} {scale:?} {at}: {got}, not {want}");
            }
            let by_size = x.interpolate(&size, mode, false).unwrap().to_vec::<f64>().unwrap();
            moved += usize::from(by_size != got);
        }
        // The nearest element may be the same one, what lies between two is not.
        let least = if matches!(mode, Linear | Cubic) { 5 } else { 1 };
        assert!(moved >= least, "{mode:?}: {moved} differ from those of the rounded size");
    }
}

#[test]
fn whole_extents_corners_and_pieces_follow_from_the_size() {
    let device = device();
    let x = Tensor::from_slice(&[1.0f64, 5.0, 2.0, -3.0], [4], &device).unwrap();
    for (scale, size, mode, corners) in [
        (1.5, 6, Interpolation::Linear, false),
        (0.5, 2, Interpolation::Nearest, false),
        (1.3, 5, Interpolation::Linear, true),
        (1.4, 5, Interpolation::Area, false),
    ] {
        let by = x.interpolate_by(&[scale], mode, corners).unwrap().to_vec::<f64>().unwrap();
        let to = x.interpolate(&[size], mode, corners).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(by, to, "{scale} {mode:?}");
    }
    for scale in [&[0.0][..], &[-1.0], &[f64::NAN], &[f64::INFINITY], &[1e300], &[], &[2.0, 2.0]] {
        assert!(x.interpolate_by(scale, Interpolation::Linear, false).is_err(), "{scale:?}");
    }
}
