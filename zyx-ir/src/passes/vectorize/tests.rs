use super::*;
use crate::passes::property_tests::devices;
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

/// A row that is there or not is no matter of lanes: devices branch.
#[test]
fn conditions_that_all_lanes_share_stay_scalars() {
    let kernel: Kernel = "kernel rows
         buffer 0 : f32[64] read
         buffer 1 : f32[128] write
         %p   param 0 read : f32
         %q   param 1 write : f32
         %n   const 4 : i64
         %m   const 32 : i64
         %o   const 1 : i64
         %h   const 3 : i64
         %i   loop parallel %n
           %f   sub %i, %o : i64
           %c   lt %o, %i : bool
           %d   lt %i, %h : bool
           %a   and %c, %d : bool
           %r   mul %f, %m : i64
           %s   mul %i, %m : i64
           %j   loop parallel.1 %m
             %x   add %r, %j : i64
             %g   guard %x, %a : i64
             %v   load %p[%g] : f32
             %y   add %s, %j : i64
             %w   store %q[%y], %v : f32
           %e   end %j
         %z   end %i"
        .parse()
        .unwrap();
    let inner = loops(&kernel)[1].open;
    let vectors = (PASS.apply)(&kernel, &Site::new(inner, &[16, 1]));
    let guards = vectors.iter().filter_map(|(_, op, _)| match op {
        Op::Guard { cond, .. } => Some(vectors.ty(cond).lanes),
        _ => None,
    });
    assert_eq!(guards.collect::<Vec<_>>(), [1], "{vectors}");
}
