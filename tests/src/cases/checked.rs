//! Checked mode: what is refused, by name, position, value and line, and what is let pass.
//!
//! Run on a device that nobody else uses: all that is computed there is checked.
#![allow(clippy::unwrap_used, reason = "a failing call is a failing test")]

use zyx_core::{CrossEntropy, Ctc, DType, Device, Result, Rng, Tensor};
use zyx_nn::{Embedding, Forward, Init};

/// What a call gives, and the line of the call.
type Row = (u32, Result<Tensor>, &'static str);

/// A row of a call, with what the error about it starts with.
macro_rules! row {
    ($call:expr, $start:expr) => {
        (line!(), $call, $start)
    };
}

fn refused(device: &Device, rows: Vec<Row>) {
    for (line, result, start) in rows {
        // Something else is computed from it, so that the guilty one is found and not the last.
        let error = result.and_then(|y| y.cast(DType::F32).sum(..)?.realize());
        let error = match error {
            Ok(()) => panic!("{device}: not refused: {start}"),
            Err(error) => error.to_string(),
        };
        assert!(error.starts_with(start), "{device}: `{error}` does not start with `{start}`");
        // A row may be written on several lines.
        let places = (line..line + 3).map(|line| format!(", at {}:{line}:", file!()));
        let named = places.filter(|place| error.contains(place)).count() == 1;
        assert!(named && error.contains(", computed at "), "{device}: `{error}` is of line {line}");
    }
}

/// Indices and class numbers out of range, of every method that takes some.
fn indices(device: &Device) -> Result<Vec<Row>> {
    let x = Tensor::new([[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]], device)?;
    let index = |i: &[i64]| Tensor::from_slice(i, [i.len()], device);
    let rows = |i: [i64; 2]| Tensor::new([[i[0]], [i[1]]], device);
    let (ones, src) =
        (Tensor::ones([2], DType::F32, device), Tensor::ones([2, 1], DType::F32, device));
    let (far, below) = (index(&[0, 2])?, index(&[-1, 0])?);
    let wide = Tensor::ones([2, 3], DType::F32, device);
    let classes = index(&[0, 3])?;
    let weight = Tensor::ones([3], DType::F32, device);
    let options = CrossEntropy { ignore_index: Some(-100), ..CrossEntropy::default() };
    Ok(vec![
        row!(x.gather(1, &rows([0, 3])?), "gather: the index is 3 at [1, 0], out of range 0 to 2"),
        row!(
            x.gather(1, &rows([-1, 3])?),
            "gather: the index is -1 at [0, 0], out of range 0 to 2"
        ),
        row!(x.index_select(0, &far), "index_select: the index is 2 at [1], out of range 0 to 1"),
        row!(x.index_select(0, &below), "index_select: the index is -1 at [0]"),
        row!(
            x.embedding(&index(&[1, 99])?),
            "embedding: the index is 99 at [1], out of range 0 to 1"
        ),
        row!(x.take(&index(&[-6, 6])?), "take: the index is 6 at [1], out of range -6 to 5"),
        row!(
            x.take_along_dim(&rows([-4, 2])?, Some(1)),
            "take_along_dim: the index is -4 at [0, 0]"
        ),
        row!(x.put(&index(&[1, 7])?, &ones, true), "put: the index is 7 at [1]"),
        row!(x.scatter(1, &rows([1, 3])?, &src), "scatter: the index is 3 at [1, 0]"),
        row!(x.scatter_add(1, &rows([3, 1])?, &src), "scatter_add: the index is 3 at [0, 0]"),
        row!(x.index_add(0, &far, &wide, 1.0), "index_add: the index is 2 at [1]"),
        row!(x.index_copy(0, &far, &wide), "index_copy: the index is 2 at [1]"),
        row!(x.index_fill(0, &far, 0.0), "index_fill: the index is 2 at [1]"),
        row!(far.one_hot(2), "one_hot: the index is 2 at [1], out of range 0 to 1"),
        row!(
            x.cross_entropy(&classes),
            "cross_entropy: the index is 3 at [1], out of range 0 to 2"
        ),
        row!(x.nll_loss(&below, options), "nll_loss: the index is -1 at [0], out of range 0 to 2"),
        row!(
            x.nll_loss_weighted(&classes, &weight, options),
            "nll_loss_weighted: the index is 3 at [1]"
        ),
        row!(far.bincount_to(2), "bincount_to: the index is 2 at [1], out of range 0 to 1"),
        row!(below.bincount_to(2), "bincount_to: the index is -1 at [0], out of range 0 to 1"),
        row!(ctc(device, [1, 3], 2, 2), "ctc_loss: the index is 3 at [0, 1], out of range 0 to 2"),
        row!(
            ctc(device, [-1, 3], 2, 1),
            "ctc_loss: the index is -1 at [0, 0], out of range 0 to 2"
        ),
        row!(ctc(device, [1, 2], 2, 3), "ctc_loss: the index is 3 at [0], out of range 0 to 2"),
        row!(ctc(device, [1, 2], 4, 2), "ctc_loss: the index is 4 at [0], out of range 0 to 3"),
        // Of layers, and for each example.
        row!(
            Embedding::new(4, 2, &mut Init::new(0, device))?.forward(&index(&[3, 4])?),
            "embedding: the index is 4 at [1], out of range 0 to 3"
        ),
        row!(
            Tensor::vmap(|i| x.index_select(0, &i[0]), &[&rows([0, 2])?], &[Some(0)], 0),
            "index_select: the index is 2 at [1, 0], out of range 0 to 1"
        ),
        // Of other dtypes, and where the index is computed.
        row!(x.embedding(&index(&[3, 200])?.cast(DType::U8)), "embedding: the index is 3 at [0]"),
        row!(x.embedding(&far.mul(5i64)?), "embedding: the index is 10 at [1]"),
    ])
}

/// CTC loss of three steps and classes against so many labels of a target.
#[track_caller]
fn ctc(device: &Device, target: [i64; 2], steps: i64, length: i64) -> Result<Tensor> {
    let x = Tensor::full([3, 1, 3], -1.0986f32, device);
    let [steps, length] = [steps, length].map(|n| Tensor::new([n], device));
    x.ctc_loss(&Tensor::new([target], device)?, &steps?, &length?, Ctc::default())
}

/// Results that are not finite, of finite operands.
fn values(device: &Device) -> Result<Vec<Row>> {
    let x = Tensor::new([[1f32, 0.0], [4.0, -1.0]], device)?;
    let big = Tensor::full([2, 2], 3e38f32, device);
    let zeros = Tensor::zeros([2, 2], DType::F32, device);
    let p = Tensor::new([4f32, 0.0], device)?.tracked();
    let small = p.sqrt();
    let data = Tensor::new([3e38f32, 3e38], device)?;
    Ok(vec![
        row!(Ok(x.log()), "log: the result is -inf at [0, 1], where the operand is 0"),
        row!(Ok(x.sqrt()), "sqrt: the result is NaN at [1, 1], where the operand is -1"),
        row!(x.div(&zeros), "div: the result is inf at [0, 0], where the operands are 1.0 and 0.0"),
        row!(x.mul(100.0)?.exp().neg().add(1.0), "exp: the result is inf at [0, 0]"),
        row!(big.sum(0), "sum: the result is inf at [0, 0], of finite operands"),
        row!(data.sum(..), "sum: the result is inf at [0], of finite operands"),
        row!(big.add(x.abs()).and_then(|y| y.mul(&y)), "mul: the result is inf at [0, 0]"),
        row!(Ok(big.cast(DType::F16)), "cast: the result is inf at [0, 0], where the operand is"),
        row!(
            big.matmul(&x.abs()),
            "mul: the result is inf at [0, 0, 1], where the operands are 3e38"
        ),
        row!(x.t().contiguous().log().flip(0), "log: the result is -inf at [1, 0]"),
        row!(x.gt(2.0)?.where_(x.log(), x.recip()), "recip: the result is inf at [0, 1]"),
        row!(Ok(small.grad(&[&p])?.remove(0).unwrap()), "div: the result is inf at [1]"),
        row!(x.div(&zeros)?.gt(3.0), "div: the result is inf at [0, 0]"),
    ])
}

/// What is not finite on purpose, or was so before.
fn let_pass(device: &Device) -> Result<()> {
    let inf = f32::INFINITY;
    let read = |y: Tensor| y.to_vec::<f32>();
    let x = Tensor::new([[1f32, 0.0], [4.0, -1.0]], device)?;
    let masked = x.gt(0.0)?.where_(&x, -inf)?;
    assert_eq!(read(masked.softmax(1)?.select_index(1, 0)?)?, [1.0, 1.0]);
    assert_eq!(read(masked.max(1)?)?, [1.0, 4.0]);
    assert_eq!(read(masked.sum(..)?)?, [-inf]);
    let guarded = x.gt(0.0)?.where_(x.log(), 0.0)?;
    assert_eq!(read(guarded)?[1], 0.0);
    let data = Tensor::new([f32::NAN, inf, 1.0], device)?;
    assert_eq!(read(data.add(1.0)?)?[2], 2.0);
    assert_eq!(read(data.exp().log())?[1], inf);
    // Indices from the end, classes that are ignored.
    assert_eq!(read(x.take(&Tensor::new([-1i64, 0], device)?)?)?, [-1.0, 1.0]);
    let options = CrossEntropy { ignore_index: Some(-100), ..CrossEntropy::default() };
    let target = Tensor::new([1i64, -100], device)?;
    assert!(read(x.cross_entropy_with(&target, options)?)?[0].is_finite());
    // What pads a target, and what is in no bin of a histogram.
    let loss = read(ctc(device, [1, 99], 3, 1)?)?[0];
    let alone = read(ctc(device, [1, 0], 3, 1)?)?[0];
    assert!(loss.is_finite() && (loss - alone).abs() < 1e-6, "{loss} and {alone}");
    assert_eq!(read(x.histc(2, 0.0, 2.0)?)?, [1.0, 1.0]);
    // Values that are only tested for infinity and NaN, also behind copies, `abs` and `neg`, or replaced by a test.
    let zeros = Tensor::zeros([2, 2], DType::F32, device);
    let (infinite, none) = (x.abs().add(1.0)?.div(&zeros)?, zeros.div(&zeros)?);
    let bools = |y: Tensor| y.to_vec::<bool>();
    assert_eq!(bools(infinite.t().contiguous().is_inf())?, [true; 4]);
    assert_eq!(bools(none.is_nan())?, [true; 4]);
    assert_eq!(bools(infinite.neg().abs().lt(inf)?)?, [false; 4]);
    assert_eq!(read(none.nan_to_num(7.0, None, None))?, [7.0; 4]);
    assert_eq!(read(infinite.nan_to_num(0.0, Some(5.0), None))?, [5.0; 4]);
    assert_eq!(read(none.is_nan().where_(1.0, &none)?)?, [1.0; 4]);
    // Nothing at all.
    assert!(read(x.narrow(0, 0, 0)?.log())?.is_empty());
    Ok(())
}

/// A training step, with random numbers and a contraction whose products would be large.
fn step(device: &Device) -> Result<Vec<f32>> {
    let rng = &mut Rng::seed(3);
    let x = Tensor::randn([8, 16], DType::F32, rng, device)?;
    let w = Tensor::randn([16, 4], DType::F32, rng, device)?.tracked();
    let target = Tensor::new([0i64, 1, 2, 3, 0, 1, 2, 3], device)?;
    let y = x.matmul(&w)?.dropout(0.25, rng)?.layer_norm(-1, None, None, 1e-5)?.gelu();
    let loss = y.cross_entropy(&target)?;
    let dw = loss.grad(&[&w])?.remove(0).unwrap();
    let next = w.detach().sub(dw.mul(0.1)?)?;
    Tensor::realize_all([&loss, &next])?;
    Ok([loss.to_vec::<f32>()?, next.to_vec::<f32>()?].concat())
}

/// The plan that runs is the one without checked mode: a chain of values takes their memory.
fn same_plan(device: &Device) -> Result<()> {
    let run = || -> Result<(Vec<f32>, u64)> {
        let x = Tensor::from_slice(&[0.5f32; 60], [6, 10], device)?;
        let mut s = Tensor::from_slice(&[1f32; 60], [6, 10], device)?;
        let before = device.stats().donations;
        for _ in 0..4 {
            s = s.mul(0.5)?.add(x.matmul(&x.t())?.sum(..)?.mul(1e-3)?)?;
            s.realize()?;
        }
        Ok((s.to_vec::<f32>()?, device.stats().donations - before))
    };
    let checked = run()?;
    device.set_checked(false);
    let plain = run()?;
    device.set_checked(true);
    assert_eq!(checked, plain, "{device}");
    assert!(plain.1 > 0, "{device}: no value takes the memory of the one before");
    Ok(())
}

/// All of it.
pub fn all(device: &Device) {
    let plain = step(device).unwrap();
    assert!(!device.is_checked());
    device.set_checked(true);
    refused(device, indices(device).unwrap());
    refused(device, values(device).unwrap());
    let_pass(device).unwrap();
    for (checked, plain) in step(device).unwrap().iter().zip(&plain) {
        assert!((checked - plain).abs() <= 1e-5 * (1.0 + plain.abs()), "{checked} {plain}");
    }
    same_plan(device).unwrap();
    // Refused values can be asked for again, and had once nobody looks.
    let x = Tensor::new([1f32, 0.0], device).unwrap();
    let y = x.log();
    assert!(y.realize().is_err() && y.realize().is_err() && !y.is_realized());
    device.set_checked(false);
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.0, f32::NEG_INFINITY]);
    let far = Tensor::new([9i64], device).unwrap();
    let picked = x.index_select(0, &far.unchecked_indices()).unwrap();
    assert_eq!(picked.to_vec::<f32>().unwrap(), [0.0]);
}
