//! Results that take the place of an argument.
//!
//! A kernel computes the same with one buffer in the place of two if it reads each element of the one
//! only where, and before, it writes the element at the same index of the other, and writes each
//! element once: no iteration sees an element that another has written. [`in_place`] proves both and
//! rewrites the kernel to one argument, declared as read and written, so that every pass and emitter
//! knows. A kernel that runs by tiles writes an element once in all of its runs together.

use super::kernel::{Builder, Kernel};
use super::op::{Access, Op, Order, Value};
use super::range::Ranges;
use super::regions::Regions;

/// The kernel with the buffer `result` in the place of `given`, whose slot is gone; `None` where
/// it is not proved that this computes the same. `runs` is a kernel of the same buffers that does what
/// all runs of `kernel` do together: `kernel` itself if it runs once.
///
/// ```
/// use zyx_ir::ir::{Access, Builder, LoopKind, inplace::in_place};
/// use zyx_ir::{BinaryOp, DType};
/// let mut b = Builder::new("double");
/// let a = b.param(DType::F32, 8, Access::Read);
/// let out = b.param(DType::F32, 8, Access::Write);
/// let len = b.index(8);
/// let i = b.open_loop(LoopKind::Parallel, 0, len);
/// let x = b.load(a, i);
/// let y = b.binary(BinaryOp::Add, x, x);
/// b.store(out, i, y);
/// b.close();
/// let double = b.finish();
/// let kernel = in_place(&double, &double, 0, 1).expect("each element is read where it is written");
/// assert_eq!(kernel.params().len(), 1);
/// assert_eq!(kernel.params()[0].access, Access::ReadWrite);
/// ```
pub fn in_place(kernel: &Kernel, runs: &Kernel, given: u16, result: u16) -> Option<Kernel> {
    let [from, to] = [given, result].map(|slot| kernel.params().get(usize::from(slot)));
    let (from, to) = (from?, to?);
    let alike = (from.dtype, from.len) == (to.dtype, to.len);
    if !alike || from.access != Access::Read || to.access != Access::Write {
        return None;
    }
    let (store, at) = only_store(kernel, result)?;
    let slot = |buf: Value| slot_of(kernel, buf);
    let regions = Regions::of(kernel);
    for (value, op, _) in kernel.iter() {
        let fits = match op {
            Op::Load { buf, index, order } if slot(buf) == Some(given) => {
                order == Order::Plain
                    && index == at
                    && value < store
                    && regions.parent(value) == regions.parent(store)
            }
            Op::Atomic { buf, .. } => slot(buf).is_none_or(|slot| slot != given && slot != result),
            _ => true,
        };
        if !fits {
            return None;
        }
    }
    let (store, _) = only_store(runs, result)?;
    Ranges::of(runs).is_distinct(store).then(|| merged(kernel, given, result))
}

/// The store to a buffer and its index, if there is one and it is no atomic.
fn only_store(kernel: &Kernel, result: u16) -> Option<(Value, Value)> {
    let mut stores = kernel.iter().filter_map(|(value, op, _)| match op {
        Op::Store { buf, index, order, .. } if slot_of(kernel, buf) == Some(result) => {
            Some((value, index, order))
        }
        _ => None,
    });
    let (store, at, order) = stores.next().filter(|_| stores.next().is_none())?;
    matches!(order, Order::Plain | Order::Streaming).then_some((store, at))
}

fn slot_of(kernel: &Kernel, buf: Value) -> Option<u16> {
    match kernel.op(buf) {
        Op::Param { slot, .. } => Some(slot),
        _ => None,
    }
}

/// The kernel with accesses to `given` made to `result`, and the slots above it one lower.
fn merged(kernel: &Kernel, given: u16, result: u16) -> Kernel {
    let new = |slot: u16| slot - u16::from(slot > given);
    let mut params = kernel.params().to_vec();
    params[usize::from(result)].access = Access::ReadWrite;
    params.remove(usize::from(given));
    let mut b = Builder::raw(kernel.name()).with_arguments(params, kernel.vars().to_vec());
    let of_result = |op: &Op| matches!(*op, Op::Param { slot, .. } if slot == result);
    let declared = kernel.ops().iter().position(of_result);
    let mut map: Vec<Value> = Vec::with_capacity(kernel.ops().len());
    let mut both = None;
    for (value, op, ty) in kernel.iter() {
        map.push(match op {
            Op::Param { slot, .. } if slot == given || Some(value.idx()) == declared => *both
                .get_or_insert_with(|| {
                    b.push(Op::Param { slot: new(result), access: Access::ReadWrite }, ty)
                }),
            Op::Param { slot, access } => b.push(Op::Param { slot: new(slot), access }, ty),
            _ => b.push(op.map(|x| map[x.idx()]), ty),
        });
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::verify;
    use crate::passes::property_tests::{Rng, inputs, run};

    const HEAD: &str = "kernel k\nbuffer 0 : f32[8] read\nbuffer 1 : f32[8] read\n\
        buffer 2 : f32[8] write\n%p param 0 read : f32\n%q param 1 read : f32\n\
        %r param 2 write : f32\n%8 const 8 : i64\n%1 const 1 : i64\n";

    fn kernel(body: &str) -> Kernel {
        format!("{HEAD}{body}").parse().unwrap()
    }

    #[test]
    fn what_is_read_where_it_is_written_computes_the_same() {
        let two = kernel(
            "%i loop parallel %8\n%x load %p[%i] : f32\n%y load %q[%i] : f32
            %z sub %x, %y : f32\n%s store %r[%i], %z : f32\n%e end %i",
        );
        let args = inputs(&two, &mut Rng(3));
        let expected = run(&two, &args, &[]);
        for given in 0..2 {
            let one = in_place(&two, &two, given, 2).expect("read where written");
            verify(&one).unwrap();
            assert_eq!(one.params().len(), 2);
            assert_eq!(one.params()[1].access, Access::ReadWrite);
            // The contents of the one stand where the result will.
            let own = [args[usize::from(1 - given)].clone(), args[usize::from(given)].clone()];
            assert_eq!(run(&one, &own, &[]).last(), expected.last(), "in place of {given}");
        }
        let once = in_place(&two, &two, 0, 2).unwrap();
        let both = in_place(&once, &once, 0, 1);
        assert!(both.is_none(), "a buffer takes one place");
    }

    fn in_place_of_one(kernel: &Kernel, given: u16, result: u16) -> Option<Kernel> {
        in_place(kernel, kernel, given, result)
    }

    #[test]
    fn what_another_iteration_may_read_stays_apart() {
        let shifted = "%i loop parallel %8\n%7 const 7 : i64\n%j sub %7, %i : i64
            %x load %p[%j] : f32\n%s store %r[%i], %x : f32\n%e end %i";
        let summed = "%a alloc register 1 : f32\n%0 const 0 : i64\n%i loop parallel %8
            %y load %p[%i] : f32\n%s store %r[%i], %y : f32\n%e end %i\n%j loop parallel %8
            %x load %p[%j] : f32\n%t store %a[%0], %x : f32\n%f end %j";
        let afterwards = "%a alloc register 1 : f32\n%0 const 0 : i64\n%i loop parallel %8
            %y load %q[%i] : f32\n%s store %r[%i], %y : f32\n%x load %p[%i] : f32
            %t store %a[%0], %x : f32\n%e end %i";
        // The second iteration of the inner loop would read what the first has written.
        let again = "%i loop parallel %8\n%j loop serial %8\n%x load %p[%i] : f32
            %z add %x, %x : f32\n%s store %r[%i], %z : f32\n%e end %j\n%f end %i";
        let one_place = "%0 const 0 : i64\n%i loop parallel %8\n%x load %p[%0] : f32
            %z add %x, %x : f32\n%s store %r[%0], %z : f32\n%e end %i";
        for body in [shifted, summed, afterwards, again, one_place] {
            assert!(in_place_of_one(&kernel(body), 0, 2).is_none(), "{body}");
        }
        let fits =
            "%i loop parallel %8\n%x load %p[%i] : f32\n%s store %r[%i], %x : f32\n%e end %i";
        assert!(in_place_of_one(&kernel(fits), 0, 2).is_some());
        assert!(
            in_place_of_one(&kernel(fits), 0, 0).is_none()
                && in_place_of_one(&kernel(fits), 2, 0).is_none()
        );
        let narrow: Kernel = format!("{HEAD}{fits}")
            .replace("buffer 0 : f32[8]", "buffer 0 : f32[9]")
            .parse()
            .unwrap();
        assert!(in_place_of_one(&narrow, 0, 2).is_none(), "lengths differ");
    }
}
