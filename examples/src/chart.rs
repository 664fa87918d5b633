//! A curve, drawn with characters for a terminal and as SVG for anything else.
//!
//! The vertical axis is logarithmic: losses fall over orders of magnitude. Values that have no
//! logarithm (0, negative, NaN) are left out.

use std::fmt::Write;

/// The smallest and largest value that can be drawn, a little apart even if all are equal.
fn limits(values: &[f64]) -> Option<(f64, f64)> {
    let drawable = || values.iter().copied().filter(|x| *x > 0.0 && x.is_finite());
    let (low, high) = (drawable().reduce(f64::min)?, drawable().reduce(f64::max)?);
    Some(if high / low < 1.01 { (low * 0.99, high * 1.01) } else { (low, high) })
}

/// Where `x` is between the limits, from 0 to 1.
fn height(x: f64, (low, high): (f64, f64)) -> f64 {
    (x / low).ln() / (high / low).ln()
}

/// The curve in `width` times `height` characters, each a grid of 2 by 4 Braille dots, with the
/// limits at the left.
pub fn terminal(values: &[f64], width: usize, rows: usize) -> String {
    let Some(limits) = limits(values) else {
        return "(nothing to draw)\n".to_owned();
    };
    let (across, down) = (2 * width, 4 * rows);
    let mut dots = vec![vec![false; across]; down];
    for (column, mean) in columns(values, across).into_iter().enumerate() {
        if mean > 0.0 && mean.is_finite() {
            let y = (height(mean, limits) * (down - 1) as f64).round() as usize;
            dots[down - 1 - y.min(down - 1)][column] = true;
        }
    }
    let mut text = String::new();
    for row in 0..rows {
        let label = match row {
            0 => format!("{:9.4}", limits.1),
            row if row + 1 == rows => format!("{:9.4}", limits.0),
            _ => " ".repeat(9),
        };
        let cells = (0..width).map(|column| braille(&dots, 4 * row, 2 * column));
        let cells: String = cells.collect();
        text += &format!("{label} │{}\n", cells.trim_end_matches('\u{2800}'));
    }
    text
}

/// The means of `n` pieces of the values; pieces of nothing are NaN.
fn columns(values: &[f64], n: usize) -> Vec<f64> {
    let piece = |i: usize| {
        let part = &values[i * values.len() / n..((i + 1) * values.len() / n)];
        let single = &values[i * values.len() / n..][..1];
        let part = if part.is_empty() && values.len() < n { single } else { part };
        part.iter().sum::<f64>() / part.len() as f64
    };
    (0..n).map(piece).collect()
}

/// The character for the 2 by 4 dots at a place.
fn braille(dots: &[Vec<bool>], top: usize, left: usize) -> char {
    const BITS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
    let mut code = 0x2800;
    for (y, bits) in BITS.iter().enumerate() {
        for (x, bit) in bits.iter().enumerate() {
            code |= if dots[top + y][left + x] { *bit } else { 0 };
        }
    }
    char::from_u32(code).expect("invariant: all 256 patterns are characters")
}

/// The curve as an SVG document of 720 by 360, with a title.
pub fn svg(values: &[f64], title: &str) -> String {
    const LEFT: f64 = 70.0;
    const TOP: f64 = 40.0;
    const WIDTH: f64 = 630.0;
    const HEIGHT: f64 = 290.0;
    let mut path = String::new();
    let mut labels = String::new();
    if let Some(limits) = limits(values) {
        let step = WIDTH / (values.len().max(2) - 1) as f64;
        for (i, &x) in values.iter().enumerate().filter(|(_, x)| **x > 0.0 && x.is_finite()) {
            let y = TOP + HEIGHT * (1.0 - height(x, limits));
            let _ = write!(path, "{:.1},{y:.1} ", LEFT + i as f64 * step);
        }
        for (x, y) in [(limits.1, TOP), (limits.0, TOP + HEIGHT)] {
            let _ = write!(labels, "<text x='8' y='{y}'>{x:.4}</text>");
        }
    }
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 720 360' font-family='sans-serif' \
         font-size='13'><rect width='720' height='360' fill='white'/><text x='{LEFT}' y='24'>\
         {title}</text>{labels}<rect x='{LEFT}' y='{TOP}' width='{WIDTH}' height='{HEIGHT}' \
         fill='none' stroke='#ccc'/><polyline fill='none' stroke='#06c' stroke-width='1.2' \
         points='{path}'/></svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_falling_curve_falls() {
        let values: Vec<f64> = (0..200).map(|i| (-0.03 * f64::from(i)).exp()).collect();
        let text = terminal(&values, 40, 8);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 8);
        assert!(lines[0].starts_with("   1.0000 │⠑") || lines[0].starts_with("   1.0000 │⠉"));
        let start = |line: &str| line.chars().skip(11).position(|c| c != '\u{2800}');
        let starts: Vec<_> = lines.iter().map(|line| start(line)).collect();
        assert!(starts.is_sorted(), "{text}");
    }

    #[test]
    fn odd_values_are_left_out() {
        assert_eq!(terminal(&[], 10, 2), "(nothing to draw)\n");
        assert_eq!(terminal(&[f64::NAN, 0.0], 10, 2), "(nothing to draw)\n");
        for values in [&[1.0][..], &[2.0, 2.0], &[1.0, f64::INFINITY, 3.0, -1.0]] {
            assert_eq!(terminal(values, 10, 3).lines().count(), 3);
            assert!(svg(values, "a < b & c").contains("a &lt; b &amp; c"));
            assert!(!svg(values, "").contains("NaN"));
        }
        assert_eq!(svg(&[1.0, 2.0, 4.0], "").matches(',').count(), 3);
    }
}
