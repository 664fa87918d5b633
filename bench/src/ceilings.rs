//! What the machine itself can do, by loops that do nothing else: the ceilings of the workloads.
//!
//! Every thread of the machine works on its own part. Arrays are 64 MiB, as those of the workloads,
//! in large pages where the system has them; results are written past the caches where the
//! processor has such stores.

use crate::Workload;
use crate::inputs::Inputs;
use crate::measure::{Report, Unit, calls};
use crate::ops::M16;
use std::hint::black_box;
use std::thread::{available_parallelism, scope};
use zyx::Result;

pub(crate) fn workloads() -> Vec<(&'static str, Workload)> {
    vec![
        ("ceiling_fma", fma),
        ("ceiling_read", read),
        ("ceiling_copy", copy),
        ("ceiling_chain", chain),
    ]
}

fn threads() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Fused multiply-adds of `f32` on registers, two operations each.
fn fma(_: &mut Inputs) -> Result<Report> {
    const ROUNDS: usize = 2_000_000;
    let (lanes, run) = multiply_adds();
    let operations = 2 * lanes * ROUNDS * threads();
    calls(Unit::Gflops(operations as f64), || {
        scope(|scope| (0..threads()).for_each(|_| drop(scope.spawn(|| run(ROUNDS)))));
        Ok(())
    })
}

/// How many multiply-adds a round of the function does, and the function.
#[cfg(target_arch = "x86_64")]
fn multiply_adds() -> (usize, fn(usize)) {
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    fn wide(rounds: usize) {
        // Different numbers, or the compiler would compute one sum for all.
        let mut sums: [_; 16] = std::array::from_fn(|i| _mm512_set1_ps(black_box(i as f32)));
        let (x, y) = (_mm512_set1_ps(black_box(0.999_999)), _mm512_set1_ps(black_box(1e-6)));
        for _ in 0..rounds {
            sums.iter_mut().for_each(|sum| *sum = _mm512_fmadd_ps(*sum, x, y));
        }
        black_box(sums);
    }

    #[target_feature(enable = "avx2,fma")]
    fn narrow(rounds: usize) {
        // Different numbers, or the compiler would compute one sum for all.
        let mut sums: [_; 12] = std::array::from_fn(|i| _mm256_set1_ps(black_box(i as f32)));
        let (x, y) = (_mm256_set1_ps(black_box(0.999_999)), _mm256_set1_ps(black_box(1e-6)));
        for _ in 0..rounds {
            sums.iter_mut().for_each(|sum| *sum = _mm256_fmadd_ps(*sum, x, y));
        }
        black_box(sums);
    }

    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has AVX-512.
        (16 * 16, |rounds| unsafe { wide(rounds) })
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has AVX2 and fused multiply-adds.
        (12 * 8, |rounds| unsafe { narrow(rounds) })
    } else {
        plain_multiply_adds()
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn multiply_adds() -> (usize, fn(usize)) {
    plain_multiply_adds()
}

fn plain_multiply_adds() -> (usize, fn(usize)) {
    let run = |rounds| {
        let mut sums: [f32; 64] = std::array::from_fn(|i| black_box(i as f32));
        let (x, y) = black_box((0.999_999, 1e-6));
        for _ in 0..rounds {
            sums.iter_mut().for_each(|sum| *sum = *sum * x + y);
        }
        black_box(sums);
    };
    (64, run)
}

/// Each thread's part of the element numbers of an array.
fn parts() -> usize {
    M16.div_ceil(threads()).next_multiple_of(16)
}

/// `M16` equal numbers.
fn array(value: f32) -> Vec<f32> {
    let mut array = Vec::with_capacity(M16);
    ask_for_large_pages(array.spare_capacity_mut());
    array.resize(M16, value);
    array
}

/// Without them the loops run, too, but translating addresses costs up to a third.
#[cfg(target_os = "linux")]
fn ask_for_large_pages<T>(memory: &mut [T]) {
    const PAGE: usize = 4096;
    let begin = memory.as_mut_ptr().addr().next_multiple_of(PAGE);
    let end = memory.as_mut_ptr_range().end.addr() / PAGE * PAGE;
    if begin < end {
        let begin = memory.as_mut_ptr().with_addr(begin).cast();
        // SAFETY: the range lies within `memory`; the advice changes no contents.
        unsafe { libc::madvise(begin, end - begin.addr(), libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages<T>(_: &mut [T]) {}

fn read(_: &mut Inputs) -> Result<Report> {
    let x = array(1.0);
    calls(Unit::GBs(4.0 * M16 as f64), || {
        scope(|scope| {
            for part in x.chunks(parts()) {
                scope.spawn(|| black_box(sum(part)));
            }
        });
        Ok(())
    })
}

/// From four places at once in 64 sums, so that neither memory nor additions wait for one another.
fn sum(x: &[f32]) -> f32 {
    let mut sums = [[0f32; 16]; 4];
    let mut places = x.chunks(x.len().div_ceil(4).next_multiple_of(16));
    let places: [_; 4] = std::array::from_fn(|_| places.next().unwrap_or(&[]).as_chunks::<16>().0);
    let rounds = places.iter().map(|place| place.len()).min().unwrap_or(0);
    for i in 0..rounds {
        for (sums, place) in sums.iter_mut().zip(places) {
            sums.iter_mut().zip(&place[i]).for_each(|(sum, x)| *sum += x);
        }
    }
    sums.iter().flatten().sum()
}

fn copy(_: &mut Inputs) -> Result<Report> {
    let (x, mut y) = (array(1.0), array(0.0));
    calls(Unit::GBs(8.0 * M16 as f64), || {
        scope(|scope| {
            for (to, from) in y.chunks_mut(parts()).zip(x.chunks(parts())) {
                scope.spawn(|| write(to, |i| from.as_chunks::<4>().0[i]));
            }
        });
        Ok(())
    })
}

/// `(a + b) * 5 - c`, as the workload `chain_16m`.
fn chain(_: &mut Inputs) -> Result<Report> {
    let (a, b, c, mut y) = (array(1.0), array(2.0), array(3.0), array(0.0));
    calls(Unit::GBs(16.0 * M16 as f64), || {
        scope(|scope| {
            let inputs = a.chunks(parts()).zip(b.chunks(parts())).zip(c.chunks(parts()));
            for (to, ((a, b), c)) in y.chunks_mut(parts()).zip(inputs) {
                let rows = [a, b, c].map(|x| x.as_chunks::<4>().0);
                scope.spawn(move || {
                    write(to, |i| {
                        let [a, b, c] = [rows[0][i], rows[1][i], rows[2][i]];
                        std::array::from_fn(|j| (a[j] + b[j]) * 5.0 - c[j])
                    });
                });
            }
        });
        Ok(())
    })
}

/// Writes `value(i)` to the elements `4 i ..` of `to`, past the caches.
#[cfg(target_arch = "x86_64")]
fn write(to: &mut [f32], value: impl Fn(usize) -> [f32; 4]) {
    use std::arch::x86_64::{_mm_setr_ps, _mm_sfence, _mm_stream_ps};
    let first = to.as_ptr().align_offset(16);
    for (i, to) in to.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let x = value(i);
        if first == 0 {
            // SAFETY: SSE belongs to x86-64; the four elements are ours alone and, as the first
            // is aligned, all at multiples of 16 bytes.
            unsafe { _mm_stream_ps(to.as_mut_ptr(), _mm_setr_ps(x[0], x[1], x[2], x[3])) };
        } else {
            *to = x;
        }
    }
    // SAFETY: orders stores, nothing else.
    unsafe { _mm_sfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn write(to: &mut [f32], value: impl Fn(usize) -> [f32; 4]) {
    for (i, to) in to.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *to = value(i);
    }
}
