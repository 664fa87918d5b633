//! The public functions of the library, read from its sources: so that a list of them cannot be
//! forgotten when a function is added.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The methods of `Tensor`, each with the name of the file that holds it, by file.
///
/// # Panics
/// When the sources are not there.
pub fn tensor_methods() -> Vec<(String, String)> {
    let folder = root().join("zyx-core/src/tensor");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("sources").map(|e| e.expect("a file").path()).collect();
    files.push(root().join("zyx-core/src/autodiff.rs"));
    files.retain(|path| path.extension().is_some_and(|e| e == "rs"));
    files.sort();
    let methods = files.iter().flat_map(|path| {
        let text = std::fs::read_to_string(path).expect("a source file");
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let names = public_functions(&text).into_iter().filter(|name| !name.contains("::"));
        names.map(move |name| (stem.clone(), name)).collect::<Vec<_>>()
    });
    methods.collect()
}

/// The public functions of a source file as `Type::function`, those of `Tensor` by name alone.
/// Rows of the macros that make methods count, templates in macros do not.
pub fn public_functions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut owner, mut rows) = (String::new(), false);
    for line in text.lines() {
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        if let Some(rest) = line.strip_prefix("impl ") {
            let of = rest.split([' ', '<', '{']).next().unwrap_or("");
            owner = if rest.contains(" for ") { String::new() } else { of.to_owned() };
        }
        // With parameters, whose bounds may hold anything: the type comes last.
        if line.starts_with("impl<") {
            let of = line.trim_end_matches('{').split_whitespace().last().unwrap_or("");
            let of = of.split('<').next().unwrap_or("");
            owner = if line.contains(" for ") { String::new() } else { of.to_owned() };
        }
        if line.trim_start().starts_with("impl $") {
            owner = "$".to_owned();
        }
        let generator = ["unary_methods! {", "binary_methods! {", "reductions! {"];
        rows = (rows || generator.contains(&line)) && line != "}";
        let words: Vec<&str> = line.split_whitespace().collect();
        if rows && line.starts_with("    ") && !line.trim().starts_with("//") {
            let names = words.iter().take(2);
            let names =
                names.filter(|w| w.chars().all(|c| c.is_lowercase() || "_0123456789".contains(c)));
            found.extend(names.map(|name| (*name).to_owned()));
        }
        if let ["pub", "fn", rest, ..] = words[..] {
            let name = rest.split(['(', '<']).next().unwrap_or("");
            match owner.as_str() {
                _ if name.starts_with('$') => {}
                _ if line.starts_with("pub fn") => found.push(name.to_owned()),
                "" => {}
                "Tensor" => found.push(name.to_owned()),
                other if other.starts_with('$') => {}
                other => found.push(format!("{other}::{name}")),
            }
        }
    }
    found
}
