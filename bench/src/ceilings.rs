//! What the machine itself can do, by loops that do nothing else: the ceilings of the workloads.
//!
//! Every thread of the machine works on its own part, eight times a call, so that starting it does
//! not count. Arrays are 64 MiB, as those of the workloads, in large pages where the system has
//! them; results are written past the caches where the processor has such stores.

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
    const STEPS: usize = 2_000_000;
    let (lanes, run) = multiply_adds();
    let operations = 2 * lanes * STEPS * threads();
    calls(Unit::Gflops(operations as f64), || {
        scope(|scope| (0..threads()).for_each(|_| drop(scope.spawn(|| run(STEPS)))));
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

/// How often a call walks over its arrays.
const ROUNDS: usize = 8;

/// What is read and written at once: a line of the caches.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([f32; LINE]);

const LINE: usize = 16;

/// `M16` equal numbers.
fn array(value: f32) -> Vec<Line> {
    let mut array = Vec::with_capacity(M16 / LINE);
    ask_for_large_pages(array.spare_capacity_mut());
    array.resize(M16 / LINE, Line([value; LINE]));
    array
}

/// Each thread's part of the lines of an array.
fn parts() -> usize {
    (M16 / LINE).div_ceil(threads())
}

/// The rate of walking over arrays of `M16` elements, `arrays` of them.
fn rate(arrays: usize, walk: impl FnMut() -> Result<()>) -> Result<Report> {
    calls(Unit::GBs((4 * arrays * ROUNDS * M16) as f64), walk)
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
    rate(1, || {
        scope(|scope| {
            for part in x.chunks(parts()) {
                let walk = || (0..ROUNDS).map(|_| (walks().sum)(black_box(part))).sum::<f32>();
                scope.spawn(move || black_box(walk()));
            }
        });
        Ok(())
    })
}

fn copy(_: &mut Inputs) -> Result<Report> {
    let (x, mut y) = (array(1.0), array(0.0));
    rate(2, || {
        scope(|scope| {
            for (to, from) in y.chunks_mut(parts()).zip(x.chunks(parts())) {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        (walks().copy)(black_box(to), black_box(from));
                    }
                });
            }
        });
        Ok(())
    })
}

/// `(a + b) * 5 - c`, as the workload `chain_16m`.
fn chain(_: &mut Inputs) -> Result<Report> {
    let (a, b, c, mut y) = (array(1.0), array(2.0), array(3.0), array(0.0));
    rate(4, || {
        scope(|scope| {
            let inputs = a.chunks(parts()).zip(b.chunks(parts())).zip(c.chunks(parts()));
            for (to, ((a, b), c)) in y.chunks_mut(parts()).zip(inputs) {
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        (walks().chain)(black_box(to), black_box([a, b, c]));
                    }
                });
            }
        });
        Ok(())
    })
}

/// The loops over a part of the arrays.
struct Walks {
    sum: fn(&[Line]) -> f32,
    copy: fn(&mut [Line], &[Line]),
    chain: fn(&mut [Line], [&[Line]; 3]),
}

#[cfg(target_arch = "x86_64")]
fn walks() -> Walks {
    use std::arch::x86_64::*;

    // Without closures and helpers: what has not these features is not inlined.
    macro_rules! halves {
        ($line:expr) => {{
            let x = $line.0.as_ptr();
            // SAFETY: a line is sixteen numbers, the first at a multiple of 64 bytes.
            unsafe { (_mm256_load_ps(x), _mm256_load_ps(x.add(8))) }
        }};
    }

    // Past the caches.
    macro_rules! write {
        ($line:expr, $low:expr, $high:expr) => {{
            let to = $line.0.as_mut_ptr();
            // SAFETY: a line is sixteen numbers, the first at a multiple of 64 bytes.
            unsafe {
                _mm256_stream_ps(to, $low);
                _mm256_stream_ps(to.add(8), $high);
            }
        }};
    }

    /// From four places at once in eight sums, so that neither memory nor additions wait for one
    /// another.
    #[target_feature(enable = "avx2")]
    fn sum(x: &[Line]) -> f32 {
        let mut sums = [_mm256_setzero_ps(); 8];
        let (first, second) = x.split_at(x.len() / 2);
        let (a, b) = first.split_at(first.len() / 2);
        let (c, d) = second.split_at(second.len() / 2);
        for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
            let ((a0, a1), (b0, b1)) = (halves!(a), halves!(b));
            let ((c0, c1), (d0, d1)) = (halves!(c), halves!(d));
            sums[0] = _mm256_add_ps(sums[0], a0);
            sums[1] = _mm256_add_ps(sums[1], a1);
            sums[2] = _mm256_add_ps(sums[2], b0);
            sums[3] = _mm256_add_ps(sums[3], b1);
            sums[4] = _mm256_add_ps(sums[4], c0);
            sums[5] = _mm256_add_ps(sums[5], c1);
            sums[6] = _mm256_add_ps(sums[6], d0);
            sums[7] = _mm256_add_ps(sums[7], d1);
        }
        let mut all = _mm256_setzero_ps();
        for sum in sums {
            all = _mm256_add_ps(all, sum);
        }
        _mm256_cvtss_f32(all)
    }

    #[target_feature(enable = "avx2")]
    fn copy(to: &mut [Line], from: &[Line]) {
        for (to, from) in to.iter_mut().zip(from) {
            let (low, high) = halves!(from);
            write!(to, low, high);
        }
        _mm_sfence();
    }

    #[target_feature(enable = "avx2")]
    fn chain(to: &mut [Line], [a, b, c]: [&[Line]; 3]) {
        let five = _mm256_set1_ps(5.0);
        for (((to, a), b), c) in to.iter_mut().zip(a).zip(b).zip(c) {
            let ((a0, a1), (b0, b1), (c0, c1)) = (halves!(a), halves!(b), halves!(c));
            let low = _mm256_sub_ps(_mm256_mul_ps(_mm256_add_ps(a0, b0), five), c0);
            let high = _mm256_sub_ps(_mm256_mul_ps(_mm256_add_ps(a1, b1), five), c1);
            write!(to, low, high);
        }
        _mm_sfence();
    }

    if !is_x86_feature_detected!("avx2") {
        return plain_walks();
    }
    Walks {
        // SAFETY: the processor has AVX2.
        sum: |x| unsafe { sum(x) },
        // SAFETY: the processor has AVX2.
        copy: |to, from| unsafe { copy(to, from) },
        // SAFETY: the processor has AVX2.
        chain: |to, from| unsafe { chain(to, from) },
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn walks() -> Walks {
    plain_walks()
}

fn plain_walks() -> Walks {
    Walks {
        sum: |x| {
            let add = |sums: [f32; LINE], x: &Line| std::array::from_fn(|i| sums[i] + x.0[i]);
            x.iter().fold([0.0; LINE], add).iter().sum()
        },
        copy: |to, from| to.copy_from_slice(from),
        chain: |to, [a, b, c]| {
            for (((to, a), b), c) in to.iter_mut().zip(a).zip(b).zip(c) {
                to.0 = std::array::from_fn(|i| (a.0[i] + b.0[i]) * 5.0 - c.0[i]);
            }
        },
    }
}
