//! Random graphs on queues that keep to dependencies only, beside queues in order.

use crate::generate::{Limits, program};
use crate::harness::own_device;
use crate::ladder::{chosen, count};
use zyx_core::hal::Backend;
use zyx_core::{Device, Result, Tensor};

/// Programs that become one plan.
pub const TOGETHER: u64 = 20;

/// The bytes of all outputs of the programs from this seed on, computed by one plan.
///
/// # Errors
/// When the device fails.
pub fn outputs(first: u64, device: &Device) -> Result<Vec<Vec<u8>>> {
    let mut tensors = Vec::new();
    for seed in first..first + TOGETHER {
        tensors.extend(program(seed, Limits::default()).build(device)?);
    }
    Tensor::realize_all(&tensors)?;
    tensors.iter().map(Tensor::to_bytes).collect()
}

/// The same bits by both, each group computed a few times: what runs beside what differs.
///
/// # Panics
/// When an output differs.
pub fn any_order_gives_the_same_bits<B: Backend>(
    spec: &str,
    in_order: impl Fn() -> B,
    any_order: impl Fn() -> B,
) {
    let test = "any_order_gives_the_same_bits";
    let Some(plain) = own_device(spec, test, in_order) else { return };
    let Some(free) = own_device(spec, test, any_order) else { return };
    let before = free.stats();
    for group in chosen(0..count(100) / TOGETHER) {
        let first = group * TOGETHER;
        let expected = outputs(first, &plain).expect("in order");
        for round in 0..4 {
            let found = outputs(first, &free).expect("in any order");
            let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(differs, None, "ZYX_SEED={group}, round {round}: an output differs");
        }
    }
    let since = free.stats().since(&before);
    let lists = since.plan_hits + since.plan_misses;
    assert!(since.launches > 2 * lists, "lists leave nothing to order: {since:?}");
}
