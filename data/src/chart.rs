//! Curves of losses, drawn with characters for a terminal and as SVG for anything else.
//!
//! The vertical axis is logarithmic: losses fall over orders of magnitude. Values that have no
//! logarithm (0, negative, NaN) are left out. `plotters` draws; dots of Braille characters are its
//! pixels on a terminal.

use plotters::coord::combinators::{BindKeyPoints, IntoLogRange, LogCoord};
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::{
    BLUE, ChartBuilder, Color, DrawingBackend, IntoDrawingArea, LineSeries, RGBColor, SVGBackend,
    WHITE,
};
use plotters_backend::{BackendColor, DrawingErrorKind};
use std::convert::Infallible;
use zyx_core::{Error, Result};

/// Width and height of an SVG document.
const SIZE: (u32, u32) = (1280, 640);

/// The grey of an axis.
const GREY: RGBColor = RGBColor(200, 200, 200);

fn failed(error: impl std::error::Error) -> Error {
    Error::Format { what: "chart".to_owned(), reason: error.to_string() }
}

/// The values that can be drawn, each with its place.
fn drawable(values: &[f64]) -> impl Iterator<Item = (usize, f64)> {
    values.iter().copied().enumerate().filter(|(_, x)| *x > 0.0 && x.is_finite())
}

/// The smallest and largest of these values, a little apart even if all are equal.
fn limits(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(x), h.max(x)));
    if low > high {
        return None;
    }
    let apart = (low * 0.99, (high * 1.01).min(f64::MAX));
    Some(if high / low < 1.01 { apart } else { (low, high) })
}

/// A number beside an axis: four places where that says something.
fn label(x: f64) -> String {
    if (0.001..10_000.0).contains(&x) { format!("{x:.4}") } else { format!("{x:.3e}") }
}

/// The curve in `width` times `rows` characters, each a grid of 2 by 4 Braille dots, with the
/// limits at the left. Of more values than dots across, means of equal parts are drawn.
///
/// ```
/// let losses: Vec<f64> = (0..80).map(|i| 2.0 * 0.95f64.powi(i)).collect();
/// let text = zyx::data::chart::terminal(&losses, 40, 6)?;
/// assert_eq!(text.lines().count(), 6);
/// assert!(text.starts_with("   2.0000 │"));
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When `width` or `rows` is 0.
pub fn terminal(values: &[f64], width: usize, rows: usize) -> Result<String> {
    if width == 0 || rows == 0 {
        let reason = format!("{width} times {rows} characters; each must be 1 at least");
        return Err(Error::Format { what: "chart".to_owned(), reason });
    }
    let means: Vec<(usize, f64)> = columns(values, 2 * width).collect();
    let Some((low, high)) = limits(means.iter().map(|(_, mean)| *mean)) else {
        return Ok("(nothing to draw)\n".to_owned());
    };
    let mut canvas = Canvas { dots: vec![vec![false; 2 * width]; 4 * rows] };
    let height: LogCoord<f64> = (low..high).log_scale().into();
    let points: Vec<(i32, i32)> = means
        .iter()
        .map(|(x, mean)| (*x as i32, height.map(mean, (4 * rows as i32 - 1, 0))))
        .collect();
    for &point in &points {
        canvas.draw_pixel(point, BLUE.to_backend_color()).map_err(failed)?;
    }
    canvas.draw_path(points, &BLUE).map_err(failed)?;
    let mut text = String::new();
    for row in 0..rows {
        let label = match row {
            0 => label(high),
            row if row + 1 == rows => label(low),
            _ => String::new(),
        };
        let cells: String = (0..width).map(|column| canvas.braille(4 * row, 2 * column)).collect();
        text += &format!("{label:>9} │{}\n", cells.trim_end_matches('\u{2800}'));
    }
    Ok(text)
}

/// Columns of dots with what is drawn there: the mean of the values that fall into each, none where
/// there is none.
fn columns(values: &[f64], n: usize) -> impl Iterator<Item = (usize, f64)> {
    let mut sums = vec![(0.0, 0u32); n];
    let across = |i: usize| match values.len() <= n {
        // From edge to edge.
        true => i * (n - 1) / (values.len() - 1).max(1),
        false => i * n / values.len(),
    };
    for (i, x) in drawable(values) {
        let (sum, count) = &mut sums[across(i)];
        (*sum, *count) = (*sum + x, *count + 1);
    }
    let mean = |(column, (sum, count))| (column, sum / f64::from(count));
    sums.into_iter().enumerate().filter(|(_, (_, count))| *count > 0).map(mean)
}

/// Dots of a terminal, row by row.
struct Canvas {
    dots: Vec<Vec<bool>>,
}

impl Canvas {
    /// The character for the 2 by 4 dots at a place.
    fn braille(&self, top: usize, left: usize) -> char {
        const BITS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let mut code = 0x2800;
        for (y, bits) in BITS.iter().enumerate() {
            for (x, bit) in bits.iter().enumerate() {
                code |= if self.dots[top + y][left + x] { *bit } else { 0 };
            }
        }
        char::from_u32(code).expect("invariant: all 256 patterns are characters")
    }
}

impl DrawingBackend for Canvas {
    type ErrorType = Infallible;

    /// Larger by a pixel on each side: lines are not drawn to the last ones.
    fn get_size(&self) -> (u32, u32) {
        (self.dots[0].len() as u32 + 2, self.dots.len() as u32 + 2)
    }

    fn ensure_prepared(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
        Ok(())
    }

    fn present(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
        Ok(())
    }

    /// A dot is there or not: of a smooth line's pixels those that it covers by half.
    fn draw_pixel(
        &mut self,
        (x, y): (i32, i32),
        color: BackendColor,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        let row = usize::try_from(y).ok().and_then(|y| self.dots.get_mut(y));
        let dot = row.and_then(|row| row.get_mut(usize::try_from(x).ok()?));
        if let Some(dot) = dot.filter(|_| color.alpha >= 0.5) {
            *dot = true;
        }
        Ok(())
    }
}

/// The curve of one value a step as an SVG document, with a title.
///
/// ```
/// let losses: Vec<f64> = (0..100).map(|i| 2.0 * 0.95f64.powi(i)).collect();
/// let document = zyx::data::chart::svg(&losses, "loss of each step")?;
/// assert!(document.contains("<polyline") && document.contains("loss of each step"));
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When it cannot be drawn.
pub fn svg(values: &[f64], title: &str) -> Result<String> {
    let mut document = String::new();
    let area = SVGBackend::with_string(&mut document, SIZE).into_drawing_area();
    area.fill(&WHITE).map_err(failed)?;
    let (low, high) = limits(drawable(values).map(|(_, x)| x)).unwrap_or((0.1, 1.0));
    // Of a narrow range powers of ten say nothing: five numbers, equally far apart.
    let between = |i: i32| (low.ln() + (high.ln() - low.ln()) * f64::from(i) / 4.0).exp();
    let marks = [low].into_iter().chain((1..4).map(between)).chain([high]).collect();
    let axis = (low..high).log_scale().with_key_points(marks);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 26))
        .margin(20)
        .x_label_area_size(40)
        .y_label_area_size(100)
        .build_cartesian_2d(0..values.len().max(2) - 1, axis)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GREY)
        .axis_style(GREY)
        .label_style(("sans-serif", 20))
        .y_label_formatter(&|x| label(*x))
        .draw()
        .map_err(failed)?;
    chart.draw_series(LineSeries::new(drawable(values), BLUE.stroke_width(2))).map_err(failed)?;
    area.present().map_err(failed)?;
    drop(chart);
    drop(area);
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of an attribute of each element of a kind.
    fn attribute(document: &str, element: &str, name: &str) -> Vec<String> {
        let begin = format!("<{element} ");
        let elements = document.split(&begin).skip(1);
        elements
            .map(|rest| {
                let from = rest.split_once(&format!("{name}=\"")).unwrap().1;
                from.split_once('"').unwrap().0.to_owned()
            })
            .collect()
    }

    /// The points of the curve: the longest line of a document.
    fn points(document: &str) -> Vec<(f64, f64)> {
        let lines = attribute(document, "polyline", "points");
        let longest = lines.iter().max_by_key(|line| line.split_whitespace().count()).unwrap();
        let number = |x: &str| x.parse::<f64>().unwrap();
        let pair = |text: &str| text.split_once(',').map(|(x, y)| (number(x), number(y))).unwrap();
        longest.split_whitespace().map(pair).collect()
    }

    #[test]
    fn points_are_the_data() {
        let values: Vec<f64> =
            (0..200).map(|i| 3.0 * (-0.03 * f64::from(i)).exp() + 0.2 * f64::from(i % 7)).collect();
        let document = svg(&values, "loss").unwrap();
        let points = points(&document);
        assert_eq!(points.len(), values.len());
        // Both axes found again from two points; all others must then be where the data are.
        let (low, high) = limits(values.iter().copied()).unwrap();
        let at = |x: f64| values.iter().position(|y| *y == x).unwrap();
        let (bottom, top) = (points[at(low)].1, points[at(high)].1);
        let (left, right) = (points[0].0, points[199].0);
        assert!(bottom - top > 400.0 && right - left > 1000.0, "{document}");
        for (i, (&value, (x, y))) in values.iter().zip(points).enumerate() {
            let want_x = left + (right - left) * i as f64 / 199.0;
            let want_y = bottom + (top - bottom) * (value / low).ln() / (high / low).ln();
            assert!((x - want_x).abs() <= 1.0 && (y - want_y).abs() <= 1.0, "point {i}: {x}, {y}");
        }
        // The numbers beside the axis are those at its ends and between.
        for x in [low, (low * high).sqrt(), high] {
            assert!(document.contains(&format!("\n{}\n", label(x))), "{x}: {document}");
        }
        assert!(document.starts_with("<svg ") && document.ends_with("</svg>\n"));
    }

    #[test]
    fn a_falling_curve_falls() {
        let values: Vec<f64> = (0..80).map(|i| (-0.075 * f64::from(i)).exp()).collect();
        let text = terminal(&values, 40, 8).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 8);
        assert!(lines[0].starts_with("   1.0000 │") && lines[7].starts_with("   0.0027 │"));
        // The logarithm falls evenly: 80 dots across for 32 down, each row a part of its own.
        for (row, line) in lines.iter().enumerate() {
            let drawn = |c: &(usize, char)| c.1 != '\u{2800}';
            let cells: Vec<usize> =
                line.chars().skip(11).enumerate().filter(drawn).map(|(i, _)| i).collect();
            let (first, last) = (cells[0], cells[cells.len() - 1]);
            let cell = |dot: usize| dot * 79 / 31 / 2;
            let (from, to) = (cell(4 * row), cell(4 * row + 3));
            assert!(first.abs_diff(from) <= 1 && last.abs_diff(to) <= 1, "{row}: {text}");
        }
        // Fewer values than columns are joined by lines: no column is empty.
        let text = terminal(&[1.0, 10.0, 1.0], 10, 4).unwrap();
        for column in 0..10 {
            let cell = |line: &str| line.chars().nth(11 + column).unwrap_or('\u{2800}');
            assert!(text.lines().any(|line| cell(line) != '\u{2800}'), "{column}: {text}");
        }
        // More of them are averaged, and the limits are those of what is drawn.
        let values = [1.0, 3.0, f64::NAN, 7.0, 5.0, 5.0];
        assert_eq!(columns(&values, 3).collect::<Vec<_>>(), [(0, 2.0), (1, 7.0), (2, 5.0)]);
        let text = terminal(&[values.repeat(2), vec![1.0; 12]].concat(), 6, 2).unwrap();
        assert!(text.starts_with("   7.0000 │") && text.contains("\n   1.0000 │"), "{text}");
        assert!(terminal(&values, 0, 8).is_err() && terminal(&values, 40, 0).is_err());
    }

    #[test]
    fn odd_values_are_left_out() {
        assert_eq!(terminal(&[], 10, 2).unwrap(), "(nothing to draw)\n");
        assert_eq!(terminal(&[f64::NAN, 0.0], 10, 2).unwrap(), "(nothing to draw)\n");
        let extremes = [f64::MIN_POSITIVE, f64::MAX, 5e-324];
        for values in [&[1.0][..], &[2.0, 2.0], &[1.0, f64::INFINITY, 3.0, -1.0], &extremes, &[]] {
            let document = svg(values, "a < b & c").unwrap();
            assert!(document.contains("a &lt; b &amp; c"), "{document}");
            assert!(!document.contains("NaN"), "{document}");
            let n = drawable(values).count();
            assert!(n < 3 || points(&document).len() == n, "{values:?}: {document}");
            if n > 0 {
                assert_eq!(terminal(values, 10, 3).unwrap().lines().count(), 3);
            }
        }
        assert_eq!(points(&svg(&[1.0, f64::NAN, 2.0, 0.0, 4.0], "").unwrap()).len(), 3);
        assert_eq!((label(2.5e-7), label(0.5)), ("2.500e-7".to_owned(), "0.5000".to_owned()));
    }
}
