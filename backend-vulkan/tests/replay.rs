//! How often lists of launches are recorded and submitted as recorded; the counts are the process's, so
//! these tests have it to themselves.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Mutex;
use zyx_backend_vulkan::{Vulkan, replay_counts};
use zyx_core::Scalar;
use zyx_core::hal::{Arg, Command, Device, Recording, lock};
use zyx_core::ir::Verified;
use zyx_tests::device::contract::add_to_some;
use zyx_tests::robust::replay::steps_with_other_scalars_are_replayed;

/// Held by whoever counts.
static COUNTING: Mutex<()> = Mutex::new(());

fn counts() -> [u64; 2] {
    let counts = replay_counts();
    [counts.recorded, counts.submitted]
}

#[test]
fn a_hundred_steps_of_adamw_are_submitted_as_recorded() {
    let _alone = lock(&COUNTING);
    steps_with_other_scalars_are_replayed("vulkan", Vulkan::default, counts);
}

#[test]
fn other_grids_are_recorded_anew_and_other_scalars_are_not() {
    let _alone = lock(&COUNTING);
    let Some(device) = zyx_tests::device::open(&Vulkan::default()) else {
        return zyx_tests::device::skipped("vulkan");
    };
    let program = device.compile(&Verified::new(&add_to_some(64)).unwrap()).unwrap();
    let (mut stream, buffer) = (device.stream().unwrap(), device.alloc(256).unwrap());
    let mut recording = Recording::default();
    let mut play = |groups: u64, x: f32| {
        let args =
            [Arg::Buffer(&buffer, 0), Arg::Scalar(groups), Arg::Scalar(Scalar::from(x).bits())];
        let command = Command { program: &program, args: &args, after: &[] };
        let before = counts();
        device.replay(&mut stream, &mut recording, &[command; 4]).unwrap();
        // Waits, so that no recording is under way.
        let end = device.record(&mut stream).unwrap();
        device.synchronize(&end).unwrap();
        [0, 1].map(|i| counts()[i] - before[i])
    };
    assert_eq!(play(64, 1.0), [0, 0], "launched");
    assert_eq!(play(64, 2.0), [1, 1], "recorded");
    assert_eq!(play(64, 3.0), [0, 1], "other scalars");
    assert_eq!(play(9, 3.0), [0, 0], "another grid, launched");
    assert_eq!(play(64, 4.0), [0, 1], "the grid of before");
    assert_eq!(play(9, 5.0), [1, 1], "the other grid, recorded");
    assert_eq!(play(9, 6.0), [0, 1], "and submitted");
}
