//! All conversions: every half code to every dtype, interesting and random values between all.

use super::ops::{elementwise, lane_counts};
use super::{Random, bytes_of, check_way, values, ways};
use zyx_core::DType;
use zyx_core::ir::{Access, Builder, Kernel, LoopKind};

#[test]
fn casts_between_all_dtypes() {
    for way in ways() {
        for &from in DType::ALL {
            for &to in DType::ALL {
                for lanes in lane_counts(way, from.size().max(to.size())) {
                    let kernel = elementwise(&[from], to, lanes, |b, x| b.cast(to, x[0]));
                    let n = kernel.params()[0].len as usize;
                    let mut random = Random(12);
                    for _ in 0..4 {
                        let inputs = [values(from, n, &mut random), values(to, n, &mut random)];
                        let context = format!("cast {from} to {to} x {lanes}");
                        check_way(&kernel, way, &inputs, &[], &context);
                    }
                }
            }
        }
    }
}

#[test]
fn bitcasts_keep_bits() {
    for way in ways() {
        for &from in DType::ALL {
            for &to in DType::ALL.iter().filter(|to| to.size() == from.size()) {
                for lanes in lane_counts(way, from.size()) {
                    let kernel = elementwise(&[from], to, lanes, |b, x| b.bitcast(to, x[0]));
                    let n = kernel.params()[0].len as usize;
                    let inputs = [values(from, n, &mut Random(13)), values(to, n, &mut Random(13))];
                    let context = format!("bitcast {from} to {to} x {lanes}");
                    check_way(&kernel, way, &inputs, &[], &context);
                }
            }
        }
    }
}

/// `out[i] = a[i]` converted, for `n` elements in vectors of `lanes`.
fn convert(from: DType, to: DType, n: u64, lanes: u8) -> Kernel {
    let mut b = Builder::new("convert");
    let (a, out) = (b.param(from, n, Access::Read), b.param(to, n, Access::Write));
    let trips = b.index(n as i64 / i64::from(lanes));
    let i = b.open_loop(LoopKind::Parallel, 0, trips);
    let width = b.index(lanes.into());
    let at = b.binary(zyx_core::BinaryOp::Mul, i, width);
    let x = b.load_vector(a, at, lanes);
    let y = b.cast(to, x);
    b.store(out, at, y);
    b.close();
    b.finish()
}

#[test]
fn every_half_code_converts() {
    let n = 1 << 16;
    for way in ways() {
        for half in [DType::F16, DType::BF16] {
            for &to in DType::ALL {
                for lanes in [1, 4, 8, 16] {
                    if usize::from(lanes) * to.size().max(4) > way.vector_bytes() {
                        continue;
                    }
                    let kernel = convert(half, to, n, lanes);
                    let inputs = [bytes_of(half, 0..n), vec![0; n as usize * to.size()]];
                    check_way(&kernel, way, &inputs, &[], &format!("{half} to {to} x {lanes}"));
                }
            }
        }
    }
}

#[test]
fn halves_round_to_even() {
    // Each half code with all interesting low bits of the `f32` or `f64` it comes from.
    for way in ways() {
        for half in [DType::F16, DType::BF16] {
            for from in [DType::F32, DType::F64] {
                let mut bits = Vec::new();
                for code in (0..1u64 << 16).step_by(7) {
                    let wide = zyx_core::Scalar::from_bits(half, code).cast(from).bits();
                    for low in [0u64, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001] {
                        bits.push(
                            wide ^ if from == DType::F64 { low << 29 | low & 1 } else { low },
                        );
                    }
                }
                bits.truncate(bits.len() / 64 * 64);
                let n = bits.len() as u64;
                for lanes in [1, 4, 8] {
                    if usize::from(lanes) * from.size() > way.vector_bytes() {
                        continue;
                    }
                    let kernel = convert(from, half, n, lanes);
                    let inputs = [bytes_of(from, bits.clone()), vec![0; n as usize * 2]];
                    check_way(&kernel, way, &inputs, &[], &format!("{from} to {half} x {lanes}"));
                }
            }
        }
    }
}
