//! `docs/ops.md`: which operation is computed in which dtype, and where that is compared.
//!
//! The table is written from the cases themselves, and this test fails when the file says
//! something else; `ZYX_BLESS=1` writes it anew. A method of `Tensor` that is neither a row of
//! the matrix nor excused by name fails as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use zyx_backend_cpu::Cpu;
use zyx_tests::apply::{binary_name, unary_name};
use zyx_tests::backends::row;
use zyx_tests::bounds;
use zyx_tests::cases::matrix;
use zyx_tests::check::heard;
use zyx_tests::harness;
use zyx_tests::sources::{root, tensor_methods};
use zyx_tests::zyx_core::{BinaryOp, DType, Reference, Runtime, UnaryOp};

/// Methods that are no operations on elements, and why they are no rows.
const NO_ROW: &[(&str, &[&str])] = &[
    (
        "made of data, or read as data: all dtypes in the cases `create` and `convert`",
        &[
            "new",
            "from_slice",
            "from_bytes",
            "from_reader",
            "from_owner",
            "from_shared",
            "scalar",
            "to_vec",
            "read_async",
            "item",
            "host_view",
            "to_bytes",
            "write_to",
        ],
    ),
    (
        "what a tensor is and when it is computed",
        &[
            "shape",
            "dtype",
            "positions_within",
            "unchecked_indices",
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
    (
        "the gradients of `grad_with` by parameter, compared in `zyx-core/src/tensor/param.rs`",
        &["param_gradients"],
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

/// The cases of the suite but the matrix: module, name.
fn cases() -> Vec<(String, String)> {
    let text = read("tests/src/harness.rs");
    let start = text.find("{ @$kind\n").expect("the list of cases");
    let end = text[start..].find("\n        }\n    };").expect("its end") + start;
    let (mut module, mut found) = (String::new(), Vec::new());
    for part in text[start + 9..end].split([',', '{', '}']) {
        match part.split_whitespace().collect::<Vec<_>>()[..] {
            [name] => module = name.to_owned(),
            [_, case] => found.push((module.clone(), case.to_owned())),
            _ => {}
        }
    }
    assert!(found.len() > 50, "{} cases", found.len());
    found.retain(|(module, _)| module != "matrix");
    found
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A source without comments and without the text of literals, whose words are no calls.
fn code(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['"', '\'', '/']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = match rest.as_bytes() {
            [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
            [b'"', ..] => quoted(rest),
            // A character; a lifetime has no second quote so near.
            [b'\'', b'\\', _, ..] => rest[3..].find('\'').map_or(rest.len(), |n| n + 4),
            [b'\'', ..] if rest.chars().nth(2) == Some('\'') => {
                rest.char_indices().nth(3).map_or(rest.len(), |(n, _)| n)
            }
            _ => {
                out.push_str(&rest[..1]);
                1
            }
        };
        rest = &rest[end..];
    }
    out + rest
}

/// The length of the string literal that a text begins with.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    let end = text[1..].find(|c| {
        let is_end = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        is_end
    });
    end.map_or(text.len(), |n| n + 2)
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
    }) || (text.contains("apply::unary") && UnaryOp::ALL.iter().any(|&op| unary_name(op) == method))
        || (text.contains("apply::binary")
            && BinaryOp::ALL.iter().any(|&op| {
                [DType::F32, DType::I32].iter().any(|&dtype| binary_name(op, dtype) == method)
            }))
}

/// What the cases compare on a device whose kernels are dear, where they take fewest: by case and
/// dtype, if it has one, the subjects of all comparisons.
fn compared() -> BTreeMap<(&'static str, Option<DType>), BTreeSet<String>> {
    let runtime = Runtime::default();
    let mut backend = Reference::default();
    backend.caps.simt = true;
    runtime.register(backend);
    let device = runtime.device("reference").expect("always present");
    let mut found = BTreeMap::new();
    for (name, case) in harness::cases() {
        let (name, dtype) = name.split_once(' ').map_or((name, None), |(n, d)| (n, Some(d)));
        let dtype = DType::ALL.iter().copied().find(|d| Some(&*format!("{d:?}")) == dtype);
        if !name.starts_with("matrix::") {
            let words = heard(|| case(&device)).iter().flat_map(|what| subjects(what)).collect();
            found.insert((name, dtype), words);
        }
    }
    found
}

/// The words that the parts of a comparison's name begin with: `permute [1, 0], flip [0]` is about
/// `permute` and `flip`.
fn subjects(what: &str) -> Vec<String> {
    what.split(", ")
        .filter_map(|part| part.split([' ', ',', '(']).next())
        .map(str::to_owned)
        .collect()
}

/// For each method, the cases that call it, and the dtypes in which one that does compares
/// something under the method's name.
fn called() -> BTreeMap<String, (BTreeSet<String>, Vec<DType>)> {
    let mut found: BTreeMap<String, (BTreeSet<String>, Vec<DType>)> = BTreeMap::new();
    let (methods, compared) = (tensor_methods(), compared());
    for (module, case) in cases() {
        let path = format!("tests/src/cases/{module}.rs");
        let text = &items(&code(&read(&path)))[&case];
        let name = format!("{module}::{case}");
        for (_, method) in methods.iter().filter(|(_, method)| calls(text, method)) {
            let (cases, dtypes) = found.entry(method.clone()).or_default();
            let of = compared.iter().filter(|((of, _), _)| *of == name);
            let of = of.filter(|(_, words)| words.contains(method));
            dtypes.extend(of.filter_map(|((_, dtype), _)| *dtype));
            cases.insert(name.clone());
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
                "\n## {of}\n\n| | {} | bound | called in |\n|---{head}|---|---|\n",
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
        let (marks, bound) = (marks.join(" | "), bounds::of(method));
        let _ = writeln!(body, "| `{method}` | {marks} | {bound} | {} |", cases.join(", "));
    }
    assert!(refused.is_empty(), "refused in every dtype: {refused:?}");
    let _ = write!(
        text,
        "\n{n} operations, {cells} cells, {everywhere} of them compared everywhere in every run.\n\n"
    );
    text + &backends(cells, everywhere) + &body + "\n## Not in the table\n\n" + &excused()
}

/// How many cells each backend compares, and how it computes which dtype. Rows that only a
/// backend's own tests can see stay as they are: those tests compare them.
fn backends(cells: usize, everywhere: usize) -> String {
    let mut text = BACKENDS_HEAD.to_owned();
    for (name, _) in BACKENDS {
        let every = if DEAR.contains(name) { everywhere } else { cells };
        let _ = writeln!(text, "| {name} | {every} | {cells} |");
    }
    let names: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
    let head = "|---".repeat(names.len());
    let _ = write!(text, "\n{DTYPES_HEAD}\n| | {} |\n|---{head}|\n", names.join(" | "));
    let stated = read("docs/ops.md");
    let runtime = Runtime::default();
    runtime.register(Reference::default());
    runtime.register(Cpu::default());
    for name in ROWS {
        let caps = runtime.device(name).ok().map(|device| device.caps().clone());
        let start = format!("| {name} |");
        let row = match caps {
            // The interpreter stands in where a processor has none of the instruction sets.
            Some(caps) if *name != "cpu" || caps.masked => row(name, &caps),
            _ => stated.lines().find(|l| l.starts_with(&start)).unwrap_or(&start).to_owned(),
        };
        let _ = writeln!(text, "{row}");
    }
    text
}

/// Backends whose compilers take so long that `●` is what they compare in every run.
const DEAR: &[&str] = &["opencl", "vulkan", "wgpu", "cuda"];

/// Rows of the table of dtypes.
const ROWS: &[&str] = &[
    "reference",
    "cpu",
    "opencl, typical",
    "opencl, minimal",
    "vulkan, typical",
    "vulkan, minimal",
    "wgpu, typical",
    "wgpu, minimal",
    "cuda, typical",
];

const BACKENDS_HEAD: &str = "## Backends\n\n\
Every backend is given the same list of cases by one macro (`zyx_tests::conformance!`), and none can leave one out: a case skips\n\
itself only for a dtype that the device refuses by name, and `conformance::is_whole` fails on every device that refuses another than\n\
`f64`. Cells that are compared:\n\n\
| | in every run | with `ZYX_FULL=1` |\n|---|---|---|\n";

const DTYPES_HEAD: &str = "How each computes a dtype: `●` as it is; the name of another in that one, rounded after each operation;\n\
`pairs` as two words of 32 bits; blank not at all, which an error says. \"Minimal\" is a device that has nothing the API calls optional,\n\
and has a run of the suite of its own, \"typical\" what kernels of the golden tests are for; a run of the suite prints its device's own.\n";

fn excused() -> String {
    let line = |(why, names): &(&str, &[&str])| format!("- `{}`: {why}.\n", names.join("` `"));
    NO_ROW.iter().map(line).collect()
}

const HEAD: &str = "# Operations, dtypes, backends\n\n\
Written by `ZYX_BLESS=1 cargo test -p zyx-tests --test ops`; the same test fails when a method of `Tensor` is missing here or a\n\
cell says something else than the cases of the suite (`tests/src/cases`) do.\n\n\
- `●` compared on every backend in every run: by the matrix (`cases::matrix`), or by a case of the last column.\n\
- `○` compared on the CPU and the reference device in every run, on the others with `ZYX_FULL=1`, as their compilers take about\n\
  0.1 s for a kernel: six minutes for all on PoCL, and as much on wgpu and lavapipe (two cores, November 2026, all as compared). These\n\
  rows are made of the graph's few operations, which every backend computes in all dtypes.\n\
- blank: refused, with an error that says so.\n\n\
A run is one of the whole suite, as `cargo test` and `scripts/nightly.sh` make. `scripts/test.sh`, and CI with it, samples OpenCL, Vulkan\n\
and wgpu by the day: of each case `bool`, `f32`, `f64`, one half, one integer of 8 or 16 bits and one of 32 or 64; the longest cases rotate.\n\n\
The bound is how far from the exact result an element may be, and what the cases compare with (`tests/src/bounds.rs` and the op table):\n\
`exact` not at all; `rounded` correctly rounded; a number so many units in its last place; a number \"of max\" so many at the largest of\n\
1, the result, and what it is sensitive to. Halves are computed in `f32` and rounded. A sum of `n` numbers is within `n u sum |x|`, `u` half\n\
a unit in the last place of 1, in any order. Gradients in `f64` agree with difference quotients to 1e-6 of the largest component.\n\n\
`●` of another dtype than `f32` stands where a case compares something under the operation's name in that dtype: the test runs each\n\
case on a device that says its kernels are dear and notes what is compared, and the case's code, without comments, has to call it.\n";

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
fn every_bound_is_of_an_operation() {
    let rows: BTreeSet<&str> = matrix::table().iter().map(|row| row.name).collect();
    let unknown: Vec<&str> = bounds::names().filter(|name| !rows.contains(name)).collect();
    assert!(unknown.is_empty(), "tests/src/bounds.rs names what is no operation: {unknown:?}");
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
            let call = format!("zyx_tests::conformance!(\"{name}\"");
            std::fs::read_to_string(file).is_ok_and(|t| t.lines().any(|l| l.starts_with(&call)))
        });
        assert!(runs, "{name} does not run the suite");
    }
}
