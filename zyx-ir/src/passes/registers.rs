//! Arrays of a thread whose elements are all accessed at literal indices become one register an element.
//!
//! Passes and backends look for registers: sums in them are compensated, moved out of loops, and kept from being contracted.
//! The kernel language applies this to all it records.

use super::rebuild::Rebuild;
use crate::ir::{Kernel, Op, Space, Value};
use rustc_hash::FxHashMap;

/// The kernel with a register for each element of such arrays.
pub(crate) fn split_arrays(kernel: &Kernel) -> Kernel {
    let arrays = arrays(kernel);
    let mut r = Rebuild::new(kernel);
    let mut registers: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
    for (v, op, ty) in kernel.iter() {
        if let (Op::Alloc { space, len }, true) = (op, arrays.contains_key(&v)) {
            registers.insert(v, (0..len).map(|_| r.out.alloc(space, ty, 1)).collect());
            continue;
        }
        let register = access(kernel, op).and_then(|(x, index)| Some(registers.get(&x)?[index]));
        let Some(buf) = register else {
            r.copy(v);
            continue;
        };
        let index = r.out.index(0);
        let new = match op {
            Op::Store { order, value, .. } => Op::Store { order, buf, index, value: r.get(value) },
            Op::Load { order, .. } => Op::Load { order, buf, index },
            _ => unreachable!("invariant: accesses are loads and stores"),
        };
        let new = r.out.push(new, ty);
        r.set(v, new);
    }
    r.out.finish()
}

/// The arrays that are accessed element by element at literal indices, with their lengths.
fn arrays(kernel: &Kernel) -> FxHashMap<Value, u32> {
    let mut found = FxHashMap::default();
    for (v, op, ty) in kernel.iter() {
        match op {
            Op::Alloc { space: Space::Register, len } if len > 1 => {
                found.insert(v, len);
            }
            Op::Load { buf, .. } | Op::Store { buf, .. } | Op::Atomic { buf, .. } => {
                let len = found.get(&buf).copied().unwrap_or(0);
                let fits = access(kernel, op).is_some_and(|(_, index)| index < len as usize);
                if ty.lanes != kernel.ty(buf).lanes || !fits {
                    found.remove(&buf);
                }
            }
            _ => {}
        }
    }
    found
}

/// The storage of a load or store, and its index, if that is a literal.
fn access(kernel: &Kernel, op: Op) -> Option<(Value, usize)> {
    let (Op::Load { buf, index, .. } | Op::Store { buf, index, .. }) = op else { return None };
    Some((buf, usize::try_from(kernel.constant(index)?.to_i64()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(access: &str) -> usize {
        let text = format!(
            "kernel k
             buffer 0 : f32[4] write
             %0 param 0 write : f32
             %1 alloc register 2 : f32
             %2 const 1 : i64
             %3 const 1.0 : f32
             %4 store %1[%2], %3 : f32
             %5 const 2 : i64
             %6 loop serial %5
             %7 load %1[{access}] : f32
             %8 store %0[%6], %7 : f32
             %9 end %6"
        );
        let kernel = split_arrays(&text.parse().unwrap());
        crate::ir::verify(&kernel).unwrap();
        kernel.iter().filter(|(_, op, _)| matches!(op, Op::Alloc { len: 1, .. })).count()
    }

    #[test]
    fn an_array_is_split_unless_an_index_varies() {
        assert_eq!((registers("%2"), registers("%6")), (2, 0));
    }
}
