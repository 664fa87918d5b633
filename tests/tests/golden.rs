//! Golden kernels: what representative graphs become, before and after the tuner for CPUs.
//!
//! The first part of each file in `tests/golden` is the naive kernel that lowering gives, the
//! second the kernel after the default passes for a CPU with 64-byte vectors and masks. A change
//! of scheduling, lowering or passes shows here as a difference of text; read it, then rewrite the
//! files with `ZYX_BLESS=1 cargo test -p zyx-tests --test golden`.

use std::fmt::Write;
use std::path::PathBuf;
use zyx_tests::zyx_core::hal::Caps;
use zyx_tests::zyx_core::passes;
use zyx_tests::zyx_core::reference::Reference;
use zyx_tests::zyx_core::{Conv2dOptions, DType, Device, Result, Runtime, Tensor, testing, tune};

/// A CPU that does not depend on the machine the test runs on.
fn caps() -> Caps {
    let mut caps = Reference::default().caps;
    caps.vector_bytes = 64;
    caps.masked = true;
    caps
}

fn leaf(dims: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
    let x = Tensor::zeros(dims, dtype, device).contiguous();
    x.realize()?;
    Ok(x)
}

type Graph = fn(&Device) -> Result<Tensor>;

const GRAPHS: &[(&str, Graph)] = &[
    ("chain", |d| {
        let x = leaf(&[1000], DType::F32, d)?;
        x.add(leaf(&[1000], DType::F32, d)?)?.mul(5.0)?.sub(&x)?.exp().add(1.0)
    }),
    ("broadcast", |d| leaf(&[64, 1], DType::F32, d)?.mul(leaf(&[48], DType::F32, d)?)),
    ("transpose", |d| Ok(leaf(&[48, 64], DType::F32, d)?.t().exp())),
    ("sum_all", |d| leaf(&[5000], DType::F32, d)?.sum(..)),
    ("sum_columns", |d| leaf(&[96, 64], DType::F32, d)?.sum(0)),
    ("sum_bf16", |d| leaf(&[16, 100], DType::BF16, d)?.sum(1)),
    ("softmax", |d| leaf(&[32, 100], DType::F32, d)?.softmax(-1)),
    ("layer_norm", |d| {
        let (w, b) = (leaf(&[96], DType::F32, d)?, leaf(&[96], DType::F32, d)?);
        leaf(&[32, 96], DType::F32, d)?.layer_norm(-1, Some(&w), Some(&b), 1e-5)
    }),
    ("matmul_relu", |d| {
        let (x, w) = (leaf(&[33, 48], DType::F32, d)?, leaf(&[48, 64], DType::F32, d)?);
        Ok(x.matmul(&w)?.add(leaf(&[64], DType::F32, d)?)?.relu())
    }),
    ("conv2d", |d| {
        let (x, w) = (leaf(&[2, 3, 9, 9], DType::F32, d)?, leaf(&[4, 3, 3, 3], DType::F32, d)?);
        x.conv2d(&w, None, Conv2dOptions { padding: [1, 1], ..Default::default() })
    }),
    ("gather", |d| leaf(&[100, 16], DType::F32, d)?.index_select(0, &leaf(&[40], DType::I64, d)?)),
    ("cumsum", |d| leaf(&[8, 200], DType::F32, d)?.cumsum(1)),
    ("argmax", |d| leaf(&[16, 120], DType::F32, d)?.argmax(1)),
    ("padded_concat", |d| {
        let (x, y) = (leaf(&[8, 10], DType::F32, d)?, leaf(&[8, 6], DType::F32, d)?);
        Tensor::cat(&[&x, &y], 1)?.pad([(1, 1), (0, 4)])?.mul(2.0)
    }),
];

/// Kernels in `tests/kernels` that are what the pass of their name makes of a graph's kernel. Each
/// backend keeps what it translates them to, and runs them.
const PASSED: &[(&str, &str, Graph)] = &[
    ("block", "9 x 10 times 10 x 12, a bias and a rectifier: in blocks of 4 x 8.", |d| {
        let (x, w) = (leaf(&[9, 10], DType::F32, d)?, leaf(&[10, 12], DType::F32, d)?);
        Ok(x.matmul(&w)?.add(leaf(&[12], DType::F32, d)?)?.relu())
    }),
    ("transpose_shared", "20 x 9 transposed through shared squares of 4 x 4.", |d| {
        leaf(&[20, 9], DType::F32, d)?.t().mul(0.5)
    }),
    ("stage_rows", "Running sums of 6 rows of 20, of 4 rows and 8 steps at a time.", |d| {
        leaf(&[6, 20], DType::F32, d)?.cumsum(1)
    }),
];

/// The kernel of a graph after the first choice of a pass for a GPU without vectors.
fn passed(name: &str, doc: &str, graph: Graph, device: &Device) -> Result<String> {
    let y = graph(device)?;
    let kernels = testing::kernels(&[&y]);
    let mut caps = Reference::default().caps;
    (caps.simt, caps.max_local, caps.shared_bytes, caps.vector_bytes) = (true, 256, 1 << 14, 0);
    let pass = passes::pass(name).expect("invariant: the pass is in the table");
    let site = (pass.sites)(&kernels[0], &caps).into_iter().next().expect("a site");
    let kernel = (pass.apply)(&kernels[0], &site).to_string();
    // Not the graph's name, but the file's.
    let (_, body) = kernel.split_once('\n').expect("invariant: a kernel has lines");
    Ok(format!("# {doc}\nkernel {name}\n{body}"))
}

/// The kernels of a graph as text.
fn render(graph: Graph, device: &Device) -> Result<String> {
    let y = graph(device)?;
    let mut text = String::new();
    for kernel in testing::kernels(&[&y]) {
        let tuned = tune::optimize(&kernel, &caps());
        let trace = tune::default_trace(&kernel, &caps());
        write!(text, "; naive\n{kernel}\n; {trace}\n{tuned}\n").expect("invariant: a string grows");
    }
    Ok(text)
}

/// Lines that differ, with two around them: `-` as stored, `+` as it is now.
fn difference(stored: &str, now: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (stored.lines().collect(), now.lines().collect());
    let same_before = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let rest = a.len().min(b.len()) - same_before;
    let tails = a.iter().rev().zip(b.iter().rev());
    let same_after = tails.take(rest).take_while(|(x, y)| x == y).count();
    let around = |lines: &[&str], from: usize, to: usize, mark: &str| -> String {
        lines[from..to].iter().map(|line| format!("{mark}{line}\n")).collect()
    };
    let before = around(&a, same_before.saturating_sub(2), same_before, "  ");
    let old = around(&a, same_before, a.len() - same_after, "- ");
    let new = around(&b, same_before, b.len() - same_after, "+ ");
    let after = around(&a, a.len() - same_after, (a.len() - same_after + 2).min(a.len()), "  ");
    format!("line {}:\n{before}{old}{new}{after}", same_before + 1)
}

#[test]
fn kernels_are_as_stored() -> Result<()> {
    let device = Runtime::default().device("reference")?;
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let bless = std::env::var_os("ZYX_BLESS").is_some();
    let mut wrong = Vec::new();
    let tuned = GRAPHS.iter().map(|(name, graph)| ("golden", *name, render(*graph, &device)));
    let passed = PASSED
        .iter()
        .map(|(name, doc, graph)| ("kernels", *name, passed(name, doc, *graph, &device)));
    for (folder, name, now) in tuned.chain(passed) {
        let now = now?;
        assert!(!now.is_empty(), "{name} has no kernel");
        let path = root.join(folder).join(format!("{name}.ir"));
        if bless {
            std::fs::create_dir_all(root.join(folder)).expect("the folder can be made");
            std::fs::write(&path, &now).expect("the file can be written");
            continue;
        }
        match std::fs::read_to_string(&path) {
            Ok(stored) if stored == now => {}
            Ok(stored) => wrong.push(format!("{name}, {}", difference(&stored, &now))),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "kernels changed; if that is right, ZYX_BLESS=1 cargo test -p zyx-tests --test golden\n{}",
        wrong.join("\n")
    );
    Ok(())
}

#[test]
fn a_difference_shows_what_changed() {
    let text = difference("a\nb\nc\nd\n", "a\nx\ny\nc\nd\n");
    assert_eq!(text, "line 2:\n  a\n- b\n+ x\n+ y\n  c\n  d\n");
    assert_eq!(difference("a\n", "a\nb\n"), "line 2:\n  a\n+ b\n");
}
