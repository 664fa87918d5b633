//! Promises of size, of launches and of loops.

use zyx_backend_cpu::{Config, Cpu, Level};
use zyx_tests::device::{contract, open};

zyx_tests::promises!("cpu", Cpu::default());
zyx_tests::counts!("cpu", Cpu::default());

/// By machine code and block by block.
#[test]
fn a_loop_ends_when_its_condition_holds() {
    let portable = Config { level: Some(Level::Portable), ..Config::default() };
    for cpu in [Cpu::default(), Cpu { config: portable }] {
        let device = open(&cpu).expect("there is always a CPU");
        contract::a_loop_ends_when_its_condition_holds(&device);
    }
}
