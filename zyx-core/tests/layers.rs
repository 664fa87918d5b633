//! Who may know what: the layers of the compiler and of the core as data, checked against the sources.
//!
//! Each row names a module and the modules it may use; every path that starts with `crate::`
//! outside of tests and comments must be in its row. Where a row departs from a strict order of
//! layers, it says why.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod sources;

use sources::{code, crate_root, module_of, paths, relative, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module and what it may use besides itself.
type Layer = (&'static str, &'static [&'static str]);

/// The compiler. That it knows no graph, tensor or device is Cargo's to enforce.
const COMPILER: &[Layer] = &[
    // Vocabulary. `dtype` and `scalar` are one subject: what an element is and holds.
    ("dtype", &[]),
    ("scalar", &["dtype"]),
    ("cmath", &[]),
    ("special", &[]),
    // Threads of the host that can be had.
    ("threads", &[]),
    ("ops", &["cmath", "dtype", "scalar", "special"]),
    // Sums of multiples, bounds and index algebra.
    ("affine", &["dtype", "ops"]),
    // Kernels. The verifier and the generator of random kernels ask what a device can do.
    ("ir", &["affine", "caps", "dtype", "error", "ops", "scalar"]),
    ("caps", &["dtype", "ir", "ops"]),
    ("error", &["ir"]),
    ("passes", &["affine", "caps", "dtype", "ir", "ops", "scalar"]),
    ("decompose", &["caps", "dtype", "ir", "ops", "scalar"]),
    // The rebuilding of kernels is shared with passes.
    ("legalize", &["caps", "decompose", "dtype", "error", "ir", "ops", "passes", "scalar"]),
    ("codegen", &["caps", "dtype", "error", "ir", "ops", "scalar"]),
    ("tune", &["caps", "dtype", "ir", "ops", "passes", "scalar", "threads"]),
    // The language that kernels are written in. It clears away what its guards leave behind.
    ("lang", &["affine", "caps", "dtype", "ir", "ops", "passes", "scalar"]),
    ("prepare", &["caps", "error", "ir", "legalize", "tune"]),
    // For the suites alone.
    ("testing", &["ir"]),
];

/// The core; it has the compiler's modules under their names.
const CORE: &[Layer] = &[
    ("shape", &[]),
    ("lru", &[]),
    ("clock", &[]),
    ("origin", &[]),
    // An error of a device is an error of the caller's call.
    ("error", &["dtype", "hal", "lang", "origin", "shape"]),
    // Reading a pipe checks for interrupts.
    ("files", &["error", "hal"]),
    ("hal", &["cmath", "codegen", "dtype", "ir", "ops", "scalar", "threads"]),
    ("reference", &["clock", "dtype", "hal", "ir", "scalar"]),
    // A new runtime has the interpreter registered: it needs nothing.
    (
        "runtime",
        &[
            "clock",
            "dtype",
            "error",
            "hal",
            "ir",
            "lang",
            "legalize",
            "lru",
            "ops",
            "passes",
            "prepare",
            "reference",
            "scalar",
            "tune",
        ],
    ),
    // Graphs. Capturing reads tensors; what a node is knows the rule of an alias.
    // Calls of user kernels hold what was recorded.
    (
        "graph",
        &[
            "dtype", "error", "hal", "ir", "lang", "lru", "ops", "origin", "runtime", "scalar",
            "shape", "tensor",
        ],
    ),
    // The cost model tells what a launch is predicted to take; a pass drops what lowering did not need.
    (
        "schedule",
        &[
            "affine", "clock", "dtype", "error", "graph", "hal", "ir", "lang", "lru", "ops",
            "origin", "passes", "runtime", "scalar", "shape", "tensor", "tune",
        ],
    ),
    // Tensors. Realizing is the one call down into the scheduler; factorisations by groups of threads
    // are kernels that are written by hand.
    (
        "tensor",
        &[
            "dtype", "error", "graph", "hal", "ir", "lang", "lru", "ops", "origin", "runtime",
            "scalar", "schedule", "shape", "threads",
        ],
    ),
    // Names for programs alone.
    ("kernel", &["hal", "ir", "lang", "ops", "schedule", "tensor"]),
    ("autodiff", &["dtype", "error", "graph", "ops", "origin", "shape", "tensor"]),
    // For the suites alone.
    (
        "testing",
        &["error", "graph", "hal", "ir", "passes", "runtime", "scalar", "schedule", "tensor"],
    ),
];

/// Files of the core that name the compiler's crate; all others use its modules through the core's.
const BRIDGES: &[&str] = &["lib.rs", "hal/mod.rs", "testing.rs"];

/// Helpers that passes share; everything else of another pass is closed to them.
const SHARED_BY_PASSES: &[&str] = &["elements", "facts", "loops", "rebuild", "variance", "nest"];

/// What passes use of another pass's files all the same: shapes of loops and of operands, not the
/// pass. By user and owner; each name is used, or it has to go from here.
const HELPERS: &[(&str, &str, &[&str])] = &[
    ("accumulate", "unroll", &["Blocks", "close_rest", "open_blocks"]),
    ("compensate", "peel", &["compares"]),
    ("jam", "unroll", &["Blocks", "close_rest", "open_blocks"]),
    // Both take the same nests, found once: a contraction whose operands are laid out in blocks.
    (
        "mma",
        "block",
        &[
            "Found",
            "blocks",
            "count",
            "is_lanewise",
            "is_side_by_side",
            "is_wide",
            "runs_along",
            "stride_along",
        ],
    ),
];

/// The first name of a path.
fn head(path: &str) -> &str {
    path.split("::").next().unwrap()
}

/// The names that follow each `crate::`, those in braces one by one.
fn uses(code: &str) -> BTreeSet<String> {
    paths(code, "crate::").iter().map(|path| head(path).to_owned()).collect()
}

/// What `lib.rs` exports under its own name, by the module it comes from.
fn exports(root: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(root.join("lib.rs")).unwrap();
    let mut found = BTreeMap::new();
    for statement in text.split("pub use ").skip(1) {
        let (module, names) = statement.split(';').next().unwrap().split_once("::").unwrap();
        // Modules of another crate.
        if module == "zyx_ir" {
            continue;
        }
        for name in names.split(|c: char| !c.is_alphanumeric()).filter(|name| !name.is_empty()) {
            found.insert(name.to_owned(), module.to_owned());
        }
    }
    found
}

/// Uses of a crate's modules that its layers do not allow.
fn not_allowed(root: &Path, layers: &[Layer]) -> Vec<String> {
    let exports = exports(root);
    let mut wrong = Vec::new();
    for path in sources(root) {
        let inside = path.strip_prefix(root).unwrap();
        let module = inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let Some((_, allowed)) = layers.iter().find(|row| row.0 == module) else {
            panic!("{} is in no layer: add a row", inside.display());
        };
        let code = code(&path);
        let outside = relative(&code, &module_of(inside)).into_iter();
        let outside = outside.map(|path| path[0].clone()).filter(|name| name != "*");
        for name in uses(&code).into_iter().chain(outside) {
            let target = exports.get(&name).unwrap_or(&name);
            if target != module && !allowed.contains(&target.as_str()) {
                wrong.push(format!("{} uses crate::{name}", inside.display()));
            }
        }
    }
    wrong
}

#[test]
fn modules_use_what_their_layer_allows() {
    let mut wrong = not_allowed(&crate_root("zyx-ir"), COMPILER);
    let core = crate_root("zyx-core");
    wrong.extend(not_allowed(&core, CORE));
    for path in sources(&core) {
        let inside = path.strip_prefix(&core).unwrap();
        let is_bridge = BRIDGES.iter().any(|bridge| inside == Path::new(bridge));
        if !is_bridge && !paths(&code(&path), "zyx_ir::").is_empty() {
            wrong.push(format!("{} uses zyx_ir::", inside.display()));
        }
    }
    assert!(wrong.is_empty(), "not allowed by the layers:\n{}", wrong.join("\n"));
}

/// What a file of a pass uses of another one: that one's name, and the path within it.
fn of_other_passes(code: &str, module: &[String], passes: &[String]) -> Vec<(String, String)> {
    let absolute = paths(code, "crate::passes::").into_iter().map(|path| format!("passes::{path}"));
    let relative = relative(code, module).into_iter().map(|path| path.join("::"));
    let mut found = Vec::new();
    for path in absolute.chain(relative) {
        let Some(path) = path.strip_prefix("passes::") else { continue };
        let (pass, rest) = path.split_once("::").unwrap_or((path, ""));
        let is_other = passes.iter().any(|other| other == pass) && pass != module[1];
        if is_other && !SHARED_BY_PASSES.contains(&pass) {
            found.push((pass.to_owned(), rest.to_owned()));
        }
    }
    found
}

#[test]
fn passes_do_not_know_each_other() {
    let root = crate_root("zyx-ir");
    let files = sources(&root.join("passes"));
    let module = |path: &Path| module_of(path.strip_prefix(&root).unwrap());
    let passes: Vec<String> =
        files.iter().filter_map(|path| module(path).get(1).cloned()).collect();
    let mut unused: BTreeSet<(&str, &str, &str)> = BTreeSet::new();
    for (user, owner, names) in HELPERS {
        unused.extend(names.iter().map(|name| (*user, *owner, *name)));
    }
    let mut wrong = Vec::new();
    for path in &files {
        let module = module(path);
        // The table names all passes.
        let Some(user) = module.get(1) else { continue };
        for (owner, name) in of_other_passes(&code(path), &module, &passes) {
            let row = HELPERS.iter().find(|row| row.0 == user && row.1 == owner);
            if row.is_some_and(|row| row.2.contains(&name.as_str())) {
                unused.retain(|helper| *helper != (user.as_str(), owner.as_str(), name.as_str()));
            } else {
                wrong.push(format!("{}: {owner}::{name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "a pass never uses another:\n{}", wrong.join("\n"));
    assert!(unused.is_empty(), "helpers that nobody uses: {unused:?}");
}

#[test]
fn the_core_names_no_backend_and_backends_see_no_graph() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = fs::read_dir(root.join("..")).unwrap().map(|entry| entry.unwrap().path());
    let is_backend =
        |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("backend-");
    let backends: Vec<PathBuf> = folders.filter(is_backend).collect();
    assert!(backends.len() >= 5, "{backends:?}");
    let compiler = sources(&crate_root("zyx-ir"));
    for path in sources(&root.join("src")).into_iter().chain(compiler) {
        let code = code(&path);
        for backend in &backends {
            let name = backend.file_name().unwrap().to_str().unwrap().replace('-', "_");
            assert!(!code.contains(&name), "{} names {name}", path.display());
        }
    }
    let exports = exports(&root.join("src"));
    for path in backends.iter().flat_map(|backend| sources(&backend.join("src"))) {
        // A crate's tests may use tensors; files of tests are named so.
        if path.components().any(|part| part.as_os_str() == "tests") {
            continue;
        }
        for used in paths(&code(&path), "zyx_core::") {
            let name = head(&used);
            let module = exports.get(name).map_or(name, String::as_str);
            let closed = ["autodiff", "graph", "schedule", "tensor", "testing"];
            assert!(!closed.contains(&module), "{} uses zyx_core::{used}", path.display());
        }
    }
}

#[test]
fn uses_are_found() {
    let text = "use crate::a::{b, c};\nfn f() { crate::D::new() }\nuse crate::{e::{f, g}, h};";
    assert_eq!(uses(text).into_iter().collect::<Vec<_>>(), ["D", "a", "e", "h"]);
    assert!(uses("pub(crate) fn; $crate_::x").is_empty());
    let text = "use zyx_core::{a::{b, c::{d as e, f}}, g::*};";
    assert_eq!(paths(text, "zyx_core::"), ["a::b", "a::c::d", "a::c::f", "g::*"]);
}

/// Each way to reach another pass from a file of one.
#[test]
fn other_passes_are_found() {
    let passes = ["block", "mma", "loops", "dce"].map(str::to_owned);
    let of = |module: &[&str], code: &str| {
        let module: Vec<String> = module.iter().map(|&part| part.to_owned()).collect();
        of_other_passes(code, &module, &passes)
    };
    let block = |name: &str| vec![("block".to_owned(), name.to_owned())];
    let (file, part) = (["passes", "dce"], ["passes", "mma", "emit"]);
    assert_eq!(of(&file, "use super::{Pass, block::blocks};"), block("blocks"));
    assert_eq!(of(&file, "use super::{loops::{a, b}, block};"), block(""));
    assert_eq!(of(&file, "fn f() { super::block::run() }"), block("run"));
    assert_eq!(of(&file, "use crate::passes::{Site, block::find};"), block("find"));
    assert_eq!(of(&part, "use super::super::block::is_wide;"), block("is_wide"));
    assert_eq!(of(&part, "use crate::passes::block::is_wide;"), block("is_wide"));
    assert!(of(&part, "use super::{side, block};").is_empty(), "a part of its own pass");
    assert!(of(&file, "use super::{Pass, Site, loops::find_loop};").is_empty());
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
    for (path, limit) in [("src/graph/op.rs", 24), ("../zyx-ir/src/ir/op.rs", 30)] {
        let (variants, documented) = op_set(path);
        assert!(variants.len() >= 15, "{path}: only {variants:?} were recognised");
        assert!(variants.len() <= limit, "{path}: {} ops of at most {limit}", variants.len());
        assert_eq!(variants, documented, "{path}: the table is not of the ops there are");
    }
}
