//! The conformance suite and random programs on the CPU without machine code: kernels run block by
//! block, contractions in the library's portable kernels.

use zyx_backend_cpu::{Config, Cpu, Level};

fn portable() -> Cpu {
    Cpu { config: Config { level: Some(Level::Portable), ..Config::default() } }
}

zyx_tests::conformance!("cpu", portable());

/// Random programs, after those rungs of the ladder that exonerate every layer above.
#[test]
fn ladder() {
    zyx_tests::ladder::on_device("cpu", |runtime| runtime.register(portable()), 10_000);
}
