//! An [`Explanation`] as a graph in the DOT language.

use super::{Explanation, LaunchNote, ValueNote};
use rustc_hash::FxHashSet;
use std::fmt::Write;

/// Launches, inputs and results as nodes, values as edges. Writing to a string cannot fail.
pub(super) fn of(explanation: &Explanation) -> String {
    let mut text = String::from("digraph plan {\n  node [fontname=monospace];\n");
    let values = || explanation.launches.iter().flat_map(LaunchNote::values);
    let mut seen = FxHashSet::default();
    let inputs = values().filter(|value| value.launch.is_none());
    for input in inputs.filter(|value| seen.insert(value.number)) {
        let label = quoted(&input.to_string());
        let _ = writeln!(text, "  input{} [shape=ellipse, label={label}];", input.number);
    }
    for (number, launch) in explanation.launches.iter().enumerate() {
        let kernels = launch.kernels.iter().map(|kernel| format!("\n{}", kernel.summary()));
        let predicted = launch.predicted.as_secs_f64() * 1e6;
        let label = format!(
            "{number}: {}{}\npredicted {predicted:.1} us",
            launch.name,
            kernels.collect::<String>()
        );
        let _ = writeln!(text, "  launch{number} [shape=box, label={}];", quoted(&label));
        let mut edges = FxHashSet::default();
        let reads = launch.kernels.iter().flat_map(|kernel| &kernel.reads);
        for value in reads.filter(|value| edges.insert(value.number)) {
            let source = match value.launch {
                Some(writer) => format!("launch{writer}"),
                None => format!("input{}", value.number),
            };
            let _ = writeln!(text, "  {source} -> launch{number} [label={}];", edge(value));
        }
        let writes = launch.kernels.iter().flat_map(|kernel| &kernel.writes);
        for value in writes.filter(|value| value.is_result) {
            let (id, label) = (value.number, quoted(&value.to_string()));
            let _ = writeln!(text, "  result{id} [shape=ellipse, label={label}];");
            let _ = writeln!(text, "  launch{number} -> result{id} [label={}];", edge(value));
        }
    }
    text.push_str("}\n");
    text
}

fn edge(value: &ValueNote) -> String {
    quoted(&format!("{} {}\n{} bytes", value.dtype, value.shape, value.bytes()))
}

/// A string of the language, in which a line ends with `\\n`.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{text}\"")
}
