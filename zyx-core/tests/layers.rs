//! Who may know what: the layers of the core as data, checked against its sources.
//!
//! Each row names a module and the modules it may use; every path that starts with `crate::`
//! outside of tests and comments must be in its row. Where a row departs from a strict order of
//! layers, it says why.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module and what it may use besides itself.
const LAYERS: &[(&str, &[&str])] = &[
    // Vocabulary. `dtype` and `scalar` are one subject: what an element is and holds.
    ("dtype", &[]),
    ("scalar", &["dtype"]),
    ("special", &[]),
    ("ops", &["dtype", "scalar", "special"]),
    ("shape", &[]),
    ("lru", &[]),
    // An error of a device is an error of the caller's call.
    ("error", &["dtype", "hal", "shape"]),
    // Kernels. The verifier and the generator of random kernels ask what a device can do.
    ("ir", &["dtype", "hal", "ops", "scalar"]),
    ("hal", &["dtype", "ir", "ops", "scalar"]),
    ("passes", &["dtype", "hal", "ir", "ops", "scalar"]),
    ("decompose", &["dtype", "hal", "ir", "ops", "scalar"]),
    // The rebuilding of kernels is shared with passes.
    ("legalize", &["decompose", "dtype", "hal", "ir", "ops", "passes", "scalar"]),
    ("codegen", &["dtype", "hal", "ir", "ops", "scalar"]),
    ("tune", &["dtype", "hal", "ir", "ops", "passes", "scalar"]),
    ("reference", &["dtype", "hal", "ir"]),
    // A new runtime has the interpreter registered: it needs nothing.
    ("runtime", &["dtype", "error", "hal", "ir", "legalize", "lru", "reference", "tune"]),
    // Graphs. Capturing reads tensors; what a node is knows the rule of an alias.
    ("graph", &["dtype", "error", "ops", "runtime", "scalar", "shape", "tensor"]),
    (
        "schedule",
        &[
            "dtype", "error", "graph", "hal", "ir", "lru", "ops", "runtime", "scalar", "shape",
            "tensor",
        ],
    ),
    // Tensors. Realizing is the one call down into the scheduler.
    (
        "tensor",
        &["dtype", "error", "graph", "lru", "ops", "runtime", "scalar", "schedule", "shape"],
    ),
    ("autodiff", &["dtype", "error", "graph", "ops", "shape", "tensor"]),
    // For the suites alone.
    ("testing", &["error", "graph", "ir", "passes", "runtime", "scalar", "schedule", "tensor"]),
];

/// Helpers that passes share; everything else of another pass is closed to them.
const SHARED_BY_PASSES: &[&str] = &["elements", "facts", "loops", "rebuild", "variance", "nest"];

/// Functions of one pass's file that others use: shapes of loops, not the pass.
const HELPERS: &[&str] = &["super::unroll::{close_rest, open_blocks}"];

fn sources(folder: &Path) -> Vec<PathBuf> {
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
fn code(path: &Path) -> String {
    let name = path.file_stem().unwrap().to_str().unwrap();
    if matches!(name, "tests" | "law") {
        return String::new();
    }
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let text = text.split("#[cfg(test)]\nuse ").next().unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// The names that follow each `crate::`, those in braces one by one.
fn uses(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let Some(inside) = rest.strip_prefix('{') else {
            found.insert(word(rest));
            continue;
        };
        let (mut depth, mut start) = (0, true);
        for (i, c) in inside.char_indices() {
            match c {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && !c.is_whitespace() => {
                    found.insert(word(&inside[i..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    found
}

/// What `lib.rs` exports under its own name, by the module it comes from.
fn exports(root: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(root.join("lib.rs")).unwrap();
    let mut found = BTreeMap::new();
    for statement in text.split("pub use ").skip(1) {
        let (module, names) = statement.split(';').next().unwrap().split_once("::").unwrap();
        for name in names.split(|c: char| !c.is_alphanumeric()).filter(|name| !name.is_empty()) {
            found.insert(name.to_owned(), module.to_owned());
        }
    }
    found
}

#[test]
fn modules_use_what_their_layer_allows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let exports = exports(&root);
    let mut wrong = Vec::new();
    for path in sources(&root) {
        let inside = path.strip_prefix(&root).unwrap();
        let module = inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let Some((_, allowed)) = LAYERS.iter().find(|row| row.0 == module) else {
            panic!("{} is in no layer: add a row", inside.display());
        };
        for name in uses(&code(&path)) {
            let target = exports.get(&name).unwrap_or(&name);
            if target == module {
                continue;
            }
            if !allowed.contains(&target.as_str()) {
                wrong.push(format!("{} uses crate::{name}", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "not allowed by the layers:\n{}", wrong.join("\n"));
}

#[test]
fn passes_do_not_know_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/passes");
    for path in sources(&root) {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if stem == "mod" || path.parent() != Some(&root) {
            continue;
        }
        for line in code(&path).lines().filter(|line| line.starts_with("use super::")) {
            let from = line.trim_start_matches("use super::").split([':', ';']).next().unwrap();
            let fits = from.starts_with('{')
                || SHARED_BY_PASSES.contains(&from)
                || HELPERS.iter().any(|helper| line.contains(helper));
            assert!(fits, "{stem}: `{line}`: a pass never uses another");
        }
    }
}

#[test]
fn the_core_names_no_backend_and_backends_see_no_graph() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in sources(&root.join("src")) {
        let code = code(&path);
        for name in ["backend_cpu", "backend_cuda", "backend_opencl", "backend_vulkan"] {
            assert!(!code.contains(name), "{} names {name}", path.display());
        }
    }
    for entry in fs::read_dir(root.join("..")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("backend-") {
            continue;
        }
        for path in sources(&folder.join("src")) {
            // A crate's tests may use tensors; files of tests are named so.
            if path.components().any(|part| part.as_os_str() == "tests") {
                continue;
            }
            let code = code(&path);
            for closed in ["zyx_core::tensor", "zyx_core::Tensor", "zyx_core::testing"] {
                assert!(!code.contains(closed), "{} names {closed}", path.display());
            }
        }
    }
}

#[test]
fn uses_are_found() {
    let text = "use crate::a::{b, c};\nfn f() { crate::D::new() }\nuse crate::{e::{f, g}, h};";
    assert_eq!(uses(text).into_iter().collect::<Vec<_>>(), ["D", "a", "e", "h"]);
    assert!(uses("pub(crate) fn; $crate_::x").is_empty());
}

/// The variants of `enum Op` in a source, and the names in the first column of the table above it.
fn op_set(path: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let (before, rest) = text.split_once("enum Op {\n").unwrap();
    let name =
        |line: &str| -> String { line.chars().take_while(|c| c.is_alphanumeric()).collect() };
    let lines = rest.split("\n}").next().unwrap().lines().map(str::trim);
    let variants = lines.filter(|line| line.starts_with(char::is_uppercase)).map(name).collect();
    let rows = before.lines().filter_map(|line| line.strip_prefix("/// | `"));
    let names = rows.flat_map(|row| row.split(" | ").next().unwrap().split(['`', ' ']));
    (variants, names.filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// Few ops are what makes a pass, a backend and a gradient short: one more is a decision, not an
/// accident.
#[test]
fn op_sets_are_small_and_documented() {
    for (path, limit) in [("src/graph/op.rs", 20), ("src/ir/op.rs", 30)] {
        let (variants, documented) = op_set(path);
        assert!(variants.len() >= 15, "{path}: only {variants:?} were recognised");
        assert!(variants.len() <= limit, "{path}: {} ops of at most {limit}", variants.len());
        assert_eq!(variants, documented, "{path}: the table is not of the ops there are");
    }
}
