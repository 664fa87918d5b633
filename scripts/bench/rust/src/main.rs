//! Times one workload in candle or burn and prints a JSON line, as `peer.py` does.
//!
//!     rust-peers PEER WORKLOAD FOLDER
//!
//! FOLDER holds the inputs as `workloads.py` saves them. Timing follows `bench/src/measure.rs`:
//! warm-up, then samples of at least 5 ms until there are twenty; the median is reported. A workload
//! that a peer does not have prints nothing.

#[cfg(feature = "burn")]
mod burn;
#[cfg(feature = "candle")]
mod candle;

use std::error::Error;
use std::fs;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;
/// Computes once and gives the result where it is asked for.
type Call = Box<dyn FnMut(bool) -> Result<Vec<f32>>>;

/// An input: its shape and its elements.
struct Array(Vec<usize>, Vec<f32>);

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [peer, workload, folder] = &args[..] else {
        return Err("usage: rust-peers candle|burn WORKLOAD FOLDER".into());
    };
    let inputs = inputs(folder, workload)?;
    let call = match peer.as_str() {
        #[cfg(feature = "candle")]
        "candle" => candle::workload(workload, &inputs)?,
        #[cfg(feature = "burn")]
        "burn" => burn::workload(workload, &inputs)?,
        _ => return Err(format!("built without {peer}").into()),
    };
    let Some(mut call) = call else { return Ok(()) };
    let check = checksum(&call(true)?);
    let seconds = median(&mut call)?;
    println!(
        "{{\"peer\":\"{peer}\",\"workload\":\"{workload}\",\"seconds\":{seconds:e},\"checksum\":{check}}}"
    );
    Ok(())
}

fn inputs(folder: &str, workload: &str) -> Result<Vec<Array>> {
    let mut list = Vec::new();
    while let Ok(bytes) = fs::read(format!("{folder}/{workload}.in{}.npy", list.len())) {
        list.push(array(&bytes)?);
    }
    Ok(list)
}

/// A little-endian `f32` array of NumPy's format, version 1.
fn array(bytes: &[u8]) -> Result<Array> {
    let begin = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..begin])?;
    let shape = header.split(['(', ')']).nth(1).filter(|_| header.contains("'<f4'"));
    let extents =
        shape.ok_or("no array of f32")?.split(',').map(str::trim).filter(|n| !n.is_empty());
    let shape = extents.map(str::parse).collect::<std::result::Result<_, _>>()?;
    let (elements, _) = bytes[begin..].as_chunks::<4>();
    Ok(Array(shape, elements.iter().map(|&x| f32::from_le_bytes(x)).collect()))
}

/// As `checksum` of `peer.py`.
fn checksum(y: &[f32]) -> f64 {
    let weighed = y.iter().enumerate().map(|(i, &x)| f64::from(x.abs()) * (i % 97 + 1) as f64);
    weighed.sum::<f64>() / 97.0 / y.len() as f64
}

fn median(call: &mut Call) -> Result<f64> {
    let start = Instant::now();
    let mut calls = 0;
    while calls < 3 || start.elapsed().as_secs_f64() < 0.2 && calls < 1000 {
        call(false)?;
        calls += 1;
    }
    let one = start.elapsed().as_secs_f64() / f64::from(calls);
    let inner = (0.005 / one).ceil().max(1.0);
    let (mut samples, start) = (Vec::new(), Instant::now());
    while samples.len() < 20 || start.elapsed().as_secs_f64() < 0.5 {
        if samples.len() >= 3 && start.elapsed().as_secs_f64() > 12.0 {
            break;
        }
        let begin = Instant::now();
        for _ in 0..inner as usize {
            call(false)?;
        }
        samples.push(begin.elapsed().as_secs_f64() / inner);
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[samples.len() / 2])
}
