//! Sources of the workspace as text, and the paths in them.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The text without comments and without what is compiled for tests only.
pub(crate) fn code(path: &Path) -> String {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let in_tests = path.parent().is_some_and(|folder| folder.ends_with("tests"));
    if in_tests || matches!(name, "tests" | "property_tests") {
        return String::new();
    }
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let text = text.split("#[cfg(test)]\nuse ").next().unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// Every path in the code that starts with `prefix`, without it; those in braces one by one, as
/// many levels as there are.
pub(crate) fn paths(code: &str, prefix: &str) -> Vec<String> {
    let starts = code.match_indices(prefix).filter(|(at, _)| {
        !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$')
    });
    let mut found = Vec::new();
    for (at, _) in starts {
        expand(&code[at + prefix.len()..], "", &mut found);
    }
    found
}

/// The paths of one tree, each behind `before`; gives what follows the tree.
fn expand<'a>(tree: &'a str, before: &str, found: &mut Vec<String>) -> &'a str {
    let Some(mut rest) = tree.strip_prefix('{') else {
        let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '*');
        let end = tree.find(|c: char| !is_path(c)).unwrap_or(tree.len());
        let (path, rest) = tree.split_at(end);
        if path.ends_with("::") && rest.starts_with('{') {
            return expand(rest, &format!("{before}{path}"), found);
        }
        found.push(format!("{before}{path}"));
        return rest;
    };
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return rest;
        }
        if let Some(rest) = rest.strip_prefix('}') {
            return rest;
        }
        rest = expand(rest, before, found);
        // The name behind `as`, and the comma.
        let end = rest.find([',', '}']).unwrap_or(rest.len());
        rest = rest[end..].strip_prefix(',').unwrap_or(&rest[end..]);
    }
}

/// The module that a file is, from the crate's root on.
pub(crate) fn module_of(inside: &Path) -> Vec<String> {
    let file = inside.with_extension("");
    let mut module: Vec<String> = file.iter().map(|part| part.to_str().unwrap().into()).collect();
    if module.last().is_some_and(|last| last == "mod") {
        module.pop();
    }
    module
}

/// The paths of a file that start in a module around it, from the crate's root on; those that a
/// module within the file starts are taken for the file's.
pub(crate) fn relative(code: &str, module: &[String]) -> Vec<Vec<String>> {
    let resolve = |path: &String| {
        let mut parts: Vec<&str> = path.split("::").collect();
        let mut base = &module[..module.len() - 1];
        while parts.first() == Some(&"super") && !base.is_empty() {
            parts.remove(0);
            base = &base[..base.len() - 1];
        }
        base.iter().cloned().chain(parts.into_iter().map(str::to_owned)).collect()
    };
    paths(code, "super::").iter().map(resolve).collect()
}

/// The sources of a crate of the workspace.
pub(crate) fn crate_root(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")
}
