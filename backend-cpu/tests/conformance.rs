//! The conformance suite and random programs on the CPU.

use backend_cpu::Cpu;

zyx_tests::conformance!("cpu", Cpu::default());

/// Random programs, after those rungs of the ladder that exonerate every layer above.
#[test]
fn ladder() {
    zyx_tests::ladder::on_device("cpu", |runtime| runtime.register(Cpu::default()), 10_000);
}
