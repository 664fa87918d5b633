//! Shuffles as emitters of languages for many devices spell them: of 32-bit words, by lanes that exist.
//!
//! Such languages exchange numbers of 32 bits on every device and others on some, leave the value
//! from a lane that does not exist undefined, and do not say which thread of a group is which lane.
//! [`of_words`] gives a kernel whose shuffles are of `u32`, by an index or an exclusive or below the
//! size of a subgroup; [`Stage::lanes`](crate::codegen::stages::Stage::lanes) tells an emitter that its counter of local axis 0 must be made of the
//! numbers of subgroup and lane.

use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Kernel, LoopKind, Op, Ranges, ShuffleKind, Value};
use crate::ops::BinaryOp;
use crate::passes::rebuild::Rebuild;
use crate::scalar::Scalar;

fn varying(value: Value, caps: &Caps) -> String {
    let (least, most) = caps.subgroup;
    format!("{value}: subgroups of {least} to {most} threads")
}

/// The kernel with shuffles of words only; `None` if it has no shuffles.
///
/// # Errors
/// When subgroups may differ in size, or the local loops around a shuffle have several axes.
pub fn of_words(kernel: &Kernel, caps: &Caps) -> Result<Option<Kernel>, String> {
    if !kernel.ops().iter().any(|op| matches!(op, Op::Shuffle { .. })) {
        return Ok(None);
    }
    let ranges = Ranges::of(kernel);
    let mut r = Rebuild::new(kernel);
    for (value, op, _) in kernel.iter() {
        let Op::Shuffle { kind, x, lane } = op else {
            r.copy(value);
            continue;
        };
        let size = caps.lanes().ok_or_else(|| varying(value, caps))?;
        let exists = ranges.get(lane).within(0, i128::from(size) - 1);
        let (kind, lane) = match kind {
            ShuffleKind::Xor if exists => {
                let lane = r.get(lane);
                (kind, r.out.cast(DType::I32, lane))
            }
            _ => (ShuffleKind::Index, r.source(value, (kind, lane), size, exists)?),
        };
        let x = r.get(x);
        let new = r.exchange(kind, x, lane);
        r.set(value, new);
    }
    Ok(Some(r.out.finish()))
}

impl Rebuild<'_> {
    /// The lane that a shuffle takes its value from: its own instead of one that does not exist.
    fn source(
        &mut self,
        shuffle: Value,
        (kind, lane): (ShuffleKind, Value),
        size: u32,
        exists: bool,
    ) -> Result<Value, String> {
        let lane = self.get(lane);
        let lane = self.out.cast(DType::I64, lane);
        if exists && kind == ShuffleKind::Index {
            return Ok(self.out.cast(DType::I32, lane));
        }
        let counter = self.counter(shuffle)?;
        let [zero, size, mask] =
            [0, i64::from(size), i64::from(size) - 1].map(|n| self.out.index(n));
        let b = &mut self.out;
        let own = b.binary(BinaryOp::And, counter, mask);
        // No sum is computed before its operand is known to be small.
        let (least, end) = match kind {
            ShuffleKind::Index | ShuffleKind::Xor => (zero, size),
            ShuffleKind::Down => {
                (b.binary(BinaryOp::Sub, zero, own), b.binary(BinaryOp::Sub, size, own))
            }
        };
        let above = b.binary(BinaryOp::Le, least, lane);
        let below = b.binary(BinaryOp::Lt, lane, end);
        let exists = b.binary(BinaryOp::And, above, below);
        let source = match kind {
            ShuffleKind::Index => b.select(exists, lane, own),
            ShuffleKind::Xor | ShuffleKind::Down => {
                let step = b.select(exists, lane, zero);
                let op = if kind == ShuffleKind::Xor { BinaryOp::Xor } else { BinaryOp::Add };
                b.binary(op, own, step)
            }
        };
        Ok(b.cast(DType::I32, source))
    }

    /// The new counter of the local loop around an old shuffle.
    fn counter(&self, shuffle: Value) -> Result<Value, String> {
        let regions = crate::ir::Regions::of(self.src);
        let mut counters = regions.enclosing(shuffle).filter(|&region| match self.src.op(region) {
            Op::Loop { kind: LoopKind::Local, axis, len } => {
                axis == 0 || self.src.constant(len) != Some(Scalar::from(1i64))
            }
            _ => false,
        });
        let is_first = |&v: &Value| matches!(self.src.op(v), Op::Loop { axis: 0, .. });
        let counter = counters.next().filter(is_first).filter(|_| counters.next().is_none());
        let counter =
            counter.ok_or_else(|| format!("{shuffle}: a shuffle needs groups of one axis"))?;
        Ok(self.get(counter))
    }

    /// A shuffle of the bits of a value, word by word.
    fn exchange(&mut self, kind: ShuffleKind, x: Value, lane: Value) -> Value {
        let ty = self.out.ty(x);
        let b = &mut self.out;
        match ty.dtype {
            DType::U32 => b.emit(Op::Shuffle { kind, x, lane }, ty),
            dtype if dtype == DType::Bool || dtype.is_int() && dtype.bits() < 32 => {
                let word = b.cast(DType::U32, x);
                let word = self.exchange(kind, word, lane);
                self.out.cast(dtype, word)
            }
            dtype if dtype.bits() == 16 => {
                let bits = b.bitcast(DType::U16, x);
                let bits = self.exchange(kind, bits, lane);
                self.out.bitcast(dtype, bits)
            }
            DType::U64 => {
                let places = b.constant(Scalar::from(32u64));
                let places = b.splat(places, ty.lanes);
                let high = b.binary(BinaryOp::Shr, x, places);
                let words = [x, high].map(|x| b.cast(DType::U32, x));
                let [low, high] = words.map(|word| {
                    let word = self.exchange(kind, word, lane);
                    self.out.cast(DType::U64, word)
                });
                let high = self.out.binary(BinaryOp::Shl, high, places);
                self.out.binary(BinaryOp::Or, low, high)
            }
            dtype => {
                let unsigned = if dtype.bits() == 64 { DType::U64 } else { DType::U32 };
                let bits = b.bitcast(unsigned, x);
                let bits = self.exchange(kind, bits, lane);
                self.out.bitcast(dtype, bits)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::stages;
    use crate::dtype::DTypeSet;
    use crate::ir::interp::{self, Options, interpret};
    use crate::ir::{Access, Builder, verify};
    use crate::legalize::lower_to_32_bit::lowered;

    const KINDS: [ShuffleKind; 3] = [ShuffleKind::Index, ShuffleKind::Xor, ShuffleKind::Down];
    const LENGTH: i64 = 32;

    /// A device with subgroups of so many.
    fn caps(lanes: u32) -> Caps {
        Caps { simt: true, max_local: 64, subgroup: (lanes, lanes), ..interp::caps() }
    }

    /// Threads exchange `width` elements each, by a loaded lane and by some literal ones.
    fn kernel(dtype: DType, width: u8, lanes: i64) -> Kernel {
        let literals = [0, 1, lanes - 1, lanes, -1];
        let rows = (KINDS.len() * (1 + literals.len())) as i64;
        let mut b = Builder::new("shuffles");
        let n = LENGTH as u64 * u64::from(width);
        let out = b.param(dtype, n * rows as u64, Access::Write);
        let input = b.param(dtype, n, Access::Read);
        let sources = b.param(DType::I64, LENGTH as u64, Access::Read);
        let len = b.index(LENGTH);
        let i = b.open_loop(LoopKind::Local, 0, len);
        let by = b.index(width.into());
        let at = b.binary(BinaryOp::Mul, i, by);
        let x = if width > 1 { b.load_vector(input, at, width) } else { b.load(input, at) };
        let loaded = b.load(sources, i);
        let literals = literals.map(|n| b.index(n));
        let mut row = 0;
        for kind in KINDS {
            for lane in std::iter::once(loaded).chain(literals) {
                let ty = b.ty(x);
                let y = b.emit(Op::Shuffle { kind, x, lane }, ty);
                let start = b.index(row * n as i64);
                let place = b.binary(BinaryOp::Add, start, at);
                b.store(out, place, y);
                row += 1;
            }
        }
        b.close();
        b.finish()
    }

    fn result(kernel: &Kernel, buffers: &[Vec<u8>; 3], lanes: u32) -> Vec<u8> {
        verify(kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
        let mut buffers = buffers.clone();
        let options = Options { subgroup: lanes as usize, ..Options::default() };
        interpret(kernel, &mut buffers, &[], &options).unwrap();
        let [out, ..] = buffers;
        out
    }

    #[test]
    fn shuffles_of_words_give_the_same() {
        let long = DTypeSet::of(&[DType::I64, DType::U64]);
        for &dtype in DType::ALL {
            for (width, lanes) in [(1, 1), (1, 4), (1, 32), (2, 8), (4, 16)] {
                let kernel = kernel(dtype, width, lanes.into());
                let n = (LENGTH * i64::from(width)) as usize * dtype.size();
                let byte = |i: usize| (i * 151 + i / 7) as u8;
                let input =
                    (0..n).map(|i| if dtype == DType::Bool { byte(i) & 1 } else { byte(i) });
                let source = |i: i64| match i % 6 {
                    0 => [-1, lanes.into(), i64::MIN, i64::MAX, 1 << 32, -i64::from(lanes)]
                        [i as usize / 6],
                    _ => i * 5 % i64::from(lanes),
                };
                let sources = (0..LENGTH).flat_map(|i| source(i).to_le_bytes());
                let out = vec![0; kernel.params()[0].len as usize * dtype.size()];
                let buffers = [out, input.collect(), sources.collect()];
                let expected = result(&kernel, &buffers, lanes);
                let caps = caps(lanes);
                let words = of_words(&kernel, &caps).unwrap().unwrap();
                for (_, op, ty) in words.iter() {
                    let Op::Shuffle { kind, .. } = op else { continue };
                    assert!(ty.dtype == DType::U32 && kind != ShuffleKind::Down, "{words}");
                }
                assert_eq!(result(&words, &buffers, lanes), expected, "{dtype} {width}\n{words}");
                for emulated in [DTypeSet::NONE, long] {
                    // Without 64-bit integers there is no `f64`.
                    if dtype == DType::F64 && emulated == long {
                        continue;
                    }
                    let lowered = lowered(&kernel, &Caps { emulated, ..caps.clone() }).unwrap();
                    let found = result(&lowered, &buffers, lanes);
                    assert_eq!(found, expected, "{dtype} {width}\n{lowered}");
                }
            }
        }
    }

    #[test]
    fn kernels_without_shuffles_are_as_they_were() {
        let mut b = Builder::new("k");
        let out = b.param(DType::F32, 1, Access::Write);
        let (zero, x) = (b.index(0), b.constant(Scalar::from(1f32)));
        b.store(out, zero, x);
        let kernel = b.finish();
        assert!(of_words(&kernel, &caps(32)).unwrap().is_none());
        let stages = stages::split(&kernel, &caps(32)).unwrap();
        assert_eq!(stages[0].lanes(&kernel, &caps(32)), Ok(None));
    }

    #[test]
    fn groups_of_parts_of_subgroups_are_refused() {
        let kernel = kernel(DType::I32, 1, 32);
        let of = |lanes: u32| {
            let stages = stages::split(&kernel, &caps(lanes)).unwrap();
            stages[0].lanes(&kernel, &caps(lanes))
        };
        assert_eq!(of(8), Ok(Some(8)));
        assert!(of(64).unwrap_err().contains("whole subgroups of 64 threads, not [32, 1, 1]"));
        let varying = Caps { subgroup: (8, 32), ..caps(8) };
        assert!(of_words(&kernel, &varying).unwrap_err().contains("subgroups of 8 to 32 threads"));
        let text = "kernel k\nbuffer 0 : i32[32] write\n%p param 0 write : i32\n%8 const 8 : i64
            %4 const 4 : i64\n%1 const 1 : i64\n%l loop local %8\n%m loop local.1 %4
            %x cast %l : i32\n%y shuffle xor %x, %8 : i32\n%s store %p[%l], %y : i32
            %e end %m\n%f end %l";
        let kernel: Kernel = text.parse().unwrap();
        assert!(of_words(&kernel, &caps(8)).unwrap_err().contains("groups of one axis"));
    }
}
