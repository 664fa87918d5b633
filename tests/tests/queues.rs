//! Random graphs on several queues: the dependencies of a plan are all that a device has to keep to.
//!
//! Twenty programs at a time become one plan, whose launches then run as one to eight queues might
//! that advance at random. Results have the bits of the list in order, so no dependency is
//! missing, through values or through memory that temporaries share.

use zyx_backend_cpu::Cpu;
use zyx_tests::ladder::{chosen, count};
use zyx_tests::robust::faulty::{Faults, Faulty};
use zyx_tests::robust::queues::{TOGETHER, outputs};
use zyx_tests::zyx_core::{Result, Runtime};

#[test]
fn random_graphs_on_queues() -> Result<()> {
    let (plain, queued, faults) = (Runtime::default(), Runtime::default(), Faults::default());
    plain.register(Cpu::default());
    queued.register(Faulty::new(Cpu::default(), &faults));
    let (plain, queued) = (plain.device("cpu")?, queued.device("cpu")?);
    let (mut launches, mut lists) = (0, 0);
    for group in chosen(0..count(10_000) / TOGETHER) {
        faults.queues(1 + group as usize % 8, group);
        let before = queued.stats();
        let got = outputs(group * TOGETHER, &queued)?;
        let spent = queued.stats().since(&before);
        launches += spent.launches;
        lists += spent.plan_hits + spent.plan_misses;
        let expected = outputs(group * TOGETHER, &plain)?;
        let differs = got.iter().zip(&expected).position(|(got, expected)| got != expected);
        assert_eq!(differs, None, "ZYX_SEED={group}: an output differs from the list in order");
    }
    assert!(launches > 3 * lists, "{launches} launches in {lists} lists leave nothing to order");
    Ok(())
}
