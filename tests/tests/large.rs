//! More than 2^32 elements in memory: sums, elementwise, views, places at the far end. They take 11 GiB and a minute, so they
//! are run with `ZYX_FULL=1`, where there is so much memory.
//!
//! What needs no memory, indices beyond 32 bits into what is computed or expanded, is in every backend's
//! conformance suite (`cases/large.rs`).

mod common;

use common::device;
use std::io::Write;
use zyx_tests::check::full;
use zyx_tests::zyx_core::{DType, Result, Tensor};

/// Elements: not a multiple of anything, and five times what 30 bits count.
const N: usize = (5 << 30) + 3;

/// Element `i`.
fn element(i: usize) -> u8 {
    ((7 * i as u64 + 3) % 251) as u8
}

/// The sum of all elements, of which each run of 251 has every value once.
fn total() -> u64 {
    let rest: u64 = (N - N % 251..N).map(|i| u64::from(element(i))).sum();
    (N / 251) as u64 * (250 * 251 / 2) + rest
}

/// Places around what 31, 32 and more bits count, and the last.
const PLACES: [usize; 6] = [0, (1 << 31) - 1, 1 << 32, (1 << 32) + 1, 5 << 30, N - 1];

/// Whether the system says that so many bytes are free; one that says nothing has them.
fn has_memory(bytes: u64) -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.is_none_or(|kib| kib >= bytes >> 10)
}

#[test]
fn five_times_2_to_the_30_bytes() -> Result<()> {
    if !full() || !has_memory(12 << 30) {
        // Written directly: the runner captures `eprintln!` of tests that pass.
        let reason = "it takes 12 GiB of memory and ZYX_FULL=1";
        let _ = writeln!(std::io::stderr(), "skipped five_times_2_to_the_30_bytes: {reason}");
        return Ok(());
    }
    let device = device();
    let at: Vec<i64> = PLACES.iter().map(|&i| i as i64).collect();
    let at = Tensor::from_slice(&at, [at.len()], &device)?;
    let want: Vec<u8> = PLACES.iter().map(|&i| element(i)).collect();
    let all = Tensor::arange(0i64, N as i64, 1, &device)?;
    let x = all.mul(7)?.add(3)?.remainder(251)?.cast(DType::U8);
    x.realize()?;
    assert_eq!(device.stats().live_bytes / N as u64, 1);
    // Reductions: all, long rows, a count, a position.
    assert_eq!(x.sum(..)?.item::<u64>()?, total());
    let rows = x.slice(0, ..5 << 30)?.reshape([5, 1 << 30])?.sum(1)?.to_vec::<u64>()?;
    let last: u64 = (5 << 30..N).map(|i| u64::from(element(i))).sum();
    assert_eq!(rows.iter().sum::<u64>() + last, total());
    let large = x.ge(250)?.sum(..)?.item::<i64>()?;
    assert_eq!(large as usize, N / 251 + (N - N % 251..N).filter(|&i| element(i) == 250).count());
    assert_eq!(all.eq((1i64 << 32) + 5)?.argmax(0)?.item::<i64>()?, (1 << 32) + 5);
    // Views and places.
    assert_eq!(x.index_select(0, &at)?.to_vec::<u8>()?, want);
    assert_eq!(x.gather(0, &at)?.to_vec::<u8>()?, want);
    for &i in &PLACES[1..] {
        assert_eq!(x.slice(0, i..)?.slice(0, ..1)?.item::<u8>()?, element(i));
        assert_eq!(x.flip(0)?.slice(0, N - 1 - i..N - i)?.item::<u8>()?, element(i));
    }
    let strided = x.stride(0, 1, 1 << 30)?.to_vec::<u8>()?;
    assert_eq!(strided, (0..6).map(|i| element(1 + (i << 30))).collect::<Vec<_>>());
    // Elementwise, into memory, with a view of itself.
    let y = x.bitwise_xor(255)?;
    y.realize()?;
    assert_eq!(y.sum(..)?.item::<u64>()?, 255 * N as u64 - total());
    assert_eq!(
        y.index_select(0, &at)?.to_vec::<u8>()?,
        want.iter().map(|x| 255 - x).collect::<Vec<_>>()
    );
    drop(y);
    // Written to: one place beyond 32 bits, the rest as it was.
    let place = Tensor::from_slice(&[(1i64 << 32) + 1], [1], &device)?;
    let z = x.scatter(0, &place, &Tensor::from_slice(&[255u8], [1], &device)?)?;
    z.realize()?;
    let old = u64::from(element((1 << 32) + 1));
    assert_eq!(z.sum(..)?.item::<u64>()?, total() + 255 - old);
    assert_eq!(z.argmax(0)?.item::<i64>()?, (1 << 32) + 1);
    Ok(())
}
