//! Every public function outside the tensors is used in an example of its file: its own, or that of its type. (Those
//! of tensors each have one of their own: `zyx-core/tests/docs.rs`.)

use std::path::{Path, PathBuf};
use zyx_tests::sources::root;

/// Folders whose functions have examples.
const FOLDERS: &[&str] =
    &["zyx/src", "nn/src", "optim/src", "data/src", "zyx-io/src", "zyx-core/src/runtime"];

/// Files and functions below tensors, which only schedulers and tests call.
const BELOW: &[&str] = &[
    "buffer.rs",
    "erased.rs",
    "host.rs",
    "library",
    "prepare",
    "program",
    "programs",
    "source",
    "submit",
];

/// What stands in the examples of a file, and its public functions.
fn examples_and_functions(text: &str) -> (String, Vec<String>) {
    let (mut examples, mut functions, mut inside) = (String::new(), Vec::new(), false);
    for line in text.split("#[cfg(test)]\nmod").next().unwrap_or("").lines() {
        let line = line.trim_start();
        if let Some(rest) = line.strip_prefix("///").or(line.strip_prefix("//!")) {
            if rest.contains("```") {
                inside = !inside;
            } else if inside {
                examples.push_str(rest);
                examples.push('\n');
            }
        } else if let Some(rest) = line.strip_prefix("pub fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or("");
            // Names that a macro is given have their examples there.
            functions.extend((!name.starts_with('$')).then(|| name.to_owned()));
        }
    }
    (examples, functions)
}

/// Whether a text calls a function or hands it on.
fn uses(text: &str, function: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(function).any(|(at, _)| {
        let after = text[at + function.len()..].chars().next();
        !text[..at].ends_with(is_word) && matches!(after, Some('(' | ':' | ')' | '<'))
    })
}

fn lacking(text: &str) -> Vec<String> {
    let (examples, functions) = examples_and_functions(text);
    functions.into_iter().filter(|name| !uses(&examples, name)).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("sources").flatten().map(|entry| entry.path());
    let all = entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    all.filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

#[test]
fn public_functions_are_used_in_examples() {
    let (mut wrong, mut n) = (Vec::new(), 0);
    for file in FOLDERS.iter().flat_map(|folder| files(&root().join(folder))) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if BELOW.contains(&name.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source file");
        n += examples_and_functions(&text).1.len();
        let lacking = lacking(&text).into_iter().filter(|f| !BELOW.contains(&f.as_str()));
        wrong.extend(lacking.map(|function| format!("{}: {function}", file.display())));
    }
    assert!(n > 200, "{n} functions");
    assert!(wrong.is_empty(), "no example uses\n{}", wrong.join("\n"));
}

#[test]
fn what_is_lacking_is_found() {
    let text = "/// ```\n/// x.used();\n/// ```\npub fn used() {}\n/// unused()\npub fn unused() {}\npub fn use() {}\n";
    assert_eq!(lacking(text), ["unused", "use"]);
}
