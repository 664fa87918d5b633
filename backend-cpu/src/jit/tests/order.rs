//! Scheduled bodies: the same kernel in another order.

use super::super::schedule::{blocks, order, schedule};
use super::kernels::{gelu, softmax};
use super::{Random, inputs, isas, tuned};
use zyx_core::ir::interp::{self, Options};
use zyx_core::ir::{Kernel, Op, Value, verify};

fn scheduled() -> Vec<(Kernel, Kernel)> {
    let kernels = [softmax(8, 256), gelu(4096)];
    let pairs = isas().into_iter().flat_map(|isa| {
        kernels.each_ref().map(|kernel| {
            let kernel = tuned(kernel, isa);
            let after = schedule(&kernel, isa).expect("long chains");
            (kernel, after)
        })
    });
    pairs.collect()
}

#[test]
fn another_order_is_the_same_kernel() {
    for (before, after) in scheduled() {
        verify(&after).expect("a kernel");
        assert_ne!(before, after);
        let start = inputs(&before, &mut Random(7));
        let run = |kernel: &Kernel| {
            let mut buffers = start.clone();
            interp::interpret(kernel, &mut buffers, &[], &Options::default()).expect("it runs");
            buffers
        };
        assert_eq!(run(&before), run(&after), "{before}\n{after}");
    }
}

#[test]
fn no_store_moves_in_front_of_a_load() {
    for (before, _) in scheduled() {
        for range in blocks(&before) {
            let order = order(&before, &range, 16);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(range.clone()), "each op once");
            let place = |i: usize| order.iter().position(|&j| j == i);
            let is_param = |i: &usize, is: fn(&Op) -> Option<Value>| {
                let op = before.op(Value(*i as u32));
                is(&op).is_some_and(|buf| matches!(before.op(buf), Op::Param { .. }))
            };
            let loads = |i: &usize| {
                is_param(i, |op| if let Op::Load { buf, .. } = op { Some(*buf) } else { None })
            };
            let stores = |i: &usize| {
                is_param(i, |op| if let Op::Store { buf, .. } = op { Some(*buf) } else { None })
            };
            for store in range.clone().filter(stores) {
                for load in (range.start..store).filter(loads) {
                    assert!(place(load) < place(store), "%{load} before %{store}\n{before}");
                }
            }
        }
    }
}
