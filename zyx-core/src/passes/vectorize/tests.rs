use super::*;
use crate::passes::law::devices;
use crate::passes::samples;

fn vectorized(kernel: &Kernel, caps: &Caps) -> String {
    let site = sites(kernel, caps).last().cloned().unwrap();
    apply(kernel, &site).to_string()
}

#[test]
fn contiguous_loops_use_no_gathers_and_one_masked_iteration() {
    let text = vectorized(&samples::chain(37), &devices()[1]);
    assert!(text.contains("load %0[%9] : f32x16"), "{text}");
    assert_eq!(text.matches("guard").count(), 1, "{text}");
    assert!(!text.contains("i64x"), "no index is a vector: {text}");
}

#[test]
fn without_masks_the_rest_is_scalar() {
    let text = vectorized(&samples::chain(37), &devices()[2]);
    assert!(!text.contains("guard"), "{text}");
    assert!(text.contains(": f32x4") && text.contains("] : f32\n"), "{text}");
}

#[test]
fn sums_fold_once_after_the_loop() {
    let text = vectorized(&samples::sum_all(100), &devices()[1]);
    assert_eq!(text.matches("fold add").count(), 1, "{text}");
    assert!(text.contains("where"), "masked lanes keep the accumulator: {text}");
}

#[test]
fn padding_compares_lane_numbers_not_wide_indices() {
    let text = vectorized(&samples::pad(4, 17, 2, 3), &devices()[1]);
    assert!(!text.contains("i64x"), "{text}");
    assert!(text.contains("lanes : i32x16"), "{text}");
}

#[test]
fn devices_without_gathers_are_not_offered_strided_loops() {
    let kernel = samples::transpose(9, 20);
    assert_eq!(sites(&kernel, &devices()[2]).len(), 0);
    assert_eq!(sites(&kernel, &devices()[1]).len(), 2);
}
