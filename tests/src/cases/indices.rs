//! Indices and class numbers out of range are errors where a result is read, of every method that takes some.
//!
//! Each `Row` is a method of an index of three elements. `Way` is how a program comes by the index and reads: as
//! data, computed, as an argument of a traced function, for each example, realized first and read later. A bad index
//! at any place must be an error each time that what depends on it is read, as must its gradient, and nothing else may
//! become one. Good indices give what they give unchecked. The table is compared with the signatures of the methods,
//! so a method without a row fails.

use crate::Check;
use crate::sources::{public_functions, root};
use zyx_core::{
    CrossEntropy, Ctc, DType, Device, Error, Index, Jit, MultiMargin, Reduction, Result,
    ScatterReduce, Tensor,
};

/// A method of a `[4, 3]` matrix and an index of three elements.
struct Row {
    name: &'static str,
    /// Indices from `low` to below `high` are good.
    low: i64,
    high: i64,
    /// Good although it is not among them.
    except: Option<i64>,
    call: fn(&Tensor, &Tensor) -> Result<Tensor>,
}

fn row(
    name: &'static str,
    (low, high): (i64, i64),
    call: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Row {
    Row { name, low, high, except: None, call }
}

/// A class number that losses ignore.
const IGNORED: i64 = -100;

fn options() -> CrossEntropy {
    CrossEntropy { ignore_index: Some(IGNORED), ..CrossEntropy::default() }
}

fn column(index: &Tensor) -> Result<Tensor> {
    index.reshape([3, 1])
}

fn scores(w: &Tensor) -> Result<Tensor> {
    w.slice(0, ..3)
}

fn source(w: &Tensor) -> Result<Tensor> {
    w.slice(0, ..3)?.slice(1, ..1)
}

fn lengths(of: [i64; 3], device: &Device) -> Result<Tensor> {
    Tensor::new(of, device)
}

/// Three sequences of four steps and three classes.
fn sequences(w: &Tensor) -> Result<Tensor> {
    w.reshape([4, 1, 3])?.expand([4, 3, 3])?.log_softmax(-1)
}

fn rows() -> Vec<Row> {
    let classes = (0, 3);
    let ignoring = |row: Row| Row { except: Some(IGNORED), ..row };
    vec![
        row("gather", (0, 4), |w, i| w.gather(0, &column(i)?)),
        row("index_select", (0, 4), |w, i| w.index_select(0, i)),
        row("embedding", (0, 4), |w, i| w.embedding(i)),
        row("take", (-12, 12), |w, i| w.take(i)),
        row("take_along_dim", (-4, 4), |w, i| w.take_along_dim(&column(i)?, Some(0))),
        row("put", (-12, 12), |w, i| w.put(i, &source(w)?.flatten(), true)),
        row("scatter", (0, 4), |w, i| w.scatter(0, &column(i)?, &source(w)?)),
        row("scatter_add", (0, 4), |w, i| w.scatter_add(0, &column(i)?, &source(w)?)),
        row("scatter_reduce", (0, 4), |w, i| {
            w.scatter_reduce(0, &column(i)?, &source(w)?, ScatterReduce::Amax, true)
        }),
        row("index_add", (0, 4), |w, i| w.index_add(0, i, &scores(w)?, 2.0)),
        row("index_copy", (0, 4), |w, i| w.index_copy(0, i, &scores(w)?)),
        row("index_fill", (0, 4), |w, i| w.index_fill(0, i, 7.0)),
        row("index", (-4, 4), |w, i| w.index(&[Index::Tensor(i.clone())])),
        row("index_put", (-4, 4), |w, i| {
            w.index_put(&[Index::Tensor(i.clone())], &scores(w)?, false)
        }),
        row("index_put", (-4, 4), |w, i| {
            w.index_put(&[Index::Tensor(i.clone())], &scores(w)?, true)
        }),
        row("max_unpool1d", (0, 4), |w, i| {
            source(w)?.reshape([1, 3])?.max_unpool1d(&i.reshape([1, 3])?, [4])
        }),
        row("max_unpool2d", (0, 6), |w, i| {
            source(w)?.reshape([1, 1, 3])?.max_unpool2d(&i.reshape([1, 1, 3])?, [2, 3])
        }),
        row("max_unpool3d", (0, 6), |w, i| {
            source(w)?.reshape([1, 1, 1, 3])?.max_unpool3d(&i.reshape([1, 1, 1, 3])?, [1, 2, 3])
        }),
        row("one_hot", (0, 4), |w, i| i.one_hot(4)?.cast(w.dtype()).matmul(w)),
        row("cross_entropy", classes, |w, i| scores(w)?.cross_entropy(i)),
        ignoring(row("cross_entropy_with", classes, |w, i| {
            scores(w)?.cross_entropy_with(i, CrossEntropy { label_smoothing: 0.1, ..options() })
        })),
        ignoring(row("nll_loss", classes, |w, i| scores(w)?.nll_loss(i, options()))),
        ignoring(row("nll_loss_weighted", classes, |w, i| {
            scores(w)?.nll_loss_weighted(i, &w.select_index(0, 0)?, options())
        })),
        ignoring(row("cross_entropy_weighted", classes, |w, i| {
            scores(w)?.cross_entropy_weighted(i, Some(&w.select_index(0, 0)?), options())
        })),
        row("multi_margin_loss", classes, |w, i| {
            scores(w)?.multi_margin_loss(i, MultiMargin::default())
        }),
        row("multilabel_margin_loss", (i64::MIN, 3), |w, i| {
            w.select_index(0, 0)?.multilabel_margin_loss(i, Reduction::Mean)
        }),
        row("ctc_loss", classes, |w, i| {
            let targets = i.reshape([3, 1])?;
            let (four, one) = (lengths([4; 3], w.device())?, lengths([1; 3], w.device())?);
            sequences(w)?.ctc_loss(&targets, &four, &one, Ctc::default())
        }),
        row("ctc_loss", (0, 5), |w, i| {
            let targets = lengths([1, 2, 1], w.device())?.reshape([3, 1])?;
            sequences(w)?.ctc_loss(&targets, i, &lengths([1; 3], w.device())?, Ctc::default())
        }),
        row("ctc_loss", (0, 2), |w, i| {
            let targets = lengths([1, 2, 1], w.device())?.reshape([3, 1])?;
            sequences(w)?.ctc_loss(&targets, &lengths([4; 3], w.device())?, i, Ctc::default())
        }),
    ]
}

/// Methods with parameters named like indices that are none.
const NO_INDICES: &[&str] = &[
    // Targets are numbers, classes by all or none, or directions.
    "bce_loss",
    "bce_with_logits_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "kl_div_loss",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multilabel_soft_margin_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
];

/// Names of parameters that are indices.
const NAMES: &[&str] = &[
    "index: &Tensor",
    "indices: &Tensor",
    "target: &Tensor",
    "targets: &Tensor",
    "parts: &[Index]",
];

/// Public methods that take indices by their signatures.
fn methods() -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("zyx-core/src/tensor")).expect("sources") {
        let text = std::fs::read_to_string(entry.expect("a file").path()).unwrap_or_default();
        for name in public_functions(&text) {
            let start = text.find(&format!("pub fn {name}(")).unwrap_or(text.len());
            let signature = text[start..].split('{').next().unwrap_or("");
            if NAMES.iter().any(|parameter| signature.contains(parameter)) {
                found.push(name);
            }
        }
    }
    found
}

/// How a program comes by an index, and how it reads what depends on it.
type Way = (&'static str, fn(&Row, &Tensor, &[i64; 3]) -> Result<()>);

fn data(w: &Tensor, index: &[i64; 3]) -> Result<Tensor> {
    Tensor::new(*index, w.device())
}

/// An index of which nothing is known before it is computed.
fn computed(w: &Tensor, index: &[i64; 3]) -> Result<Tensor> {
    let key = Tensor::new([5i64, 1, 9], w.device())?;
    data(w, index)?.bitwise_xor(&key)?.bitwise_xor(&key)
}

/// A read, which must fail again if it does.
fn read(y: &Tensor) -> Result<()> {
    let first = y.to_bytes();
    assert_eq!(first.is_err(), y.to_bytes().is_err(), "reading twice");
    first.map(drop)
}

const WAYS: &[Way] = &[
    ("data", |row, w, index| read(&(row.call)(w, &data(w, index)?)?)),
    ("computed", |row, w, index| read(&(row.call)(w, &computed(w, index)?)?)),
    ("realized, then read", |row, w, index| {
        let y = (row.call)(w, &computed(w, index)?)?;
        y.realize()?;
        let later = y.exp();
        later.realize()?;
        drop(y);
        read(&later)
    }),
    ("read asynchronously", |row, w, index| {
        (row.call)(w, &computed(w, index)?)?.read_async::<f32>()?.wait().map(drop)
    }),
    ("gradient", |row, w, index| {
        let w = w.tracked();
        let y = (row.call)(&w, &computed(&w, index)?)?;
        let dw = y.square().sum(..)?.grad(&[&w])?.remove(0);
        dw.map_or_else(|| read(&y), |dw| read(&dw))
    }),
    ("traced", |row, w, index| {
        let call = Jit::new(|x: &[Tensor]| Ok(vec![(row.call)(&x[0], &x[1])?]));
        call.call(&[w, &data(w, &[0; 3])?])?;
        read(&call.call(&[w, &data(w, index)?])?[0])
    }),
    ("traced, computed inside", |row, w, index| {
        let call = Jit::new(|x: &[Tensor]| {
            let i = x[1].bitwise_xor(&x[2])?;
            Ok(vec![(row.call)(&x[0], &i)?, x[0].exp()])
        });
        let key = Tensor::new([5i64, 1, 9], w.device())?;
        let y = call.call(&[w, &data(w, index)?.bitwise_xor(&key)?, &key])?;
        y[1].to_bytes()?;
        read(&y[0])
    }),
    ("each example", |row, w, index| {
        let all = Tensor::new([*index, [0; 3]], w.device())?;
        read(&Tensor::vmap(|i| (row.call)(w, &i[0]), &[&all], &[Some(0)], 0)?)
    }),
];

/// All rows, in all ways, with bad indices at all places.
pub fn all(device: &Device) {
    let mut check = Check::new(device);
    let rows = rows();
    for name in methods() {
        let known = rows.iter().any(|row| row.name == name) || NO_INDICES.contains(&&*name);
        check.that(known, format_args!("{name} has no row"));
    }
    let values: Vec<f32> = (0..12).map(|i| i as f32 * 0.37 - 1.5).collect();
    let w = Tensor::from_slice(&values, [4, 3], device).expect("memory");
    let other = computed(&w, &[1, 2, 0]).expect("memory");
    let unrelated = w.index_select(0, &other).expect("a row").square();
    for row in &rows {
        for (way, run) in WAYS {
            let good = [row.low.max(0), row.high - 1, row.except.unwrap_or(row.high / 2)];
            if let Err(error) = run(row, &w, &good) {
                check.fail(format_args!("{} {way}: {error}", row.name));
            }
            let below = if row.low == i64::MIN { row.high + 7 } else { row.low - 1 };
            let least = if row.low == i64::MIN { i64::MAX } else { i64::MIN };
            for (place, bad) in [row.high, below, 1 << 40, least].into_iter().enumerate() {
                let mut index = good;
                index[place % 3] = bad;
                match run(row, &w, &index) {
                    Err(Error::Index { op, reason, place }) => {
                        let op = if op == "index" { "index_put" } else { op };
                        let fits = row.name.starts_with(op) || row.name == "index";
                        let shown =
                            bad.unsigned_abs() > 1 << 41 || reason.contains(&bad.to_string());
                        let fits = fits && shown && place.contains("indices.rs");
                        check.that(
                            fits,
                            format_args!("{} {way} of {bad}: {op}: {reason} at {place}", row.name),
                        );
                    }
                    Err(error) => check.fail(format_args!("{} {way} of {bad}: {error}", row.name)),
                    Ok(()) => check.fail(format_args!("{} {way} of {bad} passes", row.name)),
                }
            }
        }
        check.that(w.exp().to_bytes().is_ok(), format_args!("{}: what is unrelated", row.name));
    }
    check.that(unrelated.to_bytes().is_ok(), "what is computed by good indices");
    check.finish();
}

/// Indices that the library makes, and those of which data, constants or operations tell that they are in range, cost
/// no launch.
pub fn known(device: &Device) {
    let run = || -> Result<()> {
        let w = Tensor::from_slice(&[0.5f32; 12], [4, 3], device)?;
        let i = Tensor::new([3i64, 0, 2], device)?;
        let float = Tensor::new([0.5f32, 9.0, -3.0], device)?;
        // Made anew for each use: an index that was computed once may be kept.
        let known = || -> Result<Vec<(&str, Tensor)>> {
            Ok(vec![
                ("data", i.clone()),
                ("a part of data", i.slice(0, 1..)?),
                ("arithmetic", i.add(7)?.remainder(4)?),
                ("a clamp", i.mul(1 << 20)?.clamp(0, 3)?),
                ("a clamp of floats", float.mul(&float)?.clamp(0.0, 3.0)?.floor().cast(DType::I64)),
                ("positions", w.argmax(0)?),
                ("an order", w.t().argsort(1, false)?.flatten()),
                ("largest", w.topk(2, 0, true)?.1.flatten()),
                ("a choice", i.lt(2)?.where_(&i, 1i64)?),
                ("a product", Tensor::iota(2, DType::I64, device).mul(2)?.add(1)?),
            ])
        };
        let launches = |number: usize, checks: bool| -> Result<u64> {
            let index = known()?.swap_remove(number).1;
            let index = if checks { index } else { index.unchecked_indices() };
            let y = w.index_select(0, &index)?;
            let before = device.stats().launches;
            y.realize()?;
            let launches = device.stats().launches - before;
            y.to_bytes()?;
            Ok(launches)
        };
        for (number, (what, _)) in known()?.iter().enumerate() {
            // Other tests launch on the device meanwhile: the fewest of several times are the computation's own.
            let (mut checked, mut unchecked) = (u64::MAX, u64::MAX);
            for round in 0..200 {
                checked = checked.min(launches(number, true)?);
                unchecked = unchecked.min(launches(number, false)?);
                if round >= 4 && checked == unchecked {
                    break;
                }
            }
            assert_eq!(checked, unchecked, "{what}");
        }
        let realized = w.argmax(0)?;
        realized.realize()?;
        w.index_select(0, &realized)?.to_bytes()?;
        Ok(())
    };
    run().expect("indices are in range");
}
