//! Every public function of tensors says what it does by an example that runs, and what its errors
//! are.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::fs;
use std::path::Path;

/// The functions of a source file whose documentation lacks something, with what it lacks.
fn lacking(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some(rest) = line.trim_start().strip_prefix("pub fn ") else { continue };
        let above = lines[..at].iter().rev();
        // Arguments of `doc` attributes in macros may span lines.
        let above = above.take_while(|line| {
            let deeper = line.len() - line.trim_start().len() > indent;
            let start = line.trim_start();
            start.starts_with("///") || start.starts_with(['#', ')', '$']) || deeper
        });
        let documentation: Vec<&str> = above.copied().collect();
        let has = |what: &str| documentation.iter().any(|line| line.contains(what));
        let signature: String = lines[at..].iter().take(14).copied().collect();
        let fallible = signature.split('{').next().unwrap().contains("Result<");
        let name = rest.split(['(', '<']).next().unwrap();
        // For other crates of the workspace.
        if has("#[doc(hidden)]") {
            continue;
        }
        if !has("```") {
            found.push(format!("{name} has no example"));
        }
        if fallible && !has("# Errors") {
            found.push(format!("{name} does not say what its errors are"));
        }
    }
    found
}

#[test]
fn public_functions_have_examples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![root.join("autodiff.rs"), root.join("shape.rs")];
    let entries = fs::read_dir(root.join("tensor")).unwrap().map(|entry| entry.unwrap().path());
    // What is deeper is not public.
    files.extend(entries.filter(|path| path.is_file()));
    let mut wrong = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let found = lacking(&text).into_iter();
        wrong.extend(found.map(|what| format!("{}: {what}", file.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_lacking_is_found() {
    let text = "impl X {\n    /// A.\n    pub fn a(&self) -> Result<X> {}\n\n    /// ```\n    /// b\n    /// ```\n    ///\n    /// # Errors\n    /// Never.\n    #[track_caller]\n    pub fn b(&self) -> Result<X> {}\n}\n";
    assert_eq!(lacking(text), ["a has no example", "a does not say what its errors are"]);
}
