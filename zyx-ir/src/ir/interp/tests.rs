//! Kernels as text, run and compared: what ops mean, and the faults a run finds.

use super::*;
use crate::dtype::{DType, Element};

pub(super) fn parse(text: &str) -> Kernel {
    text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"))
}

pub(super) fn bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    let mut bytes = Vec::new();
    elements.iter().for_each(|x| x.write_le(&mut bytes));
    bytes
}

fn elements<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::DTYPE.size()).map(T::read_le).collect()
}

/// Runs a kernel under every kind of options; all must give the same bytes.
fn run(text: &str, buffers: &[Vec<u8>], vars: &[u64]) -> Vec<Vec<u8>> {
    let kernel = parse(text);
    if let Err(error) = crate::ir::verify(&kernel) {
        panic!("{error}\n{kernel}");
    }
    let mut result: Option<Vec<Vec<u8>>> = None;
    let orders = [None, Some(1), Some(2), Some(99)];
    for (check, shuffle) in orders.into_iter().flat_map(|o| [(true, o), (false, o)]) {
        let options = Options { check, shuffle, ..Options::default() };
        let mut copy = buffers.to_vec();
        interpret(&kernel, &mut copy, vars, &options).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
        assert_eq!(result.get_or_insert(copy.clone()), &copy, "{options:?}");
    }
    result.unwrap()
}

/// The fault a kernel ends with, and the value it is reported at.
fn fault(text: &str, buffers: &[Vec<u8>], vars: &[u64]) -> (Value, Fault) {
    let kernel = parse(text);
    let error = interpret(&kernel, &mut buffers.to_vec(), vars, &Options::default());
    match error {
        Err(InterpError::Fault { value, fault, .. }) => (value, fault),
        other => panic!("{other:?}\n{kernel}"),
    }
}

#[test]
fn serial_sum_uses_a_register() {
    let text = "kernel sum
        buffer 0 : f32[4] read
        buffer 1 : f32[1] write
        %a param 0 read : f32
        %o param 1 write : f32
        %0 const 0 : i64
        %z const 0.0 : f32
        %n const 4 : i64
        %r alloc register 1 : f32
        %s store %r[%0], %z : f32
        %i loop serial %n
        %x load %a[%i] : f32
        %y load %r[%0] : f32
        %t add %x, %y : f32
        %u store %r[%0], %t : f32
        %e end %i
        %v load %r[%0] : f32
        %w store %o[%0], %v : f32";
    let out = run(text, &[bytes(&[1f32, 2.0, 3.0, 4.5]), bytes(&[0f32])], &[]);
    assert_eq!(elements::<f32>(&out[1]), [10.5]);
}

#[test]
fn vars_and_i32_indices() {
    let text = "kernel fill
        buffer 0 : i32[8] write
        scalar 0 : i32 0..=8
        scalar 1 : i32 0..=0
        %o param 0 write : i32
        %n var 0 : i32
        %x var 1 : i32
        %i loop parallel %n : i32
        %y add %i, %x : i32
        %s store %o[%i], %y : i32
        %e end %i";
    let kernel = text.replace("scalar 1 : i32 0..=0", "scalar 1 : i32 -9..=9");
    let out = run(&kernel, &[bytes(&[7i32; 8])], &[3, -2i32 as u32 as u64]);
    assert_eq!(elements::<i32>(&out[0]), [-2, -1, 0, 7, 7, 7, 7, 7]);
    let error = interpret(&parse(text), &mut [bytes(&[0i32; 8])], &[9, 0], &Options::default());
    assert!(matches!(error, Err(InterpError::Arguments { .. })), "{error:?}");
    let error = interpret(&parse(text), &mut [bytes(&[0i32; 7])], &[3, 0], &Options::default());
    assert!(matches!(error, Err(InterpError::Arguments { .. })), "{error:?}");
}

#[test]
fn vectors_guards_gathers_and_folds() {
    let text = "kernel v
        buffer 0 : i32[6] read
        buffer 1 : i32[8] write
        buffer 2 : i32[1] write
        %a param 0 read : i32
        %o param 1 write : i32
        %p param 2 write : i32
        %0 const 0 : i64
        %4 const 4 : i64
        %l lanes : i64x4
        %b splat %4 : i64x4
        %k add %b, %l : i64x4
        %6 const 6 : i64
        %n splat %6 : i64x4
        %c lt %k, %n : boolx4
        %g guard %4, %c : i64
        %x load %a[%g] : i32x4
        %h guard %k, %c : i64x4
        %y load %a[%h] : i32x4
        %z load %a[%l] : i32x4
        %t add %x, %z : i32x4
        %s store %o[%0], %t : i32x4
        %u store %o[%g], %y : i32x4
        %f fold add %t : i32
        %w store %p[%0], %f : i32";
    let input = bytes(&[1i32, 2, 3, 4, 5, 6]);
    let out = run(text, &[input, bytes(&[9i32; 8]), bytes(&[0i32])], &[]);
    assert_eq!(elements::<i32>(&out[1]), [6, 8, 3, 4, 5, 6, 9, 9]);
    assert_eq!(elements::<i32>(&out[2]), [21]);
}

#[test]
fn storage_of_vectors_is_indexed_by_vector() {
    let text = "kernel v
        buffer 0 : f32[8] read
        buffer 1 : f32[4] write
        %a param 0 read : f32
        %o param 1 write : f32
        %0 const 0 : i64
        %1 const 1 : i64
        %4 const 4 : i64
        %r alloc register 2 : f32x4
        %x load %a[%0] : f32x4
        %y load %a[%4] : f32x4
        %s store %r[%0], %x : f32x4
        %t store %r[%1], %y : f32x4
        %u load %r[%1] : f32x4
        %v load %r[%0] : f32x4
        %w sub %u, %v : f32x4
        %z store %o[%0], %w : f32x4";
    let input = bytes(&[1f32, 2.0, 3.0, 4.0, 10.0, 20.0, 30.0, 40.0]);
    let out = run(text, &[input, bytes(&[0f32; 4])], &[]);
    assert_eq!(elements::<f32>(&out[1]), [9.0, 18.0, 27.0, 36.0]);
}

/// Reverses each group's eight elements through shared storage.
const REVERSE: &str = "kernel reverse
    buffer 0 : i32[16] read
    buffer 1 : i32[16] write
    %a param 0 read : i32
    %o param 1 write : i32
    %2 const 2 : i64
    %8 const 8 : i64
    %7 const 7 : i64
    %g loop group %2
    %m alloc shared 8 : i32
    %l loop local %8
    %b mul %g, %8 : i64
    %i add %b, %l : i64
    %x load %a[%i] : i32
    %s store %m[%l], %x : i32
    %w barrier shared
    %r sub %7, %l : i64
    %y load %m[%r] : i32
    %t store %o[%i], %y : i32
    %e end %l
    %f end %g";

#[test]
fn barriers_split_local_loops_into_phases() {
    let input: Vec<i32> = (0..16).collect();
    let out = run(REVERSE, &[bytes(&input), bytes(&[0i32; 16])], &[]);
    let expected: Vec<i32> = (0..8).rev().chain((8..16).rev()).collect();
    assert_eq!(elements::<i32>(&out[1]), expected);
}

#[test]
fn a_missing_barrier_is_a_race() {
    let text = REVERSE.replace("%w barrier shared\n", "");
    // In order, iteration 4 is the first to read what an earlier iteration wrote; before, it is
    // simply not there yet.
    let buffers = [bytes(&[0i32; 16]), bytes(&[0i32; 16])];
    assert!(matches!(fault(&text, &buffers, &[]).1, Fault::Uninitialised { .. }));
    let text = text.replace("%r sub %7, %l : i64", "%r div %l, %2 : i64");
    assert!(matches!(fault(&text, &buffers, &[]).1, Fault::Race { .. }));
}

/// Sixteen times one half squared, and one: by `threads` of a group.
fn matrices(threads: usize, factor: &str) -> String {
    format!(
        "kernel k
        buffer 0 : f32[512] write
        %p param 0 write : f32
        %n const {threads} : i64
        %h const 0.5 : {factor}
        %o const 1.0 : f32
        %a splat %h : {factor}x8
        %c splat %o : f32x8
        %8 const 8 : i64
        %i loop local %n
        %m mma 0 %a, %a, %c : f32x8
        %j mul %i, %8 : i64
        %s store %p[%j], %m : f32x8
        %e end %i"
    )
}

#[test]
fn teams_multiply_matrices() {
    let out = run(&matrices(64, "f16"), &[vec![0; 2048]], &[]);
    assert_eq!(elements::<f32>(&out[0]), vec![5.0; 512]);
}

#[test]
fn matrix_instructions_need_whole_teams_and_their_dtype() {
    let (_, half) = fault(&matrices(16, "f16"), &[vec![0; 2048]], &[]);
    assert_eq!(half, Fault::Divergent { other: None });
    let other = crate::ir::verify(&parse(&matrices(32, "bf16"))).unwrap_err();
    assert_eq!(other.rule, crate::ir::Rule::Types, "{other}");
}

/// Sixteen times one half squared, and one: by a wide team, of which each thread stores four slots
/// of both factors; panels begin at `first`.
fn panels(threads: usize, between: &str, first: usize) -> String {
    let slot = |i: usize| {
        format!(
            "%t{i} const {} : i64\n%j{i} add %i, %t{i} : i64\n%s{i} store.async_copy %m[%j{i}], %a : f16x8\n",
            128 * i
        )
    };
    let stores: String = (0..4).map(slot).collect();
    format!(
        "kernel k
        buffer 0 : f32[4096] write
        %p param 0 write : f32
        %n const {threads} : i64
        %h const 0.5 : f16
        %o const 1.0 : f32
        %a splat %h : f16x8
        %c splat %o : f32x32
        %32 const 32 : i64
        %f const {first} : i64
        %1 const 1 : i64
        %g loop group %1
        %m alloc shared 512 : f16x8
        %i loop local %n
        {stores}
        {between}
        %x panel %m[%f] : f16x8
        %w mma 2 %x, %x, %c : f32x32
        %j mul %i, %32 : i64
        %s store %p[%j], %w : f32x32
        %e end %i
        %ge end %g"
    )
}

#[test]
fn wide_teams_multiply_what_is_in_shared_storage() {
    let out = run(&panels(128, "%b barrier shared", 2), &[vec![0; 16384]], &[]);
    assert_eq!(elements::<f32>(&out[0]), vec![5.0; 4096]);
}

#[test]
fn panels_are_read_behind_a_barrier_by_whole_teams_where_rows_begin() {
    let found =
        |threads, between, first| fault(&panels(threads, between, first), &[vec![0; 16384]], &[]).1;
    let barrier = "%b barrier shared";
    assert_eq!(found(64, barrier, 0), Fault::Divergent { other: None });
    assert!(matches!(found(128, "", 0), Fault::Race { .. }));
    for first in [8, 512] {
        assert_eq!(
            found(128, barrier, first),
            Fault::OutOfBounds { index: first as i64, len: 512 }
        );
    }
}

#[test]
fn shuffles_exchange_within_a_subgroup() {
    let text = "kernel s
        buffer 0 : i32[8] write
        %o param 0 write : i32
        %8 const 8 : i64
        %1 const 1 : i64
        %l loop local %8
        %x cast %l : i32
        %d shuffle down %x, %1 : i32
        %y shuffle xor %d, %1 : i32
        %s store %o[%l], %y : i32
        %e end %l";
    let kernel = parse(text);
    let mut buffers = [bytes(&[0i32; 8])];
    let options = Options { subgroup: 4, ..Options::default() };
    interpret(&kernel, &mut buffers, &[], &options).unwrap();
    assert_eq!(elements::<i32>(&buffers[0]), [2, 1, 3, 3, 6, 5, 7, 7]);
}

#[test]
fn atomics_add_up() {
    let text = "kernel hist
        buffer 0 : i64[2] readwrite
        %o param 0 readwrite : i64
        %n const 10 : i64
        %2 const 2 : i64
        %g loop group %n
        %b rem %g, %2 : i64
        %x atomic.relaxed add %o[%b], %g : i64
        %e end %g";
    let out = run(text, &[bytes(&[0i64, 100])], &[]);
    assert_eq!(elements::<i64>(&out[0]), [20, 125]);
}

/// The last group to arrive sums what all have stored: ordered by release and acquire alone.
const LAST_GROUP: &str = "kernel last
    buffer 0 : i64[4] readwrite
    buffer 1 : i64[2] readwrite
    %p param 0 readwrite : i64
    %c param 1 readwrite : i64
    %0 const 0 : i64
    %1 const 1 : i64
    %3 const 3 : i64
    %4 const 4 : i64
    %g loop group %4
    %v mul %g, %g : i64
    %s store %p[%g], %v : i64
    %t atomic.acqrel add %c[%0], %1 : i64
    %d eq %t, %3 : bool
    %i if %d
    %k loop serial %4
    %x load %p[%k] : i64
    %y load %c[%1] : i64
    %z add %x, %y : i64
    %w store %c[%1], %z : i64
    %e end %k
    %f end %i
    %h end %g";

#[test]
fn release_and_acquire_order_groups() {
    let buffers = [bytes(&[0i64; 4]), bytes(&[0i64; 2])];
    let out = run(LAST_GROUP, &buffers, &[]);
    assert_eq!(elements::<i64>(&out[1]), [4, 14]);
    let relaxed = LAST_GROUP.replace("acqrel", "relaxed");
    assert!(matches!(fault(&relaxed, &buffers, &[]).1, Fault::Race { .. }));
    let acquire_only = LAST_GROUP.replace("acqrel", "acquire");
    assert!(matches!(fault(&acquire_only, &buffers, &[]).1, Fault::Race { .. }));
}

#[test]
fn faults_say_where() {
    let text = "kernel k
        buffer 0 : f32[4] write
        %o param 0 write : f32
        %n const 5 : i64
        %x const 1.0 : f32
        %i loop parallel %n
        %s store %o[%i], %x : f32
        %e end %i";
    let error =
        interpret(&parse(text), &mut [bytes(&[0f32; 5])], &[], &Options::default()).unwrap_err();
    assert_eq!(error.fault(), Some(&Fault::OutOfBounds { index: 4, len: 4 }));
    let message = error.to_string();
    assert!(message.contains("%4 `store %0[%3], %2 : f32` at %3 = 4"), "{message}");
}

#[test]
fn iterations_are_limited() {
    let text = "kernel k
        %n const 1000000000000 : i64
        %i loop serial %n
        %e end %i";
    let options = Options { max_iterations: 1000, ..Options::default() };
    let error = interpret(&parse(text), &mut [], &[], &options).unwrap_err();
    assert_eq!(error.fault(), Some(&Fault::Endless { limit: 1000 }));
    let options = Options { patience: 70, ..Options::default() };
    let error = interpret(&parse(text), &mut [], &[], &options).unwrap_err();
    assert_eq!(error.fault(), Some(&Fault::Endless { limit: 70 }));
    let short = text.replace("1000000000000", "1000");
    assert!(interpret(&parse(&short), &mut [], &[], &options).is_ok());
}

#[test]
fn nothing_runs_in_loops_of_no_length() {
    for kind in ["serial", "parallel", "group", "local"] {
        let text = format!(
            "kernel k
            buffer 0 : f32[0] write
            scalar 0 : i64 -5..=0
            %o param 0 write : f32
            %n var 0 : i64
            %x const 1.0 : f32
            %i loop {kind} %n
            %s store %o[%i], %x : f32
            %e end %i"
        );
        run(&text, &[vec![]], &[-5i64 as u64]);
    }
}

#[test]
fn every_dtype_is_loaded_and_stored() {
    for &dtype in DType::ALL {
        let text = format!(
            "kernel copy
            buffer 0 : {dtype}[3] read
            buffer 1 : {dtype}[3] write
            %a param 0 read : {dtype}
            %o param 1 write : {dtype}
            %n const 3 : i64
            %i loop parallel %n
            %x load %a[%i] : {dtype}
            %s store %o[%i], %x : {dtype}
            %e end %i"
        );
        let input: Vec<u8> = match dtype {
            DType::Bool => vec![1, 0, 1],
            _ => (1..=3 * dtype.size() as u8).collect(),
        };
        let out = run(&text, &[input.clone(), vec![0; input.len()]], &[]);
        assert_eq!(out[1], input);
    }
}

/// `out[i] = in[j] + 1`, `j` from `i` by the given lines, both arguments bound as given.
fn bound(index: &str, kind: &str, params: [Binding; 2]) -> Result<Vec<i32>, InterpError> {
    let text = format!(
        "kernel k
        buffer 0 : i32[4] read
        buffer 1 : i32[4] write
        %a param 0 read : i32
        %o param 1 write : i32
        %0 const 0 : i64
        %3 const 3 : i64
        %4 const 4 : i64
        %one const 1 : i32
        %i loop {kind} %4
        {index}
        %x load %a[%j] : i32
        %y add %x, %one : i32
        %s store %o[%i], %y : i32
        %e end %i"
    );
    let program = Program::new(&parse(&text)).unwrap();
    let mut memory = bytes(&[0i32, 10, 20, 30, 40, 50]);
    program.run(&mut [&mut memory], &params, &[], &Options::default())?;
    Ok(elements(&memory))
}

#[test]
fn arguments_may_share_memory_only_in_place() {
    let at = |offset| Binding { buffer: 0, offset };
    let own = "%j add %i, %0 : i64";
    // Each takes the element before its own, which has been overwritten by then.
    let before = "%k add %i, %3 : i64\n%j rem %k, %4 : i64";
    for kind in ["serial", "parallel"] {
        let in_place = bound(own, kind, [at(0), at(0)]).unwrap();
        assert_eq!(in_place, [1, 11, 21, 31, 40, 50]);
        let apart = bound(own, kind, [at(8), at(0)]);
        assert!(matches!(apart, Err(InterpError::Arguments { .. })), "{apart:?}");
        let shifted = bound(before, kind, [at(0), at(0)]).unwrap_err();
        assert!(matches!(shifted.fault(), Some(Fault::Race { .. })), "{shifted}");
    }
}

/// `n` steps are counted until the element is 1; more where loops are longer than numbers can count.
const STEPS: &str = "kernel k
    buffer 0 : i64[6] readwrite
    %p param 0 readwrite : i64
    %1 const 1 : i64
    %0 const 0 : i64
    %6 const 6 : i64
    %most const 9223372036854775807 : i64
    %i loop parallel %6
    %m alloc register 1 : i64
    %x load %p[%i] : i64
    %s store %m[%0], %x : i64
    %n alloc register 1 : i64
    %t store %n[%0], %0 : i64
    %w loop serial %most
    %y load %m[%0] : i64
    %c le %y, %1 : bool
    %b break %c
    %z shr %y, %1 : i64
    %u store %m[%0], %z : i64
    %o load %n[%0] : i64
    %q add %o, %1 : i64
    %v store %n[%0], %q : i64
    %e end %w
    %r load %n[%0] : i64
    %a store %p[%i], %r : i64
    %f end %i";

#[test]
fn a_loop_ends_when_its_condition_holds() {
    let out = run(STEPS, &[bytes(&[1i64, 2, 7, 8, 0, 1 << 40])], &[]);
    assert_eq!(elements::<i64>(&out[0]), [0, 1, 2, 3, 0, 40]);
    let text = STEPS.replace("%c le %y, %1 : bool", "%c lt %y, %0 : bool");
    let options = Options { max_iterations: 500, ..Options::default() };
    let mut buffers = [bytes(&[1i64; 6])];
    let error = interpret(&parse(&text), &mut buffers, &[], &options).unwrap_err();
    assert_eq!(error.fault(), Some(&Fault::Endless { limit: 500 }));
}

#[test]
fn a_break_ends_the_innermost_loop_alone() {
    // In iteration i, places 4 * i + 0..=i are stored to; the last iteration leaves after its loop.
    let text = "kernel k
        buffer 0 : i32[16] readwrite
        %p param 0 readwrite : i32
        %x const 1 : i32
        %4 const 4 : i64
        %2 const 2 : i64
        %i loop serial %4
        %b mul %i, %4 : i64
        %j loop serial %4
        %a add %b, %j : i64
        %s store %p[%a], %x : i32
        %c le %i, %j : bool
        %l break %c
        %e end %j
        %d le %2, %i : bool
        %m break %d
        %f end %i";
    let out = run(text, &[bytes(&[0i32; 16])], &[]);
    assert_eq!(elements::<i32>(&out[0]), [1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0]);
}

/// Elements are doubled by all threads together until the one at `%k` is above 20.
const PHASES: &str = "kernel k
    buffer 0 : i32[4] readwrite
    %p param 0 readwrite : i32
    %0 const 0 : i64
    %1 const 1 : i64
    %4 const 4 : i64
    %9 const 99 : i64
    %t const 20 : i32
    %l loop local %4
    %n add %l, %1 : i64
    %o rem %n, %4 : i64
    %w loop serial %9
    %k load %p[%0] : i32
    %c lt %t, %k : bool
    %b break %c
    %x load %p[%o] : i32
    %g barrier group
    %y add %x, %x : i32
    %s store %p[%o], %y : i32
    %h barrier group
    %e end %w
    %z load %p[%l] : i32
    %i barrier group
    %u store %p[%o], %z : i32
    %f end %l";

#[test]
fn threads_leave_a_loop_with_barriers_together() {
    let out = run(PHASES, &[bytes(&[3i32, 4, 5, 6])], &[]);
    assert_eq!(elements::<i32>(&out[0]), [48, 24, 32, 40]);
    // Each by its own number: some wait while others have gone on.
    let text = PHASES.replace("%k load %p[%0] : i32", "%k cast %l : i32");
    let text = text.replace("%t const 20 : i32", "%t const 2 : i32");
    let error = crate::ir::verify(&parse(&text)).unwrap_err();
    assert_eq!(error.rule, crate::ir::Rule::Flow, "{error}");
    let (_, fault) = fault(&text, &[bytes(&[3i32, 4, 5, 6])], &[]);
    assert!(matches!(fault, Fault::Divergent { .. } | Fault::Race { .. }), "{fault:?}");
}
