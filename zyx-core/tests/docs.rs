//! Every public function of tensors says what it does by an example that runs, and what its errors
//! are. Documents name files, variables of the environment and links that exist.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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

/// The paths of the workspace's files, from its root.
fn files() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            let name = path.to_str().unwrap().replace('\\', "/");
            let is_skipped = |own: &str| {
                ["target", "dist", "venv", "node_modules"].contains(&own)
                    || own.starts_with('.') && own != ".ci"
            };
            match entry.file_type().unwrap().is_dir() {
                true if is_skipped(entry.file_name().to_str().unwrap()) => {}
                true => folders.push(path),
                false => found.push(name),
            }
        }
    }
    found
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

/// Users depend on `zyx`, so examples name it and not the packages that it consists of.
#[test]
fn examples_are_those_of_users() {
    let packages = ["zyx-core", "nn", "optim", "data", "zyx-io", "onnx"];
    let crates = ["zyx_core::", "zyx_nn::", "zyx_optim::", "zyx_data::", "zyx_io::", "zyx_onnx::"];
    let is_source = |path: &&String| {
        path.ends_with(".rs")
            && packages.iter().any(|package| path.starts_with(&format!("{package}/src/")))
    };
    let mut wrong = Vec::new();
    for path in files().iter().filter(is_source) {
        let (text, mut is_example) = (read(path), false);
        for (i, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let Some(line) = line.strip_prefix("///").or(line.strip_prefix("//!")) else {
                continue;
            };
            is_example ^= line.trim_start().starts_with("```");
            if is_example && crates.iter().any(|name| line.contains(name)) {
                wrong.push(format!("{path}:{}: {line}", i + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The history of changes names what was; tables of measurements name nothing.
fn documents(files: &[String]) -> impl Iterator<Item = &String> {
    let is_current = |path: &str| path != "CHANGELOG.md" && !path.contains("sweep-");
    files.iter().filter(move |path| path.ends_with(".md") && is_current(path))
}

/// The variables of the environment in a text. Those named `ZYX_TEST_` are set by a test for a process that it starts.
fn variables(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let whole = |at: usize| !text[..at].ends_with(is_part);
    let starts = text.match_indices("ZYX_").filter(|(at, _)| whole(*at));
    let names = starts.map(|(at, _)| text[at..].split(|c| !is_part(c)).next().unwrap());
    let names = names.filter(|name| name.len() > 4 && !name.starts_with("ZYX_TEST_"));
    names.map(str::to_owned).collect()
}

#[test]
fn variables_are_documented() {
    let files = files();
    let is_code = |path: &&String| {
        [".rs", ".py", ".sh"].iter().any(|end| path.ends_with(end)) || *path == ".ci/run"
    };
    let used: BTreeSet<String> =
        files.iter().filter(is_code).flat_map(|path| variables(&read(path))).collect();
    let listed = ["docs/guide/devices.md", "CONTRIBUTING.md"].map(|path| variables(&read(path)));
    let listed = &listed[0] | &listed[1];
    let missing: Vec<&String> = used.difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "neither in docs/guide/devices.md nor CONTRIBUTING.md: {missing:?}"
    );
    for path in documents(&files) {
        let named = variables(&read(path));
        let gone: Vec<&String> = named.difference(&used).collect();
        assert!(gone.is_empty(), "{path} names variables that nothing reads: {gone:?}");
    }
}

#[test]
fn documents_name_files_that_exist() {
    let files = files();
    let is_path = |text: &str| {
        let ends = [".rs", ".py", ".sh", ".md", ".toml", ".txt", ".ir", ".cuh"];
        let plain = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
        text.contains('/') && text.chars().all(plain) && ends.iter().any(|end| text.ends_with(end))
    };
    let exists = |path: &str| {
        files.iter().any(|file| {
            file.strip_suffix(path).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        })
    };
    let mut wrong = Vec::new();
    for document in documents(&files) {
        let text = read(document);
        for path in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            if is_path(path) && !exists(path.trim_start_matches("../")) {
                wrong.push(format!("{document}: {path}"));
            }
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(document);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let is_local = !link.is_empty() && !link.contains("://");
            if is_local && !folder.with_file_name("").join(link).exists() {
                wrong.push(format!("{document}: link to {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
