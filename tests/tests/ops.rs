//! `docs/ops.md`: which operation is computed in which dtype, and where that is compared.
//!
//! The table is written from the cases themselves, and this test fails when the file says
//! something else; `ZYX_BLESS=1` writes it anew. A method of `Tensor` that is neither a row of
//! the matrix nor excused by name fails as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use zyx_tests::cases::matrix;
use zyx_tests::sources::{root, tensor_methods};
use zyx_tests::zyx_core::{BinaryOp, DType, UnaryOp};

/// Methods that are no operations on elements, and why they are no rows.
const NO_ROW: &[(&str, &[&str])] = &[
    (
        "made of data, or read as data: all dtypes in the cases `create` and `convert`",
        &[
            "new",
            "from_slice",
            "from_bytes",
            "from_owner",
            "scalar",
            "to_vec",
            "read_async",
            "item",
            "host_view",
            "to_bytes",
        ],
    ),
    (
        "what a tensor is and when it is computed",
        &[
            "shape",
            "dtype",
            "device",
            "rank",
            "numel",
            "is_tracked",
            "is_realized",
            "realize",
            "realize_all",
            "realize_replacing",
            "explain",
            "einsum_path",
            "gradcheck",
        ],
    ),
];

/// The backends, each with the file that runs the suite on it.
const BACKENDS: &[(&str, &str)] = &[
    ("reference", "tests/tests/conformance.rs"),
    ("cpu", "backend-cpu/tests"),
    ("opencl", "backend-opencl/tests"),
    ("vulkan", "backend-vulkan/tests"),
    ("wgpu", "backend-wgpu/tests"),
    ("cuda", "backend-cuda/tests"),
];

/// The dtypes of the kinds of cases in `conformance_cases!`.
fn kinds(kind: &str) -> Vec<DType> {
    let all = DType::ALL.iter().copied();
    match kind {
        "all" => all.collect(),
        "floats" => all.filter(|d| d.is_float()).collect(),
        "ints" => all.filter(|d| !d.is_float() && *d != DType::Bool).collect(),
        _ => vec![],
    }
}

/// The cases of the suite but the matrix: module, name, kind.
fn cases() -> Vec<(String, String, String)> {
    let text = read("tests/src/harness.rs");
    let start = text.find("{ @$kind\n").expect("the list of cases");
    let end = text[start..].find("\n        }\n    };").expect("its end") + start;
    let (mut module, mut found) = (String::new(), Vec::new());
    for part in text[start + 9..end].split([',', '{', '}']) {
        match part.split_whitespace().collect::<Vec<_>>()[..] {
            [name] => module = name.to_owned(),
            [kind, case] => found.push((module.clone(), case.to_owned(), kind.to_owned())),
            _ => {}
        }
    }
    assert!(found.len() > 50, "{} cases", found.len());
    found.retain(|(module, ..)| module != "matrix");
    found
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Words of comments are no calls.
fn without_comments(text: &str) -> String {
    let code = text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
    code.collect::<Vec<_>>().join("\n")
}

/// The functions and constants of a file of cases, each with the text of all it uses of that file.
fn items(text: &str) -> BTreeMap<String, String> {
    let mut own: BTreeMap<String, String> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        let line_of = line.trim_start_matches("pub ");
        for word in ["fn ", "const "] {
            if let Some(rest) = line_of.strip_prefix(word) {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(0);
                current = rest[..end].to_owned();
            }
        }
        let body = own.entry(current.clone()).or_default();
        body.push_str(line);
        body.push('\n');
    }
    let mut whole = BTreeMap::new();
    for name in own.keys() {
        let (mut seen, mut queue) = (BTreeSet::new(), vec![name]);
        while let Some(next) = queue.pop() {
            if seen.insert(next) {
                queue.extend(own.keys().filter(|other| names(&own[next], other)));
            }
        }
        let text: String = seen.into_iter().map(|name| own[name].as_str()).collect();
        whole.insert(name.clone(), text);
    }
    whole
}

/// Whether a text uses a function or constant of its file by name.
fn names(text: &str, item: &str) -> bool {
    let boundary = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '.');
    !item.is_empty()
        && text.match_indices(item).any(|(at, _)| {
            let end = text[at + item.len()..].chars().next();
            boundary(text[..at].chars().next_back()) && boundary(end) && end != Some(':')
        })
}

/// Whether a text calls a method of `Tensor`.
fn calls(text: &str, method: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    [format!(".{method}("), format!("Tensor::{method}")].iter().any(|call| {
        text.match_indices(call.as_str())
            .any(|(at, call_text)| call_text.ends_with('(') || ends(&text[at + call.len()..]))
    }) || (text.contains("UnaryOp::ALL") && UnaryOp::ALL.iter().any(|op| op.name() == method))
        || (text.contains("BinaryOp::ALL") && BinaryOp::ALL.iter().any(|op| op.name() == method))
}

/// A text without what stands behind `if dtype.is_float() {`, and that.
fn parts(text: &str) -> (String, String) {
    let (mut plain, mut floats, mut rest) = (String::new(), String::new(), text);
    while let Some(at) = rest.find("if dtype.is_float() {\n") {
        plain.push_str(&rest[..at]);
        let indent = rest[..at].len() - rest[..at].trim_end_matches(' ').len();
        let close = format!("\n{}}}", " ".repeat(indent));
        let end = rest[at..].find(&close).map_or(rest.len(), |n| at + n);
        floats.push_str(&rest[at..end]);
        rest = &rest[end..];
    }
    plain.push_str(rest);
    (plain, floats)
}

/// For each method, the cases that call it and the dtypes in which they do.
fn called() -> BTreeMap<String, (BTreeSet<String>, Vec<DType>)> {
    let mut found: BTreeMap<String, (BTreeSet<String>, Vec<DType>)> = BTreeMap::new();
    let methods = tensor_methods();
    for (module, case, kind) in cases() {
        let whole = items(&without_comments(&read(&format!("tests/src/cases/{module}.rs"))));
        let (plain, floats) = parts(&whole[&case]);
        for (_, method) in &methods {
            for (text, kind) in [(&plain, kind.as_str()), (&floats, "floats")] {
                if calls(text, method) {
                    let (cases, dtypes) = found.entry(method.clone()).or_default();
                    cases.insert(format!("{module}::{case}"));
                    dtypes.extend(if kind == "once" { vec![] } else { kinds(kind) });
                }
            }
        }
    }
    found
}

/// What `docs/ops.md` has to say.
fn document() -> String {
    let mut text = HEAD.to_owned();
    let (methods, called) = (tensor_methods(), called());
    let rows: BTreeSet<&str> = matrix::table().iter().map(|row| row.name).collect();
    let names: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
    let (mut file, mut n, mut cells, mut everywhere) = ("", 0, 0, 0);
    let (mut body, mut refused) = (String::new(), Vec::new());
    for (of, method) in methods.iter().filter(|(_, method)| rows.contains(method.as_str())) {
        if of != file {
            file = of;
            let head = "|---".repeat(names.len());
            let _ = write!(
                body,
                "\n## {of}\n\n| | {} | also in |\n|---{head}|---|\n",
                names.join(" | ")
            );
        }
        let accepted = matrix::accepted(method);
        if accepted.is_empty() {
            refused.push(method);
        }
        let nothing = (BTreeSet::new(), vec![]);
        let (cases, dtypes) = called.get(method).unwrap_or(&nothing);
        let mark = |dtype: &DType| match accepted.contains(dtype) {
            false => "",
            true if matrix::EVERYWHERE.contains(dtype) || dtypes.contains(dtype) => "●",
            true => "○",
        };
        let marks: Vec<&str> = DType::ALL.iter().map(mark).collect();
        n += 1;
        cells += accepted.len();
        everywhere += marks.iter().filter(|&&mark| mark == "●").count();
        let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
        let _ = writeln!(body, "| `{method}` | {} | {} |", marks.join(" | "), cases.join(", "));
    }
    assert!(refused.is_empty(), "refused in every dtype: {refused:?}");
    let _ = write!(
        text,
        "\n{n} operations, {cells} cells, {everywhere} of them compared everywhere in every run.\n\
         Backends that run the suite: {}.\n",
        BACKENDS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    );
    text + &body + "\n## Not in the table\n\n" + &excused()
}

fn excused() -> String {
    let line = |(why, names): &(&str, &[&str])| format!("- `{}`: {why}.\n", names.join("` `"));
    NO_ROW.iter().map(line).collect()
}

const HEAD: &str = "# Operations, dtypes, backends\n\n\
Written by `ZYX_BLESS=1 cargo test -p zyx-tests --test ops`; the same test fails when a method of `Tensor` is missing here or a\n\
cell says something else than the cases of the suite (`tests/src/cases`) do.\n\n\
- `●` compared on every backend in every run: by the matrix (`cases::matrix`), or by the case of the last column.\n\
- `○` compared on the CPU and the reference device in every run, on the others with `ZYX_FULL=1`, as their compilers take about\n\
  0.1 s for a kernel: six minutes for all on PoCL, and as much on wgpu and lavapipe (two cores, November 2026, all as compared). These\n\
  rows are made of the graph's twenty operations, which every backend computes in all dtypes.\n\
- blank: refused, with an error that says so.\n\n\
A backend whose device lacks a dtype computes it in others, except `f64`: where there is none (WebGPU, Metal), tensors of `f64` are\n\
refused by name.\n";

#[test]
fn the_table_of_operations_is_up_to_date() {
    let want = document();
    let path = root().join("docs/ops.md");
    if std::env::var("ZYX_BLESS").is_ok() {
        std::fs::write(&path, &want).expect("the file is writable");
    }
    let got = read("docs/ops.md");
    let differs = got.lines().zip(want.lines()).find(|(a, b)| a != b);
    assert!(
        got == want,
        "docs/ops.md is not what the cases say (ZYX_BLESS=1 writes it): {differs:?}"
    );
}

#[test]
fn every_operation_has_a_row() {
    let rows: Vec<&str> = matrix::table().iter().map(|row| row.name).collect();
    let distinct: BTreeSet<&str> = rows.iter().copied().collect();
    assert_eq!(rows.len(), distinct.len(), "a row is there twice");
    let excused = |name: &str| NO_ROW.iter().any(|(_, names)| names.contains(&name));
    let methods: Vec<String> = tensor_methods().into_iter().map(|(_, name)| name).collect();
    let missing: Vec<&String> =
        methods.iter().filter(|name| !distinct.contains(name.as_str()) && !excused(name)).collect();
    assert!(missing.is_empty(), "methods without a row in cases/matrix: {missing:?}");
    let gone: Vec<&&str> =
        distinct.iter().filter(|name| !methods.iter().any(|m| m == **name)).collect();
    assert!(gone.is_empty(), "rows whose method is gone: {gone:?}");
}

/// `docs/peers.md`: what its first table calls ours exists, what its second calls missing does not.
#[test]
fn peers_are_compared_with_what_there_is() {
    let text = read("docs/peers.md");
    let mut ours: BTreeSet<String> = tensor_methods().into_iter().map(|(_, name)| name).collect();
    for library in [
        "nn/src/lib.rs",
        "optim/src/lib.rs",
        "zyx-core/src/tensor/quantized.rs",
        "zyx-core/src/tensor/jit.rs",
    ] {
        let names = read(library);
        let words = names.split(|c: char| !c.is_alphanumeric());
        ours.extend(words.filter(|w| w.starts_with(char::is_uppercase)).map(str::to_owned));
    }
    let quoted = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let (first, second) = text.split_once("## What they have and we lack").expect("two tables");
    let cells = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<String>>();
    let rows = |text: &str| -> Vec<Vec<String>> {
        let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
        rows.map(cells).collect()
    };
    let (same, missing) = (rows(first), rows(second));
    assert!(same.len() > 10 && missing.len() > 10, "the tables were not read");
    for row in same {
        let unknown: Vec<String> =
            quoted(&row[2]).into_iter().filter(|n| !ours.contains(n)).collect();
        assert!(unknown.is_empty(), "docs/peers.md names as ours what is not: {unknown:?}");
    }
    for row in missing {
        let there: Vec<String> = quoted(&row[1]).into_iter().filter(|n| ours.contains(n)).collect();
        assert!(there.is_empty(), "docs/peers.md names as missing what is there: {there:?}");
    }
}

#[test]
fn every_backend_runs_the_suite() {
    for (name, path) in BACKENDS {
        let path = root().join(path);
        let files: Vec<std::path::PathBuf> = match path.is_dir() {
            true => std::fs::read_dir(&path).expect("tests").flatten().map(|e| e.path()).collect(),
            false => vec![path],
        };
        let runs = files.iter().any(|file| {
            std::fs::read_to_string(file)
                .is_ok_and(|text| text.contains(&format!("zyx_tests::conformance!(\"{name}\"")))
        });
        assert!(runs, "{name} does not run the suite");
    }
}
