//! Gradients of random programs on the CPU against forward differentiation in `f64`.

mod common;

#[test]
fn gradients_of_random_programs() {
    zyx_tests::slopes::run(&common::device(), 2_000);
}
