//! Random programs, rung by rung, on the device that is always present.

use zyx_tests::generate::Limits;
use zyx_tests::ladder::{Rung, climb, count};
use zyx_tests::zyx_core::Runtime;

#[test]
fn random_programs() {
    let device = Runtime::default().device("reference").expect("always present");
    climb(&[Rung::device(&device)], 0..count(10_000), Limits::default());
}
