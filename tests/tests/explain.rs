//! `Tensor::explain` tells what the counters count, and why values lie between launches.

mod common;

use common::device;
use zyx_nn::{Forward, Init, Linear, Module, Sequential};
use zyx_optim::{Optimizer, Sgd, SgdOptions};
use zyx_tests::zyx_core::{
    CallNote, Conv2dOptions, DType, Device, Explanation, KernelNote, Result, Rng, Tensor, ValueNote,
};

fn random(dims: &[usize], device: &Device) -> Tensor {
    let x = Tensor::randn(dims, DType::F32, &mut Rng::seed(dims.len() as u64), device);
    let x = x.expect("a shape").contiguous();
    x.realize().expect("memory");
    x
}

/// Explains before and after computing; both must have as many launches as there were.
fn explained(y: &Tensor) -> Result<Explanation> {
    let device = y.device();
    let pending = y.explain()?;
    let before = device.stats();
    y.realize()?;
    assert_eq!(device.stats().since(&before).launches, pending.launches.len() as u64);
    let realized = y.explain()?;
    assert_eq!(pending.to_string(), realized.to_string());
    Ok(realized)
}

/// Why the only value that launch `number` reads of another one is stored.
fn reason(explanation: &Explanation, number: usize) -> String {
    let kernels = explanation.launches[number].kernels.iter();
    let between: Vec<_> =
        kernels.flat_map(|kernel| &kernel.reads).filter(|v| v.launch.is_some()).collect();
    assert_eq!(between.len(), 1, "{explanation}");
    between[0].reason.clone().expect("a stored value has a reason")
}

#[test]
fn launches_and_fused_operations_are_told() -> Result<()> {
    let device = device();
    let softmax = explained(&random(&[64, 96], &device).softmax(-1)?)?;
    assert_eq!(softmax.launches.len(), 1, "{softmax}");
    let kernel = &softmax.launches[0].kernels[0];
    let fused: Vec<&str> = kernel.fused.iter().map(|op| op.0.as_str()).collect();
    assert!(fused.contains(&"exp") && fused.contains(&"reduce max over 1"), "{softmax}");
    assert_eq!((kernel.reads.len(), kernel.writes.len()), (1, 1), "{softmax}");
    assert_eq!(kernel.writes[0].bytes(), 64 * 96 * 4);
    assert!(softmax.to_string().contains("it is a result"), "{softmax}");
    Ok(())
}

#[test]
fn reasons_against_fusion_are_told() -> Result<()> {
    let device = device();
    let (x, w) = (random(&[64, 96], &device), random(&[96, 96], &device));
    let two = explained(&x.matmul(&w)?.matmul(&w)?)?;
    assert_eq!(two.launches.len(), 2, "{two}");
    assert!(reason(&two, 1).contains("a library kernel computes it"), "{two}");
    assert_eq!(two.launches[0].kernels[0].operations, 2.0 * 64.0 * 96.0 * 96.0);

    let scanned = explained(&x.cumsum(1)?.exp())?;
    assert!(reason(&scanned, 1).contains("a scan"), "{scanned}");

    // The sum of each column divides every row.
    let normal = explained(&x.div(x.sum_keepdim(0)?)?)?;
    assert!(reason(&normal, 1).contains("times over"), "{normal}");
    Ok(())
}

#[test]
fn independent_kernels_share_a_launch() -> Result<()> {
    let device = device();
    let (x, y) = (random(&[64], &device), random(&[5, 7], &device));
    let (a, b) = (x.exp(), y.sum(1)?);
    Tensor::realize_all([&a, &b])?;
    let both = a.explain()?;
    assert_eq!((both.launches.len(), both.launches[0].kernels.len()), (1, 2), "{both}");
    Ok(())
}

#[test]
fn data_from_outside_took_no_launch() -> Result<()> {
    let x = Tensor::from_slice(&[1f32, 2.0], [2], &device())?;
    assert!(x.explain()?.launches.is_empty());
    Ok(())
}

#[test]
fn while_profiling_launches_have_times_and_their_part_of_the_roofline() -> Result<()> {
    let device = device();
    device.set_profiling(true);
    let y = random(&[512, 512], &device).exp();
    y.realize()?;
    let explanation = y.explain()?;
    let speeds = explanation.speeds.expect("speeds are measured while profiling");
    assert!(speeds.bytes > 1e6 && speeds.operations > 1e6, "{explanation}");
    let launch = &explanation.launches[0];
    assert!(launch.time.is_some_and(|time| time.as_nanos() > 0), "{explanation}");
    assert!(launch.roofline.is_some_and(|part| part > 0.0), "{explanation}");
    // Measuring the device left no trace in the profile.
    assert!(device.profile().iter().all(|row| !row.name.contains("1024x1024")));
    Ok(())
}

/// All kernels.
fn kernels(explanation: &Explanation) -> impl Iterator<Item = &KernelNote> {
    explanation.launches.iter().flat_map(|launch| &launch.kernels)
}

/// The calls that kernels come from.
fn calls(explanation: &Explanation) -> Vec<&CallNote> {
    kernels(explanation).flat_map(|kernel| &kernel.calls).collect()
}

fn here(line: u32) -> Option<String> {
    Some(format!("{}:{line}", file!()))
}

#[test]
fn kernels_are_told_by_the_calls_of_the_program() -> Result<()> {
    let device = device();
    let (x, w, b) = (random(&[64, 8], &device), random(&[8, 32], &device), random(&[32], &device));
    let (y, first) = (x.matmul(&w)?.add(&b)?.gelu(), line!());
    let (y, second) = (y.softmax(-1)?, line!());
    let told = explained(&y)?;
    let calls = calls(&told);
    let names: Vec<Option<&str>> = calls.iter().map(|call| call.name.as_deref()).collect();
    assert_eq!(names, [Some("matmul"), Some("add"), Some("gelu"), Some("softmax")], "{told}");
    for call in calls {
        let line = if call.name.as_deref() == Some("softmax") { second } else { first };
        assert_eq!((&call.line, call.is_gradient), (&here(line), false), "{told}");
        assert!(!call.operations.is_empty(), "{told}");
    }
    let text = told.to_string();
    assert!(text.contains(&format!("of matmul, add, gelu at {}:{first}\n", file!())), "{text}");
    assert!(text.contains("writes gelu f32 [64, 32]"), "{text}");
    Ok(())
}

#[test]
fn methods_made_of_many_operations_have_one_name() -> Result<()> {
    let device = device();
    let (x, w) = (random(&[6, 8], &device), random(&[8], &device));
    let image = random(&[2, 3, 8, 8], &device);
    let filter = random(&[4, 3, 3, 3], &device);
    let index = Tensor::from_slice(&[1i64, 0, 3, 2, 1, 0], [6], &device)?;
    let given: Vec<(&str, Tensor)> = vec![
        ("gelu", x.gelu()),
        ("gelu_exact", x.gelu_exact()),
        ("mish", x.mish()),
        ("silu", x.silu()),
        ("sigmoid", x.sigmoid()),
        ("softplus", x.softplus()),
        ("logsigmoid", x.logsigmoid()),
        ("elu", x.elu(1.0)),
        ("erf", x.erf()),
        ("lgamma", x.lgamma()),
        ("digamma", x.digamma()),
        ("sinc", x.sinc()),
        ("cosh", x.cosh()),
        ("softmax", x.softmax(-1)?),
        ("log_softmax", x.log_softmax(-1)?),
        ("logsumexp", x.logsumexp(-1)?),
        ("layer_norm", x.layer_norm(-1, Some(&w), None, 1e-5)?),
        ("std", x.std(-1, 1)?),
        ("var", x.var(-1, 1)?),
        ("mean", x.mean(-1)?),
        ("cumsum", x.cumsum(-1)?),
        ("cumprod", x.cumprod(-1)?),
        ("norm", x.norm(-1)?),
        ("cross_entropy", x.cross_entropy(&index)?),
        ("conv2d", image.conv2d(&filter, None, Conv2dOptions::default())?),
        ("tril", x.tril(0)?),
        ("matmul", x.matmul(&w)?),
        ("outer", w.outer(&w)?),
        ("index_select", x.index_select(0, &index)?),
        ("sort", x.sort(-1, false)?.0),
        ("einsum", Tensor::einsum("ij,j->i", &[&x, &w])?),
        ("stack", Tensor::stack(&[&x, &x], 0)?),
    ];
    let mut wrong = String::new();
    for (name, y) in given {
        let told = y.explain()?;
        let is_right = |call: &&CallNote| {
            let line = call.line.as_ref().is_some_and(|line| line.contains(file!()));
            line && call.name.as_deref() == Some(name)
        };
        if calls(&told).is_empty() || !calls(&told).iter().all(is_right) {
            wrong += &format!("{name}: {told}");
        }
    }
    assert_eq!(wrong, "");
    Ok(())
}

#[derive(Module)]
struct Mlp {
    fc1: Linear,
    fc2: Linear,
}

impl Forward for Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.fc1.forward(x)?.gelu();
        self.fc2.forward(&h)
    }
}

/// The line of `Mlp::forward` with this text.
fn line_of(text: &str) -> Option<String> {
    let line = include_str!("explain.rs").lines().position(|line| line.contains(text));
    here(line.expect("it is above") as u32 + 1)
}

#[test]
fn a_training_step_names_layers_parameters_and_gradients() -> Result<()> {
    let device = device();
    let init = &mut Init::new(0, &device);
    let model = Mlp { fc1: Linear::new(16, 32, init)?, fc2: Linear::new(32, 4, init)? };
    let mut optimizer = Sgd::new(model.parameters(), SgdOptions::default())?;
    let x = random(&[8, 16], &device);
    let mut step = || -> Result<Tensor> {
        let loss = model.forward(&x)?.square().mean(..)?;
        optimizer.step(&loss)?;
        Ok(loss)
    };
    for _ in 0..3 {
        step()?;
    }
    let told = step()?.explain()?;
    assert!(!told.shared, "{told}");
    let has = |name: &str, gradient: bool, line: &Option<String>| {
        let same = |call: &&&CallNote| {
            call.name.as_deref() == Some(name) && call.is_gradient == gradient && call.line == *line
        };
        assert!(calls(&told).iter().any(|call| same(&call)), "{name} {gradient} {line:?}: {told}");
    };
    let (first, second) = (line_of("let h = self.fc1"), line_of("        self.fc2.forward(&h)"));
    for gradient in [false, true] {
        has("fc1.forward", gradient, &first);
        has("gelu", gradient, &first);
        has("fc2.forward", gradient, &second);
        has("square", gradient, &line_of("let loss = model.forward(&x)?.square()"));
    }
    has("optimizer.step", false, &line_of("        optimizer.step(&loss)?;"));
    let named = |values: fn(&KernelNote) -> &Vec<ValueNote>| {
        let mut names: Vec<String> = kernels(&told)
            .flat_map(values)
            .filter_map(|value| Some(value.parameter.as_deref()?.to_owned()))
            .collect();
        names.sort();
        names.dedup();
        names
    };
    let all = ["fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"];
    assert_eq!(named(|kernel| &kernel.reads), all, "{told}");
    assert_eq!(named(|kernel| &kernel.writes), all, "{told}");
    Ok(())
}

#[test]
fn layers_behind_boxes_are_told_by_the_line_that_called_them() -> Result<()> {
    let device = device();
    let init = &mut Init::new(0, &device);
    let model = Sequential::new().then(Linear::new(16, 32, init)?).then(Linear::new(32, 4, init)?);
    model.eval();
    let x = random(&[8, 16], &device);
    Tensor::realize_all(&model.parameters().iter().map(|p| p.tensor()).collect::<Vec<_>>())?;
    let (y, line) = (model.forward(&x)?, line!());
    let told = y.explain()?;
    for call in calls(&told) {
        assert_eq!(
            (&call.line, call.name.as_deref()),
            (&here(line), Some("model.forward")),
            "{told}"
        );
    }
    assert!(told.to_string().contains("reads 0.weight f32 [32, 16]"), "{told}");
    Ok(())
}

#[test]
fn a_plan_of_several_lines_says_so() -> Result<()> {
    let device = device();
    let x = random(&[40], &device);
    let a = x.exp();
    a.realize()?;
    assert!(!a.explain()?.shared);
    let b = x.exp();
    b.realize()?;
    let told = b.explain()?;
    assert!(told.shared && told.to_string().contains("several computations"), "{told}");
    // What is pending is told of itself.
    let (c, line) = (x.exp(), line!());
    assert_eq!(calls(&c.explain()?)[0].line, here(line));
    Ok(())
}

/// Nodes with their labels and edges of a graph in the DOT language, of the kind that is written here.
fn parsed(dot: &str) -> (Vec<(String, String)>, Vec<(String, String, String)>) {
    let body = dot.strip_prefix("digraph plan {\n").and_then(|rest| rest.strip_suffix("}\n"));
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for statement in body.expect("one graph").lines() {
        let statement = statement.trim().strip_suffix("];").expect("a statement");
        let (subject, attributes) = statement.split_once(" [").expect("attributes");
        let label =
            attributes.split_once("label=\"").and_then(|(_, label)| label.strip_suffix('"'));
        let Some(label) = label else { continue };
        assert!(!label.contains('"'), "no quote is left open: {label}");
        match subject.split_once(" -> ") {
            Some((from, to)) => edges.push((from.to_owned(), to.to_owned(), label.to_owned())),
            None => nodes.push((subject.to_owned(), label.to_owned())),
        }
    }
    (nodes, edges)
}

#[test]
fn a_plan_is_a_graph_of_launches_and_values() -> Result<()> {
    let device = device();
    let (x, w) = (random(&[64, 96], &device), random(&[96, 96], &device));
    let told = explained(&x.matmul(&w)?.cumsum(1)?.exp().sum(0)?)?;
    let (nodes, edges) = parsed(&told.to_dot());
    let count = |prefix: &str| nodes.iter().filter(|node| node.0.starts_with(prefix)).count();
    assert_eq!(
        (count("launch"), count("input"), count("result")),
        (told.launches.len(), 2, 1),
        "{told}"
    );
    for (from, to, label) in &edges {
        for end in [from, to] {
            assert_eq!(nodes.iter().filter(|node| node.0 == *end).count(), 1, "{end}");
        }
        assert!(label.ends_with(" bytes"), "{label}");
    }
    // Every launch that reads what another stores has an edge from it, and no value is lost.
    let reads: usize = told.launches.iter().flat_map(|l| &l.kernels).map(|k| k.reads.len()).sum();
    assert_eq!(edges.len(), reads + 1);
    let first = nodes.iter().find(|node| node.0 == "launch0").expect("a launch");
    assert!(first.1.contains(&told.launches[0].name) && first.1.contains("matmul"), "{}", first.1);
    assert!(edges.iter().any(|e| e.2 == "f32 [64, 96]\\n24576 bytes"), "{edges:?}");
    Ok(())
}
