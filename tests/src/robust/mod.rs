//! Robustness: what a device must survive, as functions that take any backend.
//!
//! A backend's crate turns them into tests with one line, `zyx_tests::robustness!("mine",
//! MyBackend::default())`. [`faulty`] stands between the core and a device, counts every call and
//! lets a chosen one fail; [`donation`] takes the memory of inputs that die; [`faults`] lets each
//! call of a training step fail once; [`driver`] does so with the calls that a backend makes itself;
//! [`memory`] runs what is larger than the device; [`tuning`] runs kernels that a search chose; [`parts`]
//! cuts launches into parts; [`warm`] starts processes that find all of it on disk; [`queues`] compares
//! queues in order with others; [`replay`] counts how steps are submitted; [`training`] compares the losses of a real job with the CPU's, and
//! `zyx_tests::training!` makes that a test.

pub mod donation;
pub mod driver;
pub mod faults;
pub mod faulty;
pub mod memory;
pub mod parts;
pub mod queues;
pub mod replay;
pub mod training;
pub mod tuning;
pub mod warm;

/// Robustness tests of a backend.
///
/// ```ignore
/// zyx_tests::robustness!("cpu", Cpu::default());
/// ```
#[macro_export]
macro_rules! robustness {
    ($spec:expr, $backend:expr) => {
        /// What the device must survive.
        mod robustness {
            #[allow(unused_imports, reason = "the backend's expression names items around it")]
            use super::*;

            $crate::robustness!(@each $spec, $backend,
                faults: every_call_may_fail_once,
                faults: memory_that_is_freed_is_found,
                faults: a_read_under_way_fails_for_itself,
                memory: what_exceeds_the_device_moves_to_the_host,
                memory: plans_that_exceed_the_device_run_step_by_step,
                memory: what_cannot_fit_is_an_error_with_a_table,
                memory: threads_share_a_full_device,
                memory: plans_that_had_no_room_recover,
                donation: random_programs_with_dying_inputs,
                donation: an_optimizers_state_stays_in_place,
                donation: a_refused_launch_takes_nothing,
                donation: threads_share_what_is_pending,
                tuning: tuned_kernels_compute_the_same,
            );
        }
    };
    (@each $spec:expr, $backend:expr, $($module:ident: $case:ident,)*) => {$(
        #[test]
        fn $case() {
            $crate::robust::$module::$case($spec, || $backend);
        }
    )*};
}

/// The first losses of a training job beside the CPU's, as a test of a backend.
///
/// ```ignore
/// zyx_tests::training!("mine", MyBackend::default());
/// ```
#[macro_export]
macro_rules! training {
    ($spec:expr, $backend:expr) => {
        #[test]
        fn first_losses_agree_with_the_cpu() {
            $crate::robust::training::first_losses_agree_with_the_cpu($spec, || $backend);
        }
    };
}

/// A process finds on disk what an earlier one compiled and searched: a test of a backend that keeps
/// programs there. What follows are variables for the processes; see [`warm::Process`].
///
/// ```ignore
/// zyx_tests::warm_start!(a_second_process_compiles_nothing, "mine", MyBackend::default());
/// ```
#[macro_export]
macro_rules! warm_start {
    ($case:ident, $spec:expr, $backend:expr $(, $variable:literal = $value:expr)*) => {
        $crate::warm_start!($case: $case, $spec, $backend $(, $variable = $value)*);
    };
    ($name:ident: $case:ident, $spec:expr, $backend:expr $(, $variable:literal = $value:expr)*) => {
        #[test]
        fn $name() {
            let test = concat!(module_path!(), "::", stringify!($name));
            let variables = &[$(($variable, $value)),*];
            let process = $crate::robust::warm::Process { test, variables };
            $crate::robust::warm::$case($spec, || $backend, process);
        }
    };
}
