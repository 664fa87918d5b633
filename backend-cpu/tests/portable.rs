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

/// Programs shared by sizes give the results of programs of their own.
#[test]
fn results_do_not_depend_on_earlier_sizes() {
    let n = zyx_tests::ladder::count(500);
    let differ = zyx_tests::ladder::fresh_and_after_others("cpu", |r| r.register(portable()), n);
    println!("{differ} of {n} differ in last bits");
}
