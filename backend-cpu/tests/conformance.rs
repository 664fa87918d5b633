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

/// Programs shared by sizes give the results of programs of their own.
#[test]
fn results_do_not_depend_on_earlier_sizes() {
    let n = zyx_tests::ladder::count(500);
    let differ = zyx_tests::ladder::fresh_and_after_others("cpu", |r| r.register(cpu()), n);
    println!("{differ} of {n} differ in last bits");
}
