//! Turns the type stub into bindings.
//!
//! The stubs in `python/zyx` are the one table of what is bound: names, parameters, defaults, types
//! and docstrings. Type checkers read them as they are; this script writes a function for each entry
//! that is not marked `# by hand`: a method of `Tensor` (`_core.pyi`), or the constructor of a layer
//! (`nn/__init__.pyi`) or optimizer (`optim/__init__.pyi`). So binding something takes one entry, and
//! stub, help text and binding cannot differ. [`stub`] reads, [`emit`] writes.

#![allow(clippy::print_stdout, reason = "how a build script talks to cargo")]

mod emit;
mod stub;

use std::{env, fs, path::Path};

/// A stub, the file its bindings go to, and how they are written.
type Table = (&'static str, &'static str, fn(&[stub::Entry]) -> Result<String, String>);

const TABLES: [Table; 3] = [
    ("python/zyx/_core.pyi", "methods.rs", emit::methods),
    ("python/zyx/nn/__init__.pyi", "layers.rs", emit::layers),
    ("python/zyx/optim/__init__.pyi", "optimizers.rs", emit::optimizers),
];

fn main() {
    println!("cargo::rerun-if-changed=build");
    fold();
    let out = env::var_os("OUT_DIR").expect("set by cargo");
    for (table, file, write) in TABLES {
        println!("cargo::rerun-if-changed={table}");
        let text = fs::read_to_string(table).expect("the stubs are beside the crate");
        match stub::read(&text).and_then(|entries| write(&entries)) {
            Ok(code) => {
                fs::write(Path::new(&out).join(file), code).expect("the output folder is writable");
            }
            Err(problem) => println!("cargo::error={table}: {problem}"),
        }
    }
}

/// Functions that are the same code become one where Rust's own linker links: a library is smaller
/// for it, and no slower.
fn fold() {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("TARGET", "x86_64-unknown-linux-gnu") && is("DEBUG", "false") {
        println!("cargo::rustc-link-arg-cdylib=-Wl,--icf=all");
    }
}
