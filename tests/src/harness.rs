//! Devices for tests, and the macro that turns cases into tests of a backend.
//!
//! A process opens each device once and all its tests share it: drivers are not made for a
//! context per test. A device that is absent skips its tests by name on standard error, past the
//! capture of the test runner; with `ZYX_REQUIRE=cpu,opencl` an absent device of that list fails
//! them instead.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};
use zyx_core::hal::Backend;
use zyx_core::{DType, Device, Runtime};

/// The device of a backend, registered on first use; `None`, announced, if there is none.
///
/// # Panics
/// When the device is absent but required.
pub fn device(spec: &str, test: &str, register: impl FnOnce(&Runtime)) -> Option<Device> {
    static OPEN: Mutex<BTreeMap<String, Result<Device, String>>> = Mutex::new(BTreeMap::new());
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = open.entry(spec.to_owned()).or_insert_with(|| {
        let runtime = RUNTIME.get_or_init(Runtime::default);
        register(runtime);
        runtime.device(spec).map_err(|error| error.to_string())
    });
    match found.clone() {
        Ok(device) => Some(device),
        Err(reason) => {
            drop(open);
            let required = std::env::var("ZYX_REQUIRE").unwrap_or_default();
            let backend = spec.split(':').next();
            assert!(
                !required.split(',').any(|name| Some(name.trim()) == backend),
                "{spec} is required but absent: {reason}"
            );
            // Written directly: the runner captures `eprintln!` of tests that pass.
            let _ = writeln!(std::io::stderr(), "skipped {test}: {reason}");
            None
        }
    }
}

/// A device that no other test uses, whose counters tell what this test did; `None`, announced, if there is none.
///
/// # Panics
/// When the device is absent but required.
pub fn own_device<B: Backend>(spec: &str, test: &str, backend: impl Fn() -> B) -> Option<Device> {
    device(spec, test, |runtime| runtime.register(backend()))?;
    let runtime = Runtime::default();
    runtime.register(backend());
    Some(runtime.device(spec).expect("it opened before"))
}

/// Whether the device stores elements of `dtype`; announced, like an absent device, if not.
pub fn stores(device: &Device, dtype: DType, test: &str) -> bool {
    let stores = device.caps().storage.contains(dtype);
    if !stores {
        let _ = writeln!(std::io::stderr(), "skipped {test}: {device} does not store {dtype}");
    }
    stores
}

/// A case on a dtype, if it takes one: what it is called, and what runs it.
pub type Case = (&'static str, fn(&Device));

/// All cases on all their dtypes, for a test that runs the suite as a whole.
pub fn cases() -> Vec<Case> {
    crate::conformance_cases!(@as table)
}

/// Tests of a backend: every case, over dtypes where the case takes one.
///
/// ```ignore
/// zyx_tests::conformance!("cpu", Cpu::default());
/// ```
///
/// expands to a module `conformance` of `rstest` functions, about one per case and dtype.
#[macro_export]
macro_rules! conformance {
    ($spec:expr, $backend:expr) => {
        /// The conformance suite.
        mod conformance {
            #[allow(unused_imports, reason = "the backend's expression names items around it")]
            use super::*;

            fn device(test: &str) -> Option<$crate::zyx_core::Device> {
                $crate::harness::device($spec, test, |runtime| runtime.register($backend))
            }

            /// Dtypes are computed, natively or not, or refused by name.
            #[test]
            fn is_whole() {
                if let Some(device) = device("is_whole") {
                    $crate::backends::suite_is_whole(&device);
                }
            }

            /// On a device of its own: what other tests compute would be checked, too.
            #[test]
            fn checked() {
                if device("checked").is_some() {
                    let runtime = $crate::zyx_core::Runtime::default();
                    runtime.register($backend);
                    $crate::cases::checked::all(&runtime.device($spec).expect("it was there"));
                }
            }

            $crate::conformance_cases!();
        }
    };
}

/// The list of cases, in one place: `all` on every dtype, `floats` on floats, `ints` on integers,
/// `wide` on dtypes of 16 bits, `once` without a dtype.
#[macro_export]
#[doc(hidden)]
macro_rules! conformance_cases {
    () => {
        $crate::conformance_cases! { @as modules }
    };
    (@as $kind:ident) => {
        $crate::conformance_cases! { @$kind
            elementwise {
                all unary, all binary, all derived, all select, all shapes, all views, all kinds,
                all rounding_per_op, once promotion,
            }
            convert { all casts, all bits, wide codes, }
            create { all constants, all round_trip, once data, }
            movement { all compositions, all joining, once refusals, }
            reduce {
                all axes, all long, all of_views, all not_finite, all positions, all cumulative,
                all statistics, once short_axes,
            }
            matmul { all shapes, all fused, all biases, once mixed, once integers, once quantised, }
            index { all gather, all select, all scatter, all long_scatters, once one_hot, }
            indices { once all, once known, }
            layer {
                floats softmax, floats normalise, floats cross_entropy, floats losses,
                floats picking,
            }
            window { all convolution, all max_pool, floats mean_pool, }
            functional { once values, }
            factors { once grouped, }
            fourier { once transforms, }
            random { once blocks, floats floats, ints integers, once coins, }
            gradient { once unary, once binary, once structure, once layers, }
            maths { floats known, once edges, floats pairs, floats exact, ints divisors, }
            arrange {
                all views, once grids, once indexing, all picking, all placing,
            }
            order { all sort, }
            attention { once streamed, once arranged, }
            statistics {
                all long_scans, all running, floats associative, all ordered, once counts,
            }
            matrix { all operations, }
            kernels {
                floats gallery_in, once arguments_of_kernels, once kernels_that_are_wrong,
                once primitives_of_groups, once loops_of_many_iterations,
                once code_of_one_backend, once single_pass_scans, once queues_of_work,
                once litmus_of_groups,
            }
            narrow { once codes, once products, once weights, }
            large { once far, all eight_axes, }
            gradient_ops { once maths, once places, once ordered, once counted, }
            special {
                ints integer_division, once constants_keep_nan, once reshape_refused,
                once layer_norm_by_hand, once aliases, once shared_work,
            }
        }
    };
    (@modules $($module:ident { $($kind:ident $case:ident,)* })*) => {
        $(mod $module {
            #[allow(unused_imports, reason = "a module may have no case that takes a dtype")]
            use $crate::zyx_core::DType;
            $($crate::conformance_cases! { @$kind test $module $case })*
        })*
    };
    (@table $($module:ident { $($kind:ident $case:ident,)* })*) => {{
        let mut table: Vec<$crate::harness::Case> = Vec::new();
        $($(table.extend($crate::conformance_cases!(@$kind row $module $case));)*)*
        table
    }};
    (@all $to:ident $module:ident $case:ident) => {
        $crate::conformance_cases! { @$to $module $case
            [Bool U8 U16 U32 U64 I8 I16 I32 I64 F16 BF16 F32 F64] }
    };
    (@wide $to:ident $module:ident $case:ident) => {
        $crate::conformance_cases! { @$to $module $case [U16 I16 F16 BF16] }
    };
    (@floats $to:ident $module:ident $case:ident) => {
        $crate::conformance_cases! { @$to $module $case [F16 BF16 F32 F64] }
    };
    (@ints $to:ident $module:ident $case:ident) => {
        $crate::conformance_cases! { @$to $module $case [U8 U16 U32 U64 I8 I16 I32 I64] }
    };
    (@once $to:ident $module:ident $case:ident) => {
        $crate::conformance_cases! { @$to $module $case }
    };
    (@test $module:ident $case:ident [$($dtype:ident)*]) => {
        #[$crate::rstest::rstest]
        fn $case(#[values($(DType::$dtype),*)] dtype: DType) {
            let test = format!("{}::{}({dtype})", stringify!($module), stringify!($case));
            if let Some(device) = super::device(&test)
                && $crate::harness::stores(&device, dtype, &test)
            {
                $crate::cases::$module::$case(&device, dtype);
            }
        }
    };
    (@test $module:ident $case:ident) => {
        #[$crate::rstest::rstest]
        fn $case() {
            let test = concat!(stringify!($module), "::", stringify!($case));
            if let Some(device) = super::device(test) {
                $crate::cases::$module::$case(&device);
            }
        }
    };
    (@row $module:ident $case:ident [$($dtype:ident)*]) => {
        [$({
            const NAME: &str =
                concat!(stringify!($module), "::", stringify!($case), " ", stringify!($dtype));
            let case: fn(&$crate::zyx_core::Device) = |device| {
                let dtype = $crate::zyx_core::DType::$dtype;
                if $crate::harness::stores(device, dtype, NAME) {
                    $crate::cases::$module::$case(device, dtype);
                }
            };
            (NAME, case)
        }),*]
    };
    (@row $module:ident $case:ident) => {{
        let case: fn(&$crate::zyx_core::Device) = $crate::cases::$module::$case;
        [(concat!(stringify!($module), "::", stringify!($case)), case)]
    }};
}
