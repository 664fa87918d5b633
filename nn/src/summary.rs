//! The table that [`Module::summary`](crate::Module::summary) gives.

use std::fmt::Write;
use zyx_core::Param;

/// One line for each parameter, and the sums.
pub(crate) fn of(named: &[(String, Param)]) -> String {
    let mut rows = Vec::with_capacity(named.len());
    let mut seen: Vec<&Param> = Vec::new();
    let [mut trained, mut frozen, mut bytes] = [0, 0, 0];
    for (name, parameter) in named {
        let tied = seen.iter().any(|known| known.is_same(parameter));
        let n = parameter.shape().numel();
        let kind = match () {
            () if tied => "tied",
            () if parameter.is_state() => "state",
            () if parameter.is_trainable() => "trained",
            () => "frozen",
        };
        if !tied {
            seen.push(parameter);
            bytes += n * parameter.dtype().size();
            match kind {
                "trained" => trained += n,
                _ => frozen += n,
            }
        }
        let shape = parameter.shape().to_string();
        rows.push([name.clone(), shape, parameter.dtype().to_string(), grouped(n), kind.into()]);
    }
    let mut text = String::new();
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    for [name, shape, dtype, n, kind] in &rows {
        let [a, b, c, d] = widths;
        let _ = writeln!(text, "{name:a$}  {shape:b$}  {dtype:c$}  {n:>d$}  {kind}");
    }
    let all = [trained, frozen, bytes].map(grouped);
    let _ = writeln!(text, "{} trained, {} not, {} bytes", all[0], all[1], all[2]);
    text
}

/// Digits in groups of three.
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::{BatchNorm1d, Init, Linear, Module, Sequential};
    use zyx_core::Runtime;

    #[test]
    fn counts_and_kinds() {
        let device = Runtime::default().device("reference").unwrap();
        let init = &mut Init::new(0, &device);
        let tied = Linear::new(30, 40, init).unwrap();
        let model = Sequential::new()
            .then(tied.clone())
            .then(BatchNorm1d::new(40, init).unwrap())
            .then(tied.clone());
        tied.bias.as_ref().unwrap().set_trainable(false);
        let text = model.summary();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "0.weight               [40, 30]  f32  1,200  trained");
        assert!(lines[1].ends_with("40  frozen") && lines[4].ends_with("40  state"), "{text}");
        assert!(lines[7].ends_with("tied"), "{text}");
        assert_eq!(lines[9], "1,280 trained, 121 not, 5,608 bytes");
    }
}
