//! The conformance suite and random programs on the CPU, with the instruction set that `ZYX_CPU` names or the best.

use zyx_backend_cpu::{Config, Cpu};

fn cpu() -> Cpu {
    Cpu { config: Config::from_env().expect("limits that can be read") }
}

zyx_tests::conformance!("cpu", cpu());

/// Random programs, after those rungs of the ladder that exonerate every layer above.
#[test]
fn ladder() {
    zyx_tests::ladder::on_device("cpu", |runtime| runtime.register(cpu()), 10_000);
}
