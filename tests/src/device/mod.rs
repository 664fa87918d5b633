//! The tests of a device by the two traits alone: kernels in, bytes out, no tensor between.
//!
//! A backend's crate turns them into tests with one line:
//!
//! ```ignore
//! zyx_tests::device!("mine", MyBackend, full: MyBackend::default(), minimal: MyBackend::minimal());
//! ```
//!
//! [`contract`] is what `hal` promises of memory, streams, events, launches and errors; [`ops`] is
//! every op on every dtype against the op table, [`division`] the ops that devices round loosely on many
//! numbers; [`kernels`] are written kernels of each kind and
//! the sources they translate to; [`random`] are random ones; [`raw`] are kernels in a device's own language;
//! [`shuffles`] are exchange within subgroups.
#![allow(clippy::unwrap_used, reason = "a failing call is a failing test")]

pub mod contract;
pub mod division;
pub mod kernels;
pub mod ops;
pub mod random;
pub mod raw;
pub mod shuffles;

use zyx_core::hal::{Arg, Backend, Caps, Device};
use zyx_core::ir::{Access, Kernel, Verified};
use zyx_core::legalize::legalize;
use zyx_core::{DType, Scalar};

/// The first device of a backend. Without one the test is skipped, by name; with the backend among
/// the words of `ZYX_REQUIRE` that is a failure.
///
/// # Panics
/// When the device is absent but required.
pub fn open<B: Backend>(backend: &B) -> Option<B::Device> {
    match backend.open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            let required = std::env::var("ZYX_REQUIRE").unwrap_or_default();
            assert!(
                !required.split(',').any(|word| word.trim() == B::NAME),
                "ZYX_REQUIRE names {}, but there is no device: {error}",
                B::NAME
            );
            None
        }
    }
}

/// Says that a test has no device.
pub fn skipped(backend: &str) {
    let thread = std::thread::current();
    eprintln!("skipped {}: no {backend} device", thread.name().unwrap_or("a test"));
}

/// Little-endian bytes of scalars.
pub fn bytes(values: &[Scalar]) -> Vec<u8> {
    values.iter().flat_map(|x| x.bits().to_le_bytes()[..x.dtype().size()].to_vec()).collect()
}

/// The inverse of [`bytes`].
pub fn scalars(dtype: DType, bytes: &[u8]) -> Vec<Scalar> {
    let element = |chunk: &[u8]| {
        let mut wide = [0; 8];
        wide[..chunk.len()].copy_from_slice(chunk);
        Scalar::from_bits(dtype, u64::from_le_bytes(wide))
    };
    bytes.chunks_exact(dtype.size()).map(element).collect()
}

/// A legal kernel as a device compiles it.
///
/// # Panics
/// When it is malformed.
pub fn verified(kernel: &Kernel, caps: &Caps) -> Verified {
    let verified = Verified::new(kernel).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    if *verified == *kernel {
        return verified;
    }
    // Guards have to be legal as well.
    let legal = legalize(&verified, caps).unwrap_or_else(|e| panic!("{e}\n{verified}"));
    Verified::new(&legal).unwrap_or_else(|e| panic!("{e}\n{legal}"))
}

/// Runs `kernel` on buffers with these contents and these scalars; gives the buffers afterwards.
/// Each buffer lies at an offset into a larger one, so that offsets are tested throughout.
///
/// # Panics
/// When the device fails.
pub fn run<D: Device>(
    device: &D,
    kernel: &Kernel,
    buffers: &[Vec<u8>],
    vars: &[u64],
) -> Vec<Vec<u8>> {
    let program = match device.compile(&verified(kernel, device.caps())) {
        Ok(program) => program,
        Err(error) => panic!("{error}"),
    };
    let offset = device.caps().offset_align;
    let mut stream = device.stream().unwrap();
    let memory: Vec<_> = buffers
        .iter()
        .map(|bytes| {
            let buffer = device.alloc(bytes.len() + offset).unwrap();
            device.write(&mut stream, &buffer, offset, bytes).unwrap();
            buffer
        })
        .collect();
    let buffer_args = memory.iter().map(|buffer| Arg::Buffer(buffer, offset));
    let args: Vec<_> = buffer_args.chain(vars.iter().map(|&bits| Arg::Scalar(bits))).collect();
    device.launch(&mut stream, &program, &args).unwrap();
    let read = |(buffer, bytes): (_, &Vec<u8>)| {
        let mut out = vec![0; bytes.len()];
        device.read(&mut stream, buffer, offset, &mut out).unwrap();
        out
    };
    memory.iter().zip(buffers).map(read).collect()
}

/// Runs a kernel whose parameter 0 is the result, of `len` elements of `dtype`.
///
/// # Panics
/// When the device fails.
pub fn result<D: Device>(device: &D, kernel: &Kernel, inputs: &[Vec<Scalar>]) -> Vec<Scalar> {
    let out = kernel.params()[0];
    assert_ne!(out.access, Access::Read);
    let mut buffers = vec![vec![0; out.len as usize * out.dtype.size()]];
    buffers.extend(inputs.iter().map(|values| bytes(values)));
    scalars(out.dtype, &run(device, kernel, &buffers, &[])[0])
}

/// Tests of a device; see the module [`device`](mod@crate::device). `after` is done at the end of each
/// test.
#[macro_export]
macro_rules! device {
    ($name:expr, $backend:ty, $($variant:ident: $open:expr),+) => {
        $crate::device!($name, $backend, $($variant: $open),+; after: || {});
    };
    ($name:expr, $backend:ty, $variant:ident: $open:expr, $($rest:ident: $other:expr),+; after: $after:expr) => {
        $crate::device!($name, $backend, $variant: $open; after: $after);
        $crate::device!($name, $backend, $($rest: $other),+; after: $after);
    };
    ($name:expr, $backend:ty, $variant:ident: $open:expr; after: $after:expr) => {
        /// The device as the expression opens it.
        mod $variant {
            #[allow(unused_imports, reason = "the backend's expression names items around it")]
            use super::*;
            use $crate::zyx_core::hal::Backend;

            type Opened = <$backend as Backend>::Device;

            static DEVICE: std::sync::LazyLock<Option<Opened>> =
                std::sync::LazyLock::new(|| $crate::device::open(&$open));

            fn on(test: impl Fn(&Opened)) {
                match DEVICE.as_ref() {
                    Some(device) => test(device),
                    None => $crate::device::skipped($name),
                }
                ($after)();
            }

            #[test]
            fn a_device_that_is_not_there_is_an_error() {
                $crate::device::contract::a_device_that_is_not_there_is_an_error(&$open);
            }

            $crate::device!(@contract
                loops_cover_every_iteration a_loop_ends_when_its_condition_holds a_stream_keeps_its_order lists_replay_with_other_arguments
                streams_wait_for_events writes_larger_than_the_staging_arrive nothing_is_a_size
                too_much_memory_is_an_error_and_the_device_goes_on a_program_serves_many_threads
                buffers_may_be_dropped_while_in_use many_arguments_arrive
                dependent_commands_wait_for_one_another a_wait_ends_when_it_is_stopped events_measure_time
                replayed_lists_do_what_their_launches_do lists_replay_with_other_grids
                convolutions_of_any_strides
            );
            $crate::device!(@raw
                raw_code_computes raw_launches_join_replayed_lists raw_launches_are_refused
                raw_code_is_refused scalars_reach_raw_code raw_code_has_shared_storage
            );
            $crate::device!(@ops unary_ops binary_ops ternary_ops casts_and_bitcasts every_half);

            #[$crate::rstest::rstest]
            fn results_are_the_interpreters(
                #[values(
                    "arguments", "atomic_floats", "atomic_halves", "atomic_parts", "atomic_stores",
                    "atomic_waits", "atomics", "block", "breaks",
                    "doubles", "elementwise", "transpose_shared", "gather", "halves", "integers", "joint",
                    "matmul", "mma", "naive_sum", "parts", "reduce_shared", "stage_rows", "special",
                    "two_nests", "vectors", "wide"
                )]
                name: &str,
            ) {
                on(|device| $crate::device::kernels::results_are_the_interpreters(device, name));
            }

            #[$crate::rstest::rstest]
            fn random_kernels(#[values(false, true)] local: bool) {
                on(|device| $crate::device::random::device_kernels(device, local));
            }

            #[$crate::rstest::rstest]
            fn shuffles_exchange_every_dtype(
                #[values(
                    "bool", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"
                )]
                dtype: &str,
            ) {
                let dtype = $crate::zyx_core::DType::from_name(dtype).expect("a dtype");
                on(|device| $crate::device::shuffles::shuffles_exchange_every_dtype(device, dtype));
            }

            $crate::device!(@shuffles
                shuffles_take_lanes_of_each_width shuffles_follow_branches_and_loops
                shuffles_of_parts_of_subgroups_are_right_or_refused
            );

            #[test]
            fn unary_ops_of_infinite_constants() {
                on(|device| $crate::device::ops::unary_ops_of_infinite_constants(device));
            }

            #[test]
            fn constant_zeros_keep_their_sign() {
                on(|device| $crate::device::ops::constant_zeros_keep_their_sign(device));
            }

            #[test]
            fn quotients_and_roots_are_exact() {
                on(|device| $crate::device::division::quotients_and_roots_are_exact(device));
            }

            #[test]
            fn divisions_by_hidden_zeros_are_defined() {
                on(|device| $crate::device::division::divisions_by_hidden_zeros_are_defined(device));
            }

            #[test]
            fn random_kernels_legalised() {
                on(|device| $crate::device::random::legalised_kernels(device));
            }
        }
    };
    (@contract $($case:ident)*) => {$(
        #[test]
        fn $case() {
            on(|device| $crate::device::contract::$case(device));
        }
    )*};
    (@raw $($case:ident)*) => {$(
        #[test]
        fn $case() {
            on(|device| $crate::device::raw::$case(device));
        }
    )*};
    (@shuffles $($case:ident)*) => {$(
        #[test]
        fn $case() {
            on(|device| $crate::device::shuffles::$case(device));
        }
    )*};
    (@ops $($case:ident)*) => {$(
        #[$crate::rstest::rstest]
        fn $case(#[values(1, 2, 4, 16)] lanes: u8) {
            on(|device| $crate::device::ops::$case(device, lanes));
        }
    )*};
}
