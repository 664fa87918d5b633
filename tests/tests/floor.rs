//! Every public operation and its gradient, planned for large operands on presets of devices: what
//! the plan is predicted to take is at most [`MOST`] times what memory and arithmetic need.
//!
//! Nothing is computed: prediction and least time follow from the plan and the capabilities of a
//! device. `data/floor.txt` has the exceptions, each with how many times the least time it takes on
//! each preset and the reason. They may not become slower, and have to leave the list once they are
//! none. `ZYX_BLESS=1` writes the numbers again and keeps the reasons.
//!
//! The same rows and some that reduce other axes are planned at awkward sizes, and are predicted to be at most
//! [`AWKWARD`] times as far from the least time as at the round sizes beside them, but for the exceptions of
//! `data/sizes.txt`.
//!
//!     ZYX_ONLY=cumsum cargo test --test floor -- --nocapture
//!
//! explains the plans of a row.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "plans are shown where that is asked for")]

use std::collections::BTreeMap;
use std::fmt::Write;
use zyx_tests::cases::matrix::{self, Against, Operands, Row};
use zyx_tests::zyx_core::hal::Progress;
use zyx_tests::zyx_core::testing::{self, Null};
use zyx_tests::zyx_core::{DType, DTypeSet, Device, Result, Runtime, Tensor};

/// Most times the least time.
const MOST: f64 = 8.0;
/// How much slower than recorded an exception may become.
const SLACK: f64 = 1.3;

/// Rows that cannot be planned without values, or are not planned for matrices of this size.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "a step for each column, on the host or in launches",
        "cholesky triangular_solve cholesky_solve cholesky_inverse solve inv det slogdet logdet qr eigh svd svdvals lstsq pinv matrix_rank cond",
    ),
    ("thousands of results", "unbind split"),
    ("operands of their own", "ctc_loss decode_float8"),
];

const PRESETS: [&str; 5] =
    ["H100", "laptop GPU", "lavapipe", "two AVX2 cores", "two AVX-512 cores"];

fn preset(name: &str) -> Device {
    let mut null = Null::default();
    let integers = DTypeSet::of(&[DType::I32, DType::U32, DType::I64, DType::U64]);
    (null.caps.atomics, null.caps.atomic_add) = (integers, integers);
    match name {
        "H100" => null.caps.most_shared_bytes = 227 << 10,
        "laptop GPU" => {
            (null.caps.threads, null.contracts) = (24 * 1536, false);
            null.caps.most_shared_bytes = 99 << 10;
        }
        "lavapipe" => {
            (null.caps.threads, null.contracts) = (2, false);
            (null.caps.shared_bytes, null.caps.progress) = (32 << 10, Progress::None);
        }
        _ => {
            null.caps = Default::default();
            null.caps.vector_bytes = if name.contains("512") { 64 } else { 32 };
            (null.caps.masked, null.caps.threads, null.caps.fast_fma) = (true, 2, true);
        }
    }
    let runtime = Runtime::default();
    runtime.register(null);
    runtime.device("null").unwrap()
}

/// Extents of operands, and others beside them: primes and one more. A matrix, two long rows, and long columns.
const SIZES: [(&str, [usize; 2], [[usize; 2]; 2]); 3] = [
    ("matrix", [3072, 4096], [[3067, 4099], [3073, 4097]]),
    ("rows", [2, 1 << 22], [[2, 4_194_301], [2, 4_194_305]]),
    ("columns", [1 << 20, 8], [[1_048_573, 7], [1_048_577, 8]]),
];

/// Rows of the matrix that long rows and columns have, too: reductions, scans, orders and what is made of them.
const ALONG: &str = "sum prod max min mean any all logsumexp norm argmax argmin cumsum cumprod cummax logcumsumexp \
    softmax log_softmax var var_mean linear_recurrence sort topk count_nonzero histc mse_loss layer_norm";

/// Rows that are planned at awkward sizes in every run: of each kind of kernel some. All are with `ZYX_ONLY=,`.
const AWKWARD_ROWS: &str = "sum_all,norm_all,max_all,mean_all,parity,bytes,count_all,sum_first,max_first,argmax_first,\
    var_first,softmax_first,cumsum_first,sum,max,mean,norm,expand,softmax,layer_norm,cumsum,cummax,sort,topk,roll_all,across,\
    less_first,product,scattered,gather,index_select,cat,pad,linear,conv2d,mse_loss,cross_entropy";

/// Rows beside those of the matrix: along the first axis and over all elements, which few results have.
fn further() -> Vec<Row> {
    macro_rules! rows {
        ($($name:ident |$s:ident| $body:expr;)*) => {
            vec![$(Row {
                name: stringify!($name),
                run: |$s| Ok(vec![$body?]),
                against: Against::Itself,
            }),*]
        };
    }
    fn flat(s: &Operands) -> Result<Tensor> {
        s.x.reshape([s.x.shape().numel()])
    }
    rows! {
        sum_all |s| s.x.sum(..);
        max_all |s| s.x.max(..);
        mean_all |s| s.x.exp().mean(..);
        norm_all |s| s.x.norm(..);
        argmax_all |s| flat(s)?.argmax(0);
        any_all |s| s.mask.any(..);
        count_all |s| s.index.count_nonzero(..);
        parity |s| Tensor::iota(s.x.shape().numel(), DType::I64, &s.device).remainder(2i64)?.sum(..);
        bytes |s| s.index.cast(DType::I8).sum(..);
        sum_first |s| s.x.sum(0);
        max_first |s| s.x.max(0);
        var_first |s| s.x.var(0, 1);
        argmax_first |s| s.x.argmax(0);
        softmax_first |s| s.x.softmax(0);
        cumsum_first |s| s.x.cumsum(0);
        cummax_first |s| s.x.cummax(0).map(|found| found.0);
        cumsum_all |s| flat(s)?.cumsum(0);
        sort_all |s| flat(s)?.sort(0, false).map(|found| found.0);
        sort_first |s| s.x.sort(0, false).map(|found| found.0);
        roll_all |s| flat(s)?.roll([3], [0]);
        across |s| s.x.permute([1, 0])?.contiguous().add(1.0);
        less_first |s| s.x.sub(&s.x.slice(0, ..1)?)?.sum(..);
        product |s| s.x.permute([1, 0])?.matmul(&s.y.slice(1, ..s.y.shape()[1].min(67))?);
        scattered |s| flat(s)?.scatter_add(0, &s.index.reshape([s.x.shape().numel()])?, &flat(s)?);
    }
}

/// How many times the least time computing `tensors` is predicted to take; `None` if nothing is to be
/// computed.
fn ratio(tensors: &[Tensor], device: &Device, shows: bool) -> Result<Option<f64>> {
    let pending: Vec<&Tensor> = tensors.iter().filter(|tensor| !tensor.is_realized()).collect();
    let plan = testing::explain(&pending, device)?;
    if shows {
        println!("{plan}");
    }
    let times = plan.predicted().as_secs_f64() / plan.least.as_secs_f64();
    Ok((!plan.launches.is_empty()).then_some(times))
}

/// The sum of the elements, each with a weight of its own.
fn weigh(y: &Tensor) -> Result<Tensor> {
    let weights = Tensor::zeros(y.shape().clone(), y.dtype(), y.device()).contiguous();
    weights.realize()?;
    y.mul(&weights)?.sum(..)
}

/// Gradients of all results that are floats by all operands; none if there are none.
fn gradients(results: &[Tensor], s: &Operands) -> Result<Vec<Tensor>> {
    let floats = results.iter().filter(|result| result.dtype().is_float());
    let sums = floats.map(weigh).collect::<Result<Vec<Tensor>>>()?;
    let sum = sums.into_iter().map(Ok).reduce(|a: Result<Tensor>, b| a?.add(&b?));
    // Some operations have no derivative.
    let found = sum.transpose()?.and_then(|sum| sum.grad(&s.floats()).ok());
    Ok(found.into_iter().flatten().flatten().collect())
}

/// The ratios of a row and of its gradient.
fn ratios(row: &Row, [floats, ints]: &[Operands; 2], shows: bool) -> Result<[Option<f64>; 2]> {
    let (results, s) = match (row.run)(floats) {
        Ok(results) => (results, floats),
        Err(_) => ((row.run)(ints)?, ints),
    };
    if shows {
        println!("# {}", row.name);
    }
    let value = ratio(&results, &s.device, shows)?;
    let gradients = gradients(&results, s)?;
    Ok([value, ratio(&gradients, &s.device, shows)?])
}

/// Whether a row is asked for, and can be planned.
fn is_planned(name: &str, only: &[&str]) -> bool {
    let elsewhere = ELSEWHERE.iter().any(|list| list.1.split(' ').any(|n| n == name));
    !elsewhere && (only.is_empty() || only.contains(&name))
}

/// For each row and gradient (the name with a prime) its ratio on each preset.
fn measured(only: &[&str]) -> BTreeMap<String, [f64; PRESETS.len()]> {
    let mut all: BTreeMap<String, [f64; PRESETS.len()]> = BTreeMap::new();
    for (place, name) in PRESETS.iter().enumerate() {
        let device = preset(name);
        let operands = [DType::F32, DType::I32].map(|d| Operands::large(d, &device).unwrap());
        for row in matrix::table().into_iter().filter(|row| is_planned(row.name, only)) {
            let found = ratios(&row, &operands, !only.is_empty());
            let found = found.unwrap_or_else(|error| panic!("{} on {name}: {error}", row.name));
            for (suffix, ratio) in ["", "'"].into_iter().zip(found) {
                let Some(ratio) = ratio else { continue };
                all.entry(format!("{}{suffix}", row.name)).or_default()[place] = ratio;
            }
        }
    }
    all
}

/// Highest ratio of predicted to least time at an awkward size, in units of that ratio at the round size near it.
const AWKWARD: f64 = 1.3;

/// For each row and family of sizes how many times further from the least time a preset is at awkward sizes.
fn awkward(preset_name: &str, only: &[&str]) -> BTreeMap<String, f64> {
    let device = preset(preset_name);
    let shows = std::env::var_os("ZYX_ONLY").is_some() && !only.is_empty();
    let operands =
        |sizes| [DType::F32, DType::I32].map(|d| Operands::of_extents(sizes, d, &device).unwrap());
    let further = further();
    let is_long = |name: &str| {
        ALONG.split_whitespace().any(|n| n == name) || further.iter().any(|row| row.name == name)
    };
    let mut all: BTreeMap<String, f64> = BTreeMap::new();
    for (family, round, sizes) in SIZES {
        let (round, sizes) = (operands(round), sizes.map(operands));
        let rows = matrix::table().into_iter().chain(further.iter().copied());
        for row in rows.filter(|row| is_planned(row.name, only)) {
            if family != "matrix" && !is_long(row.name) {
                continue;
            }
            let Ok(expected) = ratios(&row, &round, shows) else { continue };
            for operands in &sizes {
                let Ok(found) = ratios(&row, operands, shows) else { continue };
                for ((suffix, expected), found) in ["", "'"].into_iter().zip(expected).zip(found) {
                    let (Some(expected), Some(found)) = (expected, found) else { continue };
                    let worst = all.entry(format!("{}{suffix} {family}", row.name)).or_default();
                    *worst = worst.max(found / expected.max(1.0));
                }
            }
        }
    }
    all
}

/// Splitting asks for no divisor: plans at primes and beside round sizes are predicted to take what those at round sizes
/// do. `data/sizes.txt` has the exceptions.
#[test]
fn no_size_is_special() {
    let only = std::env::var("ZYX_ONLY").unwrap_or_else(|_| AWKWARD_ROWS.to_owned());
    let only: Vec<&str> = only.split(',').filter(|name| !name.is_empty()).collect();
    let mut all: BTreeMap<String, [f64; PRESETS.len()]> = BTreeMap::new();
    for (place, name) in PRESETS.into_iter().enumerate() {
        for (name, worst) in awkward(name, &only) {
            all.entry(name).or_default()[place] = worst;
        }
    }
    judge(
        "sizes.txt",
        "Times further from the least time at awkward sizes",
        &all,
        (AWKWARD, &only),
    );
}

/// Exceptions: name, ratios, reason.
fn recorded(text: &str) -> BTreeMap<&str, ([f64; PRESETS.len()], &str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let parsed = lines.map(|line| {
        let mut parts = line.split('|').map(str::trim);
        let [name, numbers, reason] = [(); 3].map(|()| parts.next().unwrap());
        let mut ratios = [0.0; PRESETS.len()];
        let numbers = numbers.split_whitespace().map(|number| number.parse().unwrap());
        ratios.iter_mut().zip(numbers).for_each(|(ratio, number)| *ratio = number);
        (name, (ratios, reason))
    });
    parsed.collect()
}

#[test]
fn plans_are_near_what_devices_allow() {
    let only = std::env::var("ZYX_ONLY").unwrap_or_default();
    let only: Vec<&str> = only.split(',').filter(|name| !name.is_empty()).collect();
    judge("floor.txt", "Times the least time", &measured(&only), (MOST, &only));
}

/// Holds numbers to a most, but for the exceptions of a file.
fn judge(
    file: &str,
    what: &str,
    found: &BTreeMap<String, [f64; PRESETS.len()]>,
    (most, only): (f64, &[&str]),
) {
    let path = format!("{}/data/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let known = recorded(&text);
    if std::env::var_os("ZYX_BLESS").is_some() {
        let mut text = format!("# {what} on {}, and why; see floor.rs.\n", PRESETS.join(", "));
        // Rows that this run does not measure stay as they are.
        let kept = known.iter().filter(|(name, _)| !only.is_empty() && !found.contains_key(**name));
        let kept = kept.map(|(name, (ratios, _))| (*name, ratios));
        let exceptions = found.iter().filter(|(_, ratios)| ratios.iter().any(|&r| r > most));
        let exceptions = exceptions.map(|(name, ratios)| (name.as_str(), ratios));
        for (name, ratios) in kept.chain(exceptions).collect::<BTreeMap<_, _>>() {
            let reason = known.get(name).map_or("", |known| known.1);
            let ratios: Vec<String> = ratios.iter().map(|r| format!("{r:.1}")).collect();
            writeln!(text, "{name} | {} | {reason}", ratios.join(" ")).unwrap();
        }
        std::fs::write(path, text).unwrap();
        return;
    }
    let mut faults = String::new();
    for (name, ratios) in found {
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        let known = known.get(name.as_str());
        for (place, &ratio) in ratios.iter().enumerate() {
            let most = known.map_or(most, |known| most.max(SLACK * known.0[place]));
            if ratio > most {
                let preset = PRESETS[place];
                writeln!(faults, "{name} on {preset}: {ratio:.1}, at most {most:.1}").unwrap();
            }
        }
        if known.is_some_and(|known| known.1.is_empty() || worst <= most) {
            writeln!(faults, "{name}: without a reason, or no exception: {ratios:?}").unwrap();
        }
    }
    for name in known.keys().filter(|name| only.is_empty() && !found.contains_key(**name)) {
        writeln!(faults, "{name}: there is no such row").unwrap();
    }
    assert!(faults.is_empty(), "{faults}");
}
