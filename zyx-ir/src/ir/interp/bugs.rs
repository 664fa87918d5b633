//! Bugs planted in right kernels, each of which has to be found, and named for what it is.
//!
//! Every case is an edit of the text of a kernel that is right: the edit is the mistake somebody
//! writing a kernel, a pass or a lowering could make. Found means: `verify` breaks the rule, or
//! the run ends in the fault, in the order of counters and in shuffled orders.

use super::tests::{bytes, parse};
use super::*;
use crate::ir::verify::{Rule, verify};

/// Sums each group's eight elements in shared storage, halving the distance in each round.
const REDUCE: &str = "kernel reduce
    buffer 0 : i32[16] read
    buffer 1 : i32[2] write
    %a param 0 read : i32
    %o param 1 write : i32
    %0 const 0 : i64
    %1 const 1 : i64
    %2 const 2 : i64
    %3 const 3 : i64
    %4 const 4 : i64
    %8 const 8 : i64
    %g loop group %2
    %m alloc shared 8 : i32
    %l loop local %8
    %b mul %g, %8 : i64
    %i add %b, %l : i64
    %x load %a[%i] : i32
    %s store %m[%l], %x : i32
    %w barrier shared
    %r loop serial %3
    %d shr %4, %r : i64
    %c lt %l, %d : bool
    %f if %c
    %p add %l, %d : i64
    %y load %m[%p] : i32
    %z load %m[%l] : i32
    %t add %y, %z : i32
    %u store %m[%l], %t : i32
    %ff end %f
    %v barrier shared
    %rr end %r
    %h eq %l, %0 : bool
    %k if %h
    %q load %m[%0] : i32
    %st store %o[%g], %q : i32
    %kk end %k
    %ll end %l
    %gg end %g";

/// A row of `i + 1` vectors with a tail, row sums in a register.
const ROWS: &str = "kernel rows
    buffer 0 : i32[10] read
    buffer 1 : i32[10] write
    buffer 2 : i32[3] write
    scalar 0 : i64 0..=10
    %a param 0 read : i32
    %o param 1 write : i32
    %q param 2 write : i32
    %n var 0 : i64
    %0 const 0 : i64
    %3 const 3 : i64
    %4 const 4 : i64
    %z const 0 : i32
    %i loop parallel %3
    %r alloc register 1 : i32
    %s store %r[%0], %z : i32
    %b mul %i, %4 : i64
    %bs splat %b : i64x4
    %l lanes : i64x4
    %k add %bs, %l : i64x4
    %ns splat %n : i64x4
    %c lt %k, %ns : boolx4
    %g guard %b, %c : i64
    %x load %a[%g] : i32x4
    %y add %x, %x : i32x4
    %t store %o[%g], %y : i32x4
    %f fold add %y : i32
    %j loop serial %3
    %u load %r[%0] : i32
    %v add %u, %f : i32
    %w store %r[%0], %v : i32
    %jj end %j
    %m load %r[%0] : i32
    %p store %q[%i], %m : i32
    %ii end %i";

/// Counts how often each of four values occurs.
const HISTOGRAM: &str = "kernel histogram
    buffer 0 : i64[8] read
    buffer 1 : i64[4] readwrite
    %a param 0 read : i64
    %o param 1 readwrite : i64
    %0 const 0 : i64
    %1 const 1 : i64
    %3 const 3 : i64
    %8 const 8 : i64
    %i loop group %8
    %x load %a[%i] : i64
    %y max %x, %0 : i64
    %k min %y, %3 : i64
    %s atomic.relaxed add %o[%k], %1 : i64
    %e end %i";

/// The last of four groups sums what all have stored.
const LAST: &str = "kernel last
    buffer 0 : i64[4] readwrite
    buffer 1 : i64[1] readwrite
    buffer 2 : i64[1] write
    %p param 0 readwrite : i64
    %c param 1 readwrite : i64
    %o param 2 write : i64
    %0 const 0 : i64
    %1 const 1 : i64
    %3 const 3 : i64
    %4 const 4 : i64
    %g loop group %4
    %s store %p[%g], %g : i64
    %t atomic.acqrel add %c[%0], %1 : i64
    %d eq %t, %3 : bool
    %i if %d
    %r alloc register 1 : i64
    %z store %r[%0], %0 : i64
    %k loop serial %4
    %x load %p[%k] : i64
    %y load %r[%0] : i64
    %u add %x, %y : i64
    %w store %r[%0], %u : i64
    %e end %k
    %v load %r[%0] : i64
    %q store %o[%0], %v : i64
    %f end %i
    %h end %g";

/// Groups number themselves, and each adds to what the one before it has.
const CHAIN: &str = "kernel chain
    buffer 0 : i64[5] readwrite
    buffer 1 : i64[4] write
    %c param 0 readwrite : i64
    %o param 1 write : i64
    %0 const 0 : i64
    %1 const 1 : i64
    %4 const 4 : i64
    %g loop group %4
    %t atomic.relaxed add %c[%0], %1 : i64
    %h lt %0, %t : bool
    %i guard %t, %h : i64
    %x load.acquire_spin %c[%i] : i64
    %n add %t, %1 : i64
    %y add %x, %n : i64
    %s store.relaxed %c[%n], %y : i64
    %w store %o[%t], %y : i64
    %e end %g";

/// Local iterations pass values through a buffer.
const EXCHANGE: &str = "kernel exchange
    buffer 0 : i32[4] readwrite
    buffer 1 : i32[4] write
    %a param 0 readwrite : i32
    %o param 1 write : i32
    %3 const 3 : i64
    %4 const 4 : i64
    %l loop local %4
    %x cast %l : i32
    %s store %a[%l], %x : i32
    %b barrier group
    %r sub %3, %l : i64
    %y load %a[%r] : i32
    %d shuffle xor %y, %3 : i32
    %t store %o[%l], %d : i32
    %e end %l";

fn arguments(kernel: &Kernel) -> (Vec<Vec<u8>>, Vec<u64>) {
    let buffer = |info: &crate::ir::ParamInfo| match info.dtype.size() {
        4 => bytes(&(0..info.len as i32).collect::<Vec<_>>()),
        _ => bytes(&(0..info.len as i64).collect::<Vec<_>>()),
    };
    let vars = kernel.vars().iter().map(|info| info.max as u64).collect();
    // Counters start at zero.
    let mut buffers: Vec<Vec<u8>> = kernel.params().iter().map(buffer).collect();
    match kernel.name() {
        "last" => buffers[1].fill(0),
        "chain" => buffers[0].fill(0),
        _ => {}
    }
    (buffers, vars)
}

fn run(kernel: &Kernel, shuffle: Option<u64>) -> Result<Vec<Vec<u8>>, InterpError> {
    let (mut buffers, vars) = arguments(kernel);
    let options = Options { shuffle, max_iterations: 10_000, ..Options::default() };
    interpret(kernel, &mut buffers, &vars, &options).map(|()| buffers)
}

/// What finds a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// `verify` alone.
    Verify(Rule),
    /// `verify`, and the run too.
    Both(Rule, &'static str),
    /// The run alone; either word will do where the order decides which comes first.
    Run(&'static str),
}

use Found::{Both, Run, Verify};

/// The name of a fault.
fn name(fault: &Fault) -> &'static str {
    match fault {
        Fault::OutOfBounds { .. } => "bounds",
        Fault::Uninitialised { .. } => "uninitialised",
        Fault::Race { .. } => "race",
        Fault::StoredTwice { .. } => "twice",
        Fault::Divergent { .. } => "divergent",
        Fault::Starved { .. } => "starved",
        Fault::Endless { .. } => "endless",
    }
}

/// The kernel, what is replaced by what, and how it is found.
const BUGS: &[(&str, &str, &str, Found)] = &[
    // Synchronisation.
    (REDUCE, "%v barrier shared\n", "", Run("race")),
    (REDUCE, "%w barrier shared\n", "", Run("race uninitialised")),
    (REDUCE, "%c lt %l, %d : bool", "%c le %l, %d : bool", Run("race bounds")),
    (REDUCE, "%h eq %l, %0 : bool", "%h le %l, %1 : bool", Run("race")),
    (
        REDUCE,
        "%ff end %f\n    %v barrier shared",
        "%v barrier shared\n%ff end %f",
        Both(Rule::Flow, "divergent"),
    ),
    (REDUCE, "%r loop serial %3", "%r loop serial %l", Both(Rule::Flow, "divergent")),
    (REDUCE, "%r loop serial %3", "%r loop parallel %3", Both(Rule::Flow, "race")),
    (EXCHANGE, "%b barrier group\n", "", Run("race")),
    (EXCHANGE, "%b barrier group", "%b barrier shared", Run("race")),
    (
        EXCHANGE,
        "%d shuffle xor %y, %3 : i32",
        "%q lt %l, %3 : bool\n%w if %q\n%dd shuffle xor %y, %3 : i32\n%ww end %w\n%d neg %y : i32",
        Both(Rule::Flow, "divergent"),
    ),
    (LAST, "acqrel", "relaxed", Run("race")),
    (LAST, "acqrel", "release", Run("race")),
    (LAST, "%d eq %t, %3 : bool", "%d le %0, %t : bool", Run("race bounds twice")),
    (
        HISTOGRAM,
        "%s atomic.relaxed add %o[%k], %1 : i64",
        "%t load %o[%k] : i64\n%u add %t, %1 : i64\n%s store %o[%k], %u : i64",
        Run("race"),
    ),
    (
        HISTOGRAM,
        "%s atomic.relaxed add %o[%k], %1 : i64",
        "%t load %o[%k] : i64\n%s atomic.relaxed add %o[%k], %t : i64",
        Run("race"),
    ),
    (CHAIN, "%s store.relaxed %c[%n], %y : i64\n", "", Run("starved")),
    (CHAIN, "%i guard %t, %h : i64", "%i guard %4, %h : i64", Run("starved")),
    (CHAIN, "store.relaxed", "store", Run("race")),
    (CHAIN, "store.relaxed", "store.acquire_spin", Verify(Rule::Access)),
    // Places.
    (REDUCE, "%p add %l, %d : i64", "%p add %d, %d : i64", Run("race bounds")),
    (REDUCE, "%m alloc shared 8 : i32", "%m alloc shared 7 : i32", Run("bounds")),
    (ROWS, "%g guard %b, %c : i64", "%g add %b, %0 : i64", Run("bounds")),
    (ROWS, "%c lt %k, %ns : boolx4", "%c le %k, %ns : boolx4", Run("bounds")),
    (ROWS, "%b mul %i, %4 : i64", "%b sub %i, %4 : i64", Run("bounds")),
    (ROWS, "%p store %q[%i]", "%p store %q[%3]", Both(Rule::Bounds, "bounds")),
    (ROWS, "%p store %q[%i]", "%p store %q[%0]", Run("race")),
    (ROWS, "%b mul %i, %4 : i64", "%b mul %i, %3 : i64", Run("race")),
    (HISTOGRAM, "%k min %y, %3 : i64", "%k add %y, %0 : i64", Run("bounds")),
    // Storage.
    (ROWS, "%s store %r[%0], %z : i32\n", "", Run("uninitialised")),
    (
        ROWS,
        "%i loop parallel %3\n    %r alloc register 1 : i32",
        "%r alloc register 1 : i32\n%i loop parallel %3",
        Verify(Rule::Storage),
    ),
    (
        ROWS,
        "%jj end %j\n    %m load %r[%0] : i32\n    %p store %q[%i], %m : i32",
        "%p store %q[%i], %v : i32\n%jj end %j",
        Run("twice"),
    ),
    (
        REDUCE,
        "%g loop group %2\n    %m alloc shared 8 : i32",
        "%m alloc shared 8 : i32\n%g loop group %2",
        Verify(Rule::Storage),
    ),
    (REDUCE, "%m alloc shared 8 : i32", "%m alloc register 8 : i32", Verify(Rule::Storage)),
    // Form.
    (ROWS, "%x load %a[%g] : i32x4", "%x load %o[%g] : i32x4", Verify(Rule::Access)),
    (ROWS, "%t store %o[%g]", "%t store %a[%g]", Verify(Rule::Access)),
    (ROWS, "%f fold add %y : i32\n", "%f fold add %y : i64\n", Verify(Rule::Types)),
    (
        ROWS,
        "%jj end %j\n    %m load %r[%0] : i32",
        "%jj end %j\n    %m neg %v : i32",
        Verify(Rule::Operands),
    ),
    (
        REDUCE,
        "%l loop local %8",
        "%y0 store %o[%g], %q0 : i32\n%l loop local %8",
        Verify(Rule::Nests),
    ),
    (REDUCE, "%l loop local %8", "%l loop local %g", Verify(Rule::Nests)),
    (
        LAST,
        "%k loop serial %4",
        "%k0 const 9000000 : i64\n%k loop serial %k0",
        Run("bounds endless"),
    ),
];

#[test]
fn planted_bugs_are_found() {
    assert!(BUGS.len() >= 20);
    for (n, &(kernel, from, to, found)) in BUGS.iter().enumerate() {
        let right = parse(kernel);
        verify(&right).unwrap_or_else(|e| panic!("{e}\n{right}"));
        let first = run(&right, None).unwrap_or_else(|e| panic!("{e}\n{right}"));
        for seed in 0..4 {
            let result = run(&right, Some(seed)).unwrap_or_else(|e| panic!("{e}\n{right}"));
            assert_eq!(result, first, "{right}");
        }
        assert_eq!(kernel.matches(from).count(), 1, "bug {n} is planted once: {from}");
        let mut text = kernel.replace(from, to);
        if text.contains("%q0") {
            text = text.replace("%g loop group", "%q0 const 1 : i32\n%g loop group");
        }
        let wrong = parse(&text);
        let (rule, faults) = match found {
            Verify(rule) => (Some(rule), None),
            Both(rule, faults) => (Some(rule), Some(faults)),
            Run(faults) => (None, Some(faults)),
        };
        let said = verify(&wrong);
        assert_eq!(said.as_ref().err().map(|e| e.rule), rule, "bug {n}: {said:?}\n{wrong}");
        for shuffle in [None, Some(0), Some(1), Some(2), Some(3)] {
            let Some(faults) = faults else { continue };
            match run(&wrong, shuffle) {
                Err(InterpError::Fault { fault, .. }) if faults.contains(name(&fault)) => {}
                other => panic!("bug {n} ({shuffle:?}): {other:?}, not {faults}\n{wrong}"),
            }
        }
    }
}
