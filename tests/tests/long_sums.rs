//! Long sums on the CPU.

mod common;

use common::device;
use zyx_tests::long_sums;
use zyx_tests::zyx_core::Result;

#[test]
fn moments_of_numbers_far_from_zero() -> Result<()> {
    long_sums::moments_of_numbers_far_from_zero(&device())
}

#[test]
fn sums_of_equal_numbers_in_every_shape() -> Result<()> {
    long_sums::sums_of_equal_numbers_in_every_shape(&device())
}
