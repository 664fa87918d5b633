//! `cse`: computes equal things once.
//!
//! Pure values are shared by the builder. This pass also shares loads no store can have come
//! between, and replaces a load by the value just stored there. Two buffers are never the same
//! memory unless every access is to the same index, so a store only disturbs its own storage.

use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::ir::{Access, Kernel, LoopKind, Op, Order, Space, Type, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "cse",
    doc: "share equal values and loads; forward stores to loads",
    reassociates: false,
    sites: |_, _| vec![Site::whole()],
    apply: |kernel, _| cse(kernel),
};

/// Storage, index and type of an access, as values of the new kernel.
type Key = (Value, Value, Type);

/// Applies the pass.
pub fn cse(kernel: &Kernel) -> Kernel {
    let ends = kernel.region_ends();
    let mut r = Rebuild::new(kernel);
    let mut known = Known::default();
    for (v, op, ty) in kernel.iter() {
        match op {
            Op::Load { order: Order::Plain, buf, index } => {
                let key = (r.get(buf), r.get(index), ty);
                match known.values.get(&key) {
                    Some(&value) => r.set(v, value),
                    None => {
                        let value = r.copy(v);
                        known.insert(key, value);
                    }
                }
            }
            Op::Store { order: Order::Plain, buf, index, value } => {
                let key = (r.get(buf), r.get(index), kernel.ty(value));
                r.copy(v);
                known.forget_storage(&r, key);
                if !matches!(kernel.op(index), Op::Guard { .. }) && is_private(kernel, buf) {
                    let value = r.get(value);
                    known.insert(key, value);
                }
            }
            Op::Store { buf, .. } | Op::Atomic { buf, .. } => {
                r.copy(v);
                let storage = r.get(buf);
                known.values.retain(|key, _| key.0 != storage);
            }
            Op::Barrier { .. } => {
                r.copy(v);
                let out = &r.out;
                known.values.retain(|key, _| match out.op(key.0) {
                    Op::Param { access, .. } => access == Access::Read,
                    Op::Alloc { space, .. } => space == Space::Register,
                    _ => false,
                });
            }
            Op::Loop { kind, .. } => {
                r.copy(v);
                let stored = stored_in(kernel, v.idx()..ends[v.idx()]);
                let stored: FxHashSet<Value> =
                    stored.iter().filter_map(|&buf| r.try_get(buf)).collect();
                known.values.retain(|key, _| !stored.contains(&key.0));
                known.open(kind);
            }
            Op::If { .. } => {
                r.copy(v);
                known.open(LoopKind::Serial);
            }
            Op::End { .. } => {
                r.copy(v);
                known.close();
            }
            _ => {
                r.copy(v);
            }
        }
    }
    r.out.finish()
}

/// Whether no other thread can store there.
fn is_private(kernel: &Kernel, buf: Value) -> bool {
    matches!(kernel.op(buf), Op::Alloc { space: Space::Register, .. })
}

/// What storage is known to hold, forgotten where its region closes.
#[derive(Default)]
struct Known {
    values: FxHashMap<Key, Value>,
    scopes: Vec<Vec<Key>>,
}

impl Known {
    fn insert(&mut self, key: Key, value: Value) {
        self.values.insert(key, value);
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(key);
        }
    }

    fn open(&mut self, _: LoopKind) {
        self.scopes.push(Vec::new());
    }

    fn close(&mut self) {
        for key in self.scopes.pop().into_iter().flatten() {
            self.values.remove(&key);
        }
    }

    /// Forgets what a store may change: all of its storage but other constant indices of whole
    /// elements.
    fn forget_storage(&mut self, r: &Rebuild<'_>, (buf, index, ty): Key) {
        let constant = |v: Value| r.out.as_constant(v).map(|c| c.to_i64());
        let stored = constant(index);
        self.values.retain(|&(b, i, t), _| {
            let apart = match (stored, constant(i)) {
                (Some(x), Some(y)) => x != y && t == ty && t == r.out.ty(buf),
                _ => false,
            };
            b != buf || apart
        });
    }
}

/// The storage that ops in a range store to.
fn stored_in(kernel: &Kernel, range: std::ops::Range<usize>) -> Vec<Value> {
    let ops = kernel.ops()[range].iter();
    let storage = ops.filter_map(|op| match *op {
        Op::Store { buf, .. } | Op::Atomic { buf, .. } => Some(buf),
        _ => None,
    });
    storage.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::property_tests;

    #[test]
    fn vectors_of_an_array_overlap() {
        let kernel: Kernel = "kernel k
             buffer 0 : i32[4] write
             %p param 0 write : i32
             %a alloc register 6 : i32
             %z const 0 : i64
             %t const 2 : i64
             %x const 1 : i32
             %v splat %x : i32x4
             %s store %a[%z], %v : i32x4
             %y const 7 : i32
             %w splat %y : i32x4
             %u store %a[%t], %w : i32x4
             %l load %a[%z] : i32x4
             %o store %p[%z], %l : i32x4"
            .parse()
            .unwrap();
        let run = |kernel: &Kernel| property_tests::run(kernel, &[vec![0u8; 16]], &[]).remove(0);
        assert_eq!(run(&cse(&kernel)), run(&kernel));
        assert_eq!(run(&kernel)[8], 7);
    }
}
