//! Kernels of the language, run by the interpreter on devices of many kinds.

mod exchange;
mod primitives;
mod progress;
mod text;
mod tile;

use super::*;
use crate::ir::interp::{Binding, Options, Program};
use crate::ir::{Kernel, Op, Verified, verify};
use crate::ops::BinaryOp;
use crate::{DTypeSet, prepare};
use std::cell::RefCell;

/// A device of many threads with subgroups of so many, 0 for none.
pub(super) fn gpu(max_local: usize, subgroup: u32) -> Caps {
    Caps {
        simt: true,
        max_local,
        subgroup: (subgroup, subgroup),
        threads: 1 << 16,
        max_groups: [65535; 3],
        ..crate::ir::interp::caps()
    }
}

/// Runs a kernel of inputs in `f64` numbers of their dtypes; gives the outputs as `f64`.
pub(super) fn run(
    recorded: &Recorded,
    sizes: &[i64],
    inputs: &[Vec<f64>],
    options: &Options,
) -> Vec<Vec<f64>> {
    let size = |number: usize| sizes.get(number).copied();
    let scalars: Vec<u64> =
        recorded.scalars().iter().map(|x| x.eval(&size).unwrap() as u64).collect();
    let mut inputs = inputs.iter();
    let mut buffers: Vec<Vec<u8>> = Vec::new();
    for argument in recorded.arguments() {
        let n: i64 = argument.shape.iter().map(|x| x.eval(&size).unwrap()).product();
        let fill = |x: f64| Scalar::from_f64(argument.dtype, x).bits().to_le_bytes();
        let bytes = argument.dtype.size();
        let whole = |x: f64| fill(x)[..bytes].to_vec();
        buffers.push(match argument.role {
            Role::Input => {
                let values = inputs.next().unwrap();
                assert_eq!(values.len() as i64, n, "{}", argument.name);
                values.iter().flat_map(|&x| whole(x)).collect()
            }
            Role::Output | Role::Scratch | Role::Cut => vec![0; n as usize * bytes],
            Role::Filled(Fill::Scalar(bits)) => bits.to_le_bytes()[..bytes].repeat(n as usize),
            Role::Filled(Fill::Input(number)) => buffers[number].clone(),
        });
    }
    let verified = Verified::new(recorded.kernel()).unwrap();
    stays_valid(&verified, options.subgroup as u32);
    for kernel in [&*verified, recorded.checked()] {
        let mut buffers = buffers.clone();
        let params: Vec<Binding> =
            (0..buffers.len()).map(|buffer| Binding { buffer, offset: 0 }).collect();
        let mut slices: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        let ran = Program::new(kernel).unwrap().run(&mut slices, &params, &scalars, options);
        ran.unwrap_or_else(|error| panic!("{error}\n{kernel}"));
        let told = recorded.arguments().iter().zip(&buffers).filter(|x| x.0.role == Role::Cut);
        told.for_each(|(_, told)| assert_eq!(*told, [0; 4], "a loop is told as cut\n{kernel}"));
        if std::ptr::eq(kernel, recorded.checked()) {
            return (recorded.arguments().iter().zip(&buffers))
                .filter(|(argument, _)| matches!(argument.role, Role::Output | Role::Filled(_)))
                .map(|(argument, bytes)| {
                    let element = |x: &[u8]| {
                        let mut bits = [0; 8];
                        bits[..x.len()].copy_from_slice(x);
                        Scalar::from_bits(argument.dtype, u64::from_le_bytes(bits)).to_f64()
                    };
                    bytes.chunks(argument.dtype.size()).map(element).collect()
                })
                .collect();
        }
    }
    unreachable!()
}

/// Checks, of kernels that differ from the last one, that each is one still after the passes for devices of several kinds,
/// if those have what it needs.
fn stays_valid(kernel: &Verified, subgroup: u32) {
    thread_local!(static LAST: RefCell<Option<Kernel>> = const { RefCell::new(None) });
    if LAST.with_borrow_mut(|last| last.replace((**kernel).clone()).is_some_and(|x| x == **kernel))
    {
        return;
    }
    let long = DTypeSet::of(&[DType::I64, DType::U64]);
    for (emulated, subgroup) in [(DTypeSet::NONE, subgroup), (long, 0)] {
        let mut caps = Caps { emulated, vector_bytes: 0, ..gpu(1024, subgroup) };
        for op in [BinaryOp::Div, BinaryOp::Rem] {
            caps.binary[op as usize] = caps.binary[op as usize].without(emulated);
        }
        let fast = prepare::optimize(kernel, &caps);
        let Ok(legal) = prepare::legalize(&fast, &caps) else { continue };
        let text = legal.to_string();
        if let Err(error) = legal.verify() {
            panic!("{error}\n{text}");
        }
    }
}

/// The devices that primitives are tested on.
pub(super) fn devices() -> Vec<Caps> {
    let mut devices = vec![crate::ir::interp::caps(), Caps { threads: 8, ..gpu(64, 0) }];
    devices.push(Caps { max_iterations: 65_535, ..gpu(64, 4) });
    for max_local in [1, 2, 8, 64, 1024] {
        for subgroup in [0, 1, 4, 32] {
            devices.push(gpu(max_local, subgroup));
        }
    }
    devices
}

pub(super) fn options(caps: &Caps, shuffle: Option<u64>) -> Options {
    let subgroup = caps.subgroup.1.max(1) as usize;
    Options { shuffle, reversed: true, subgroup, ..Options::default() }
}

pub(super) fn setting(caps: &Caps, inputs: &[DType]) -> Setting {
    Setting { caps: caps.clone(), inputs: inputs.to_vec(), ..Setting::default() }
}

fn numbers(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 37 + 11) % 29) as f64 - 14.0).collect()
}

fn softmax(k: &Lang) {
    let [rows, cols] = k.sizes(["rows", "cols"]);
    let x = k.input("x", [rows, cols]);
    let y = k.output("y", [rows, cols], x.dtype());
    k.groups([rows], 256, |g, [row]| {
        let x = x.row(row);
        let max = g.reduce(BinaryOp::Max, cols, |i| x.at(i).cast(DType::F32));
        let sum = g.reduce(BinaryOp::Add, cols, |i| (x.at(i).cast(DType::F32) - max).exp());
        g.each(cols, |i| {
            y.set([row, i], ((x.at(i).cast(DType::F32) - max).exp() / sum).cast(y.dtype()));
        });
    });
}

#[test]
fn a_softmax_runs_on_every_device() {
    for caps in devices() {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let recorded = record("softmax", &setting(&caps, &[dtype]), softmax).unwrap();
            for (rows, cols) in [(1, 1), (3, 7), (2, 300), (0, 5), (3, 0)] {
                let x = numbers((rows * cols) as usize);
                let options = options(&caps, Some(cols as u64));
                let y = run(&recorded, &[rows, cols], std::slice::from_ref(&x), &options);
                for row in 0..rows as usize {
                    let part = row * cols as usize..(row + 1) * cols as usize;
                    let max = x[part.clone()].iter().copied().fold(f64::MIN, f64::max);
                    let sum: f64 = x[part.clone()].iter().map(|x| (x - max).exp()).sum();
                    for i in part {
                        let expected = (x[i] - max).exp() / sum;
                        assert!((y[0][i] - expected).abs() <= 0.01 * expected + 1e-7, "{caps:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn accesses_in_loops_over_extents_are_proven() {
    for caps in [crate::ir::interp::caps(), gpu(256, 0)] {
        let recorded = record("softmax", &setting(&caps, &[DType::F32]), softmax).unwrap();
        let kernel = recorded.kernel();
        let report = verify(kernel).unwrap();
        assert_eq!(report.unproven, [], "{kernel}");
        assert!(!kernel.ops().iter().any(|op| matches!(op, Op::Guard { .. })), "{kernel}");
    }
}

#[test]
fn scans_with_groups_of_every_size() {
    for caps in devices() {
        for (op, dtype) in [(BinaryOp::Add, DType::I32), (BinaryOp::Max, DType::F32)] {
            let recorded = record("scan", &setting(&caps, &[dtype]), |k: &Lang| {
                let [rows, n] = k.sizes(["rows", "n"]);
                let x = k.input("x", [rows, n]);
                let y = k.output("y", [rows, n], x.dtype());
                let all = k.output("all", [rows], x.dtype());
                k.groups([rows], 128, |g, [row]| {
                    let sum = g.scan(
                        op,
                        n,
                        x.dtype(),
                        |i| x.at([row, i]),
                        |i, _, after| {
                            y.set([row, i], after);
                        },
                    );
                    all.set(row, sum);
                });
            })
            .unwrap();
            for n in [1, 2, 63, 64, 65, 300] {
                let x = numbers(2 * n);
                let options = options(&caps, Some(n as u64));
                let found = run(&recorded, &[2, n as i64], std::slice::from_ref(&x), &options);
                for row in 0..2 {
                    let mut sum = op.identity(dtype).unwrap();
                    for i in row * n..(row + 1) * n {
                        sum = op.eval(sum, Scalar::from_f64(dtype, x[i]));
                        assert_eq!(found[0][i], sum.to_f64(), "{n} {caps:?}");
                    }
                    assert_eq!(found[1][row], sum.to_f64());
                }
            }
        }
    }
}

#[test]
fn atomics_counters_and_shared_arrays() {
    for caps in devices() {
        let recorded = record("histogram", &setting(&caps, &[DType::I32]), |k: &Lang| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let counts = k.output_filled("counts", [16], DType::I32, 0);
            let order = k.output("order", [n.div_ceil(100)], DType::I32);
            let next = k.scratch("next", [1], DType::I32);
            k.groups([n.div_ceil(100)], 64, |g, [group]| {
                let ticket = next.fetch(BinaryOp::Add, 0, 1);
                order.set(group, ticket);
                let own = g.shared([16], DType::I32);
                g.each(16, |i| own.set(i, 0));
                let first = group * 100;
                g.each((n - first).minimum(100), |i| {
                    own.atomic(BinaryOp::Add, x.at(first + i) & 15, 1);
                });
                g.each(16, |i| counts.atomic(BinaryOp::Add, i, own.at(i)));
            });
        })
        .unwrap();
        let n = 517;
        let x: Vec<f64> = (0..n).map(|i| ((i * 7) % 31) as f64).collect();
        let found = run(&recorded, &[n], std::slice::from_ref(&x), &options(&caps, Some(3)));
        let mut expected = vec![0.0; 16];
        x.iter().for_each(|&x| expected[x as usize & 15] += 1.0);
        assert_eq!(found[0], expected, "{caps:?}");
        let mut order = found[1].clone();
        order.sort_by(f64::total_cmp);
        assert_eq!(order, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "{caps:?}");
    }
}

#[test]
fn a_stencil_guards_its_borders() {
    for caps in devices() {
        let recorded = record("heat", &setting(&caps, &[DType::F32]), |k: &Lang| {
            let [h, w] = k.sizes(["h", "w"]);
            let x = k.input("x", [h, w]);
            let y = k.output("y", [h, w], x.dtype());
            k.each([h, w], |[i, j]| {
                let at = |i, j| x.at_or([i, j], 0.0);
                let around = at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1);
                y.set([i, j], x.at([i, j]) + (around - x.at([i, j]) * 4.0) * 0.25);
            });
        })
        .unwrap();
        let (h, w) = (5usize, 7usize);
        let x = numbers(h * w);
        let found =
            run(&recorded, &[h as i64, w as i64], std::slice::from_ref(&x), &options(&caps, None));
        for i in 0..h {
            for j in 0..w {
                let at = |i: usize, j: usize| if i < h && j < w { x[i * w + j] } else { 0.0 };
                let around = at(i.wrapping_sub(1), j)
                    + at(i + 1, j)
                    + at(i, j.wrapping_sub(1))
                    + at(i, j + 1);
                let expected = x[i * w + j] + (around - 4.0 * x[i * w + j]) * 0.25;
                assert_eq!(found[0][i * w + j], expected, "{i} {j}");
            }
        }
    }
}

#[test]
fn mistakes_are_told_with_their_line() {
    let caps = gpu(256, 0);
    let fails = |write: &dyn Fn(&Lang)| {
        let setting = setting(&caps, &[DType::F32, DType::I32]);
        record("wrong", &setting, |k: &Lang| write(k)).unwrap_err()
    };
    let line = line!() + 5;
    let error = fails(&|k| {
        let n = k.size("n");
        let (x, y) = (k.input("x", [n]), k.input("y", [n]));
        k.each(n, |i| {
            let _ = x.at(i) + y.at(i);
        });
    });
    assert_eq!(error.site.line, line);
    assert!(error.to_string().contains("add` of f32 and i32"), "{error}");
    assert!(error.site.file.ends_with("lang/tests/mod.rs"));
    let error = fails(&|k| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        k.each(n, |i| x.set(i, 1.0));
    });
    assert!(error.reason.contains("an input is never stored to"), "{error}");
    let error = fails(&|k| {
        let n = k.size("n");
        let x = k.input("x", [n, n]);
        k.each(n, |i| {
            let _ = x.at(i);
        });
    });
    assert!(error.reason.contains("1 coordinates of an array of 2 axes"), "{error}");
    let error = fails(&|k| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let out = k.output("out", [x.at(0).cast(DType::I64)], DType::F32);
        k.each(n, |i| out.set(i, 1.0));
    });
    assert!(error.reason.contains("must follow from sizes"), "{error}");
    let line = line!() + 6;
    let error = fails(&|k| {
        let n = k.size("n");
        let y = k.output("y", [n], DType::F32);
        let mut kept = None;
        k.each(n, |i| kept = Some(i.cast(DType::F32)));
        k.each(n, |i| y.set(i, kept.unwrap()));
    });
    assert_eq!(error.site.line, line, "{error}");
    assert!(error.reason.contains("not defined here"), "{error}");
}

#[test]
fn faults_of_a_run_have_the_line_of_the_program() {
    let caps = gpu(64, 0);
    let line = line!() + 5;
    let recorded = record("outside", &setting(&caps, &[DType::F32]), |k: &Lang| {
        let [rows, cols] = k.sizes(["rows", "cols"]);
        let x = k.input("x", [rows, cols]);
        let y = k.output("y", [rows, cols], DType::F32);
        k.each([rows, cols], |[i, j]| y.set([i, j], x.at([i, j + 1])));
    })
    .unwrap();
    let mut buffers = vec![vec![0u8; 24]; 2];
    let size = |n: usize| [2, 3].get(n).copied();
    let scalars: Vec<u64> =
        recorded.scalars().iter().map(|x| x.eval(&size).unwrap() as u64).collect();
    let options = Options::default();
    let error = crate::ir::interp::interpret(recorded.checked(), &mut buffers, &scalars, &options)
        .unwrap_err();
    let crate::ir::interp::InterpError::Fault { value, fault, .. } = error else {
        panic!("{error}")
    };
    assert!(matches!(fault, crate::ir::interp::Fault::OutOfBounds { index: -1, .. }), "{fault}");
    assert_eq!(recorded.site(value).unwrap().line, line);
    crate::ir::interp::interpret(recorded.kernel(), &mut buffers, &scalars, &options).unwrap();
}

/// The first fault of a kernel of `n` elements with the inputs all 1, as its index and line.
fn fault_of(recorded: &Recorded, n: i64, line: u32) -> Result<(), (i64, u32)> {
    let mut buffers = vec![1.0f32.to_le_bytes().repeat(n as usize); 2];
    let size = |_: usize| Some(n);
    let scalars: Vec<u64> =
        recorded.scalars().iter().map(|x| x.eval(&size).unwrap() as u64).collect();
    let options = Options::default();
    // Without a check it is none.
    let mut unchecked = buffers.clone();
    crate::ir::interp::interpret(recorded.kernel(), &mut unchecked, &scalars, &options).unwrap();
    match crate::ir::interp::interpret(recorded.checked(), &mut buffers, &scalars, &options) {
        Ok(_) => Ok(()),
        Err(crate::ir::interp::InterpError::Fault { value, fault, .. }) => {
            let crate::ir::interp::Fault::OutOfBounds { index, .. } = fault else {
                panic!("{fault}")
            };
            Err((index, recorded.site(value).unwrap().line - line))
        }
        Err(error) => panic!("{error}"),
    }
}

/// A coordinate in the extent of a tile may be beyond the end of the array; one outside of the tile is told, also where the array has
/// ended there, unless a condition keeps it from being used.
#[test]
fn coordinates_outside_of_a_tile_are_told() {
    for caps in [crate::ir::interp::caps(), gpu(64, 0)] {
        let line = line!() + 8;
        let at = |from: fn(Val<'_>) -> Val<'_>, to: fn(Val<'_>) -> Val<'_>, is_row: bool| {
            let recorded = record("tiles", &setting(&caps, &[DType::F32]), |k: &Lang| {
                let n = k.size("n");
                let (x, y) = (k.input("x", [n]), k.output("y", [n], DType::F32));
                k.groups(x.tiles([4]), 4, |g, [tile]| {
                    let (x, y) = (x.tile(tile, [4]), y.tile(tile, [4]));
                    g.each(4, |i| {
                        let value = if is_row { x.row(from(i)).at(()) } else { x.at(from(i)) };
                        y.set(to(i), value);
                    });
                });
            });
            let recorded = recorded.unwrap();
            [3, 4, 6, 8].map(|n| fault_of(&recorded, n, line))
        };
        for is_row in [false, true] {
            assert_eq!(at(|i| i, |i| i, is_row), [Ok(()); 4]);
            assert_eq!(at(|i| i + 1, |i| i, is_row), [Err((-1, 0)); 4]);
            assert_eq!(at(|i| i - 1, |i| i, is_row), [Err((-1, 0)); 4]);
            assert_eq!(at(|i| i, |i| (i + 1) * 2 % 5, is_row), [Err((-1, 1)); 4]);
        }
        let recorded = record("neighbours", &setting(&caps, &[DType::F32]), |k: &Lang| {
            let n = k.size("n");
            let (x, y) = (k.input("x", [n]), k.output("y", [n], DType::F32));
            k.groups(x.tiles([4]), 4, |g, [tile]| {
                let (x, y) = (x.tile(tile, [4]), y.tile(tile, [4]));
                g.each(4, |i| {
                    let after = x.at_if((i + 1).lt(4), i + 1, -1);
                    y.set(i, x.at_or(i - 1, -1) + after + x.row(i + 1).at_or((), -1));
                    y.set_if(i.lt(0), i + 9, after);
                });
            });
        });
        let recorded = recorded.unwrap();
        assert_eq!([3, 4, 6, 8].map(|n| fault_of(&recorded, n, line)), [Ok(()); 4]);
        let found = run(&recorded, &[6], &[numbers(6)], &options(&caps, None));
        let at = |i: i64, other: f64| numbers(6).get(i as usize).copied().unwrap_or(other);
        let expected = [0, 1, 2, 3, 4, 5i64].map(|i| {
            let before = if i % 4 == 0 { -1.0 } else { at(i - 1, -1.0) };
            let [after, row] = [0.0, -1.0].map(|other| at(i + 1, other));
            before + if i % 4 == 3 { -2.0 } else { after + row }
        });
        assert_eq!(found[0], expected);
    }
}

/// Loops of an unknown number of iterations that come to their end, or are left, are not told as cut by a driver.
#[test]
fn loops_that_come_to_their_end_are_not_told_as_cut() {
    for caps in [Caps { max_iterations: 65_535, ..gpu(64, 0) }, gpu(64, 0)] {
        for least in [-100, 0, 100] {
            let recorded = record("sums", &setting(&caps, &[DType::F32]), |k: &Lang| {
                let n = k.size("n");
                let (x, y) = (k.input("x", [n]), k.output("y", [n], DType::F32));
                k.each(n, |i| {
                    let sum = k.var(k.value(0, DType::F32));
                    k.for_each(n, |j| {
                        k.for_each(i..j, |_| sum.set(sum.get() + 1));
                        k.break_if(x.at(j).lt(least));
                        sum.set(sum.get() + x.at(j));
                    });
                    y.set(i, sum.get());
                });
            });
            let recorded = recorded.unwrap();
            let is_watched = recorded.arguments().iter().any(|x| x.role == Role::Cut);
            assert_eq!(is_watched, caps.max_iterations > 0);
            for n in [0usize, 1, 40] {
                let x = numbers(n);
                let found =
                    run(&recorded, &[n as i64], std::slice::from_ref(&x), &options(&caps, None));
                let sum = |i: usize| {
                    let mut sum = 0.0;
                    for (j, &x) in x.iter().enumerate() {
                        sum += j.saturating_sub(i) as f64;
                        if x < f64::from(least) {
                            break;
                        }
                        sum += x;
                    }
                    sum
                };
                assert_eq!(found[0], (0..n).map(sum).collect::<Vec<_>>(), "{least} {n}");
            }
        }
    }
}

#[test]
fn handles_are_of_the_same_arrays() {
    for caps in devices() {
        let recorded = record("handles", &setting(&caps, &[DType::F32]), |k: &Lang| {
            let n = k.size("n");
            let x = k.input("x", [n, n]).handle();
            let y = k.output_filled("y", [n], DType::F32, Scalar::from(1.0)).handle();
            assert!(k.group().is_none());
            k.groups([n], 64, |_, [i]| {
                let (group, row) = (k.group().unwrap(), k.array_of(&x).row(i).handle());
                let of_group = group.shared([1], DType::F32);
                group.each(1, |at| of_group.set(at, k.array_of(&row).at(i)));
                k.array_of(&y).set(i, of_group.at(0));
                assert!(i.is_nonnegative() && (i * 2 + n % 3).is_nonnegative());
                assert!(!(i - 1).is_nonnegative() && !of_group.at(0).is_nonnegative());
            });
            assert_eq!(k.error(), None);
        })
        .unwrap();
        let x: Vec<f64> = (0..9).map(f64::from).collect();
        let found = run(&recorded, &[3], std::slice::from_ref(&x), &options(&caps, None));
        assert_eq!(found[0], [0.0, 4.0, 8.0], "{caps:?}");
    }
}

#[test]
fn ranks_are_stable_and_lists_hold_what_was_appended() {
    for caps in devices() {
        let ranks = |k: &Lang| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let (place, list) =
                (k.output("place", [n], DType::I32), k.output("list", [n], DType::I32));
            let count = k.output_filled("count", [1], DType::I32, 0);
            k.groups([1], 64, |g, _| {
                g.rank(n, 3, |i| x.at(i), |i, at| place.set(i, at.cast(DType::I32)));
                g.append(&count, n, |i| x.at(i).gt(3), |i, at| list.set(at, i.cast(DType::I32)));
            });
        };
        let recorded = record("ranks", &setting(&caps, &[DType::I32]), ranks).unwrap();
        for (n, shuffle) in [(1, None), (100, None), (333, Some(3))] {
            let x: Vec<f64> = (0..n).map(|i| (i * 37 % 11 % 8) as f64).collect();
            let y = run(&recorded, &[n as i64], std::slice::from_ref(&x), &options(&caps, shuffle));
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by_key(|&i| x[i] as i64);
            for (place, &i) in order.iter().enumerate() {
                assert_eq!(y[0][i], place as f64, "{caps:?}");
            }
            let expected: Vec<f64> = (0..n).filter(|&i| x[i] > 3.0).map(|i| i as f64).collect();
            assert_eq!(y[2], [expected.len() as f64]);
            let mut list = y[1][..expected.len()].to_vec();
            list.sort_by(f64::total_cmp);
            assert_eq!(list, expected);
        }
    }
}
