//! One kernel per way of being wrong: each is rejected with the right rule.

use super::*;
use crate::caps::Caps;
use crate::{DType, DTypeSet};

fn parse(text: &str) -> Kernel {
    text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The rule that the body breaks; `%p` reads, `%o` is written, `%z` is 0, `%n` is 4.
fn broken(body: &str) -> (Rule, String) {
    let kernel = parse(&format!("{HEAD}{body}"));
    let error = verify(&kernel).expect_err(&format!("verifies:\n{kernel}"));
    assert!(error.to_string().contains(&error.reason));
    (error.rule, error.reason)
}

const HEAD: &str = "kernel k
    buffer 0 : f32[4] read
    buffer 1 : f32[4] write
    scalar 0 : i64 0..=4
    %p param 0 read : f32
    %o param 1 write : f32
    %v var 0 : i64
    %z const 0 : i64
    %n const 4 : i64
    %x const 1.0 : f32
    %t const true : bool
    ";

#[test]
fn types_have_to_fit() {
    for body in [
        "%a add %z, %x : i64",
        "%a add %z, %z : i32",
        "%a lt %x, %x : f32",
        "%a sin %z : i64",
        "%a sub %t, %t : bool",
        "%a not %x : f32",
        "%a where %z, %x, %x : f32",
        "%a muladd %x, %x, %z : f32",
        "%a const 0x1ff : i8",
        "%a const 1 : i64x2",
        "%a cast %z : f32x2",
        "%a bitcast %z : f32",
        "%a splat %x : f32",
        "%a lanes : f32x4",
        "%a lanes : i64",
        "%l lanes : i64x4\n%a extract %l, 4 : i64",
        "%l lanes : i64x4\n%a fold sub %l : i64",
        "%l lanes : i64x4\n%a fold add %l : i64x4",
        "%l lanes : i64x4\n%s splat %l : i64x4",
        "%l lanes : i64x4\n%a load %p[%l] : f32x2",
        "%l lanes : u32x4\n%a load %p[%l] : f32x4",
        "%a load %p[%x] : f32",
        "%a load %p[%z] : f64",
        "%s store %o[%z], %z : i64",
        "%a guard %z, %x : i64",
        "%l lanes : i64x4\n%s splat %t : boolx2\n%a guard %l, %s : i64x4",
        "%s splat %t : boolx2\n%g guard %z, %s : i64\n%a load %p[%g] : f32x4",
        "%r alloc register 2 : f32x4\n%a load %r[%z] : f32",
        "%l loop serial %x\n%e end %l",
        "%l loop serial %z : i32\n%e end %l",
        "%i if %z\n%e end %i",
        "%a mma 0 %x, %x, %x : f32",
        "%m alloc shared 8 : f32\n%a panel %m[%z] : f32",
        "%m alloc register 8 : f16x8\n%a panel %m[%z] : f16x8",
        "%h const 1.0 : f16\n%a splat %h : f16x8\n%c splat %x : f32x32\n%b mma 2 %a, %a, %c : f32x32",
        "%a const 1 : f32x0",
    ] {
        assert_eq!(broken(body).0, Rule::Types, "{body}");
    }
}

#[test]
fn operands_are_values_in_scope() {
    for body in [
        "%a neg %p : f32",
        "%a load %z[%z] : f32",
        "%s store %o[%z], %x : f32\n%a neg %s : f32",
        "%i if %t\n%a neg %x : f32\n%e end %i\n%b neg %a : f32",
        "%l loop serial %n\n%e end %l\n%b neg %l : i64",
        "%g guard %z, %t : i64\n%a neg %g : i64",
        "%i if %t\n%a not %i : bool\n%e end %i",
        "%a guard %p, %t : f32",
        "%m alloc shared 8 : f16x8\n%a panel %m[%z] : f16x8\n%b cast %a : f32x8",
        "%a panel %z[%z] : f16x8",
    ] {
        assert_eq!(broken(body).0, Rule::Operands, "{body}");
    }
    let mut b = crate::ir::Builder::raw("forward");
    let x = b.index(1);
    let op = Op::Binary { op: crate::BinaryOp::Add, x, y: Value(7) };
    b.push(op, Type::scalar(DType::I64));
    assert_eq!(verify(&b.finish()).unwrap_err().rule, Rule::Operands);
}

#[test]
fn regions_nest() {
    let mut b = crate::ir::Builder::raw("crossed");
    let n = b.index(1);
    let (outer, inner) = (
        b.open_loop(crate::ir::LoopKind::Serial, 0, n),
        b.open_loop(crate::ir::LoopKind::Serial, 0, n),
    );
    for open in [outer, inner] {
        b.push(Op::End { open }, Type::scalar(DType::Bool));
    }
    assert_eq!(verify(&b.finish()).unwrap_err().rule, Rule::Regions);
}

#[test]
fn arguments_are_bound_once_and_as_declared() {
    for body in
        ["%a param 0 read : f32", "%a param 2 read : f32", "%a var 1 : i64", "%a var 0 : i64"]
    {
        assert_eq!(broken(body).0, Rule::Arguments, "{body}");
    }
    let text = "kernel k\nbuffer 0 : f32[4] read\n%p param 0 write : f32";
    assert_eq!(verify(&parse(text)).unwrap_err().rule, Rule::Arguments);
    let text = "kernel k\nscalar 0 : i64 0..=1\n%n const 2 : i64\n%l loop serial %n
        %p var 0 : i64\n%e end %l";
    assert_eq!(verify(&parse(text)).unwrap_err().rule, Rule::Arguments);
}

#[test]
fn access_rights_and_orders_are_kept() {
    for body in [
        "%a load %o[%z] : f32",
        "%s store %p[%z], %x : f32",
        "%a atomic.relaxed add %o[%z], %x : f32",
        "%a load.release %p[%z] : f32",
        "%s store.acquire %o[%z], %x : f32",
        "%r alloc register 1 : f32\n%s store.relaxed %r[%z], %x : f32",
        "%s store.async_copy %o[%z], %x : f32",
        "%m alloc shared 1 : f32\n%a load.async_copy %m[%z] : f32",
        "%m alloc shared 1 : f32\n%a atomic.plain add %m[%z], %x : f32",
    ] {
        let body = body.replace("atomic.plain", "atomic.streaming");
        assert_eq!(broken(&body).0, Rule::Access, "{body}");
    }
}

#[test]
fn parallel_loops_form_an_outer_nest() {
    for body in [
        "%s loop serial %n\n%g loop group %n\n%e end %g\n%f end %s",
        "%s loop local %n\n%g loop group %n\n%e end %g\n%f end %s",
        "%s if %t\n%g loop local %n\n%e end %g\n%f end %s",
        "%g loop group %n\n%h loop group %n\n%e end %h\n%f end %g",
        "%g loop group.3 %n\n%e end %g",
        "%g loop group %n\n%l loop local %n\n%e end %l\n%m loop local %n\n%f end %m\n%h end %g",
        "%g loop group %n\n%h loop group.1 %g\n%e end %h\n%f end %g",
        "%a load %p[%z] : f32\n%m cast %a : i64\n%g loop group %m\n%e end %g",
        "%g loop group %n\n%s store %o[%g], %x : f32\n%l loop local %n\n%e end %l\n%f end %g",
    ] {
        assert_eq!(broken(body).0, Rule::Nests, "{body}");
    }
}

#[test]
fn storage_belongs_to_who_may_touch_it() {
    for body in [
        "%r alloc register 1 : f32\n%l loop parallel %n\n%s store %r[%z], %x : f32\n%e end %l",
        "%r alloc register 1 : f32\n%l loop local %n\n%s store %r[%z], %x : f32\n%e end %l",
        "%m alloc shared 1 : f32\n%l loop group %n\n%a load %m[%z] : f32\n%e end %l",
        "%l loop serial %n\n%m alloc shared 1 : f32\n%e end %l",
        "%l loop local %n\n%m alloc shared 1 : f32\n%e end %l",
    ] {
        assert_eq!(broken(body).0, Rule::Storage, "{body}");
    }
}

#[test]
fn barriers_are_reached_together() {
    for body in [
        "%b barrier group",
        "%g loop group %n\n%b barrier group\n%e end %g",
        "%l loop local %n\n%c lt %l, %v : bool\n%i if %c\n%b barrier shared\n%e end %i\n%f end %l",
        "%l loop local %n\n%s loop serial %l\n%b barrier shared\n%e end %s\n%f end %l",
        "%l loop local %n\n%s loop parallel %n\n%b barrier shared\n%e end %s\n%f end %l",
        "%l loop local %n\n%c lt %l, %v : bool\n%i if %c\n%b shuffle xor %x, %n : f32\n%e end %i
         %f end %l",
    ] {
        assert_eq!(broken(body).0, Rule::Flow, "{body}");
    }
    // What all iterations share decides for all alike.
    let fine = "%l loop local %n\n%a load %p[%z] : f32\n%c lt %a, %x : bool\n%i if %c
        %s loop serial %v\n%b barrier shared\n%e end %s\n%f end %i\n%g end %l";
    verify(&parse(&format!("{HEAD}{fine}"))).unwrap();
}

#[test]
fn certain_misses_are_errors_and_doubts_are_listed() {
    for body in [
        "%a load %p[%n] : f32",
        "%m const -1 : i64\n%s store %o[%m], %x : f32",
        "%l loop serial %n\n%i add %l, %n : i64\n%a load %p[%i] : f32\n%e end %l",
        "%r alloc register 4 : f32\n%a load %r[%n] : f32",
    ] {
        assert_eq!(broken(body).0, Rule::Bounds, "{body}");
    }
    let unproven = |body: &str| {
        let kernel = parse(&format!("{HEAD}{body}"));
        let report = verify(&kernel).unwrap_or_else(|e| panic!("{e}"));
        report.unproven.len()
    };
    for (body, expected) in [
        ("%l loop serial %n\n%a load %p[%l] : f32\n%e end %l", 0),
        ("%m const 5 : i64\n%l loop serial %m\n%a load %p[%l] : f32\n%e end %l", 1),
        ("%l loop serial %v\n%a load %p[%l] : f32\n%e end %l", 0),
        ("%a load %p[%v] : f32", 1),
        ("%c lt %v, %n : bool\n%g guard %v, %c : i64\n%a load %p[%g] : f32", 0),
        ("%c lt %v, %n : bool\n%i if %c\n%a load %p[%v] : f32\n%e end %i", 0),
        ("%c lt %n, %v : bool\n%i if %c\n%a load %p[%v] : f32\n%e end %i", 0),
        ("%a load %p[%z] : f32x4", 0),
        ("%a load %p[%z] : f32x8", 1),
        // Data as an index: as it comes, clamped, guarded.
        ("%a load %p[%z] : f32\n%d cast %a : i64\n%b load %p[%d] : f32", 1),
        (
            "%a load %p[%z] : f32\n%d cast %a : i64\n%3 const 3 : i64\n%e max %d, %z : i64
          %f min %e, %3 : i64\n%b load %p[%f] : f32",
            0,
        ),
        (
            "%a load %p[%z] : f32\n%d cast %a : i64\n%c lt %d, %n : bool\n%e le %z, %d : bool
          %f and %c, %e : bool\n%g guard %d, %f : i64\n%b load %p[%g] : f32",
            0,
        ),
    ] {
        assert_eq!(unproven(body), expected, "{body}");
    }
}

#[test]
fn devices_have_limits() {
    let with = |body: &str, change: &dyn Fn(&mut Caps)| {
        let mut caps = Caps { max_local: 4, shared_bytes: 64, ..Caps::default() };
        change(&mut caps);
        let error = verify_for(&parse(&format!("{HEAD}{body}")), &caps).err()?;
        assert_eq!(error.rule, Rule::Caps);
        Some(error.reason)
    };
    type Change = &'static dyn Fn(&mut Caps);
    let cases: [(&str, Change, &str); 15] = [
        ("%a load %p[%z] : f32x4", &|_| {}, "f32x4 is wider than 0 bytes"),
        ("%a load %p[%z] : f32x4", &|c| c.vector_bytes = 8, "f32x4 is wider than 8 bytes"),
        ("%m alloc shared 1 : f32\n%a atomic.relaxed add %m[%z], %x : f32", &|_| {}, "no atomic"),
        ("%a load.relaxed %p[%z] : f32", &|_| {}, "no atomic accesses of this dtype"),
        (
            "%a load.acquire %p[%z] : f32",
            &|c| c.atomics = DTypeSet::ALL,
            "no acquire and release at device scope",
        ),
        ("%l loop local %n\n%e end %l", &|c| c.max_local = 3, "4 locals of 3"),
        ("%l loop group.1 %n\n%e end %l", &|c| c.max_groups[1] = 2, "4 groups of 2 on axis 1"),
        ("%l loop local %n\n%b shuffle xor %x, %z : f32\n%e end %l", &|_| {}, "no subgroups"),
        ("%a neg %x : f32", &|c| c.compute = DTypeSet::NONE, "no arithmetic on f32"),
        ("%a sin %x : f32", &|c| c.unary.fill(DTypeSet::NONE), "no such op on f32"),
        ("%m alloc shared 17 : f32", &|_| {}, "68 bytes of shared storage of 64"),
        ("", &|c| c.max_binding = 8, "16 bytes of 8"),
        ("", &|c| c.max_buffers = 1, "2 buffers of 1"),
        ("", &|c| c.storage = DTypeSet::NONE, "no storage of f32"),
        ("%l lanes : i64x4\n%a load %p[%l] : f32x4", &|c| c.vector_bytes = 16, "by vectors"),
    ];
    for (body, change, reason) in cases {
        let said = with(body, change).unwrap_or_else(|| panic!("accepted: {body}"));
        assert!(said.contains(reason), "{body}: {said}, not {reason}");
        let everything = |c: &mut Caps| {
            *c = crate::ir::interp::caps();
        };
        assert_eq!(with(body, &everything), None, "{body}");
    }
}

#[test]
fn groups_wait_where_others_go_on() {
    let kernel = parse(
        "kernel wait\nbuffer 0 : i64[1] readwrite\n%p param 0 readwrite : i64\n\
         %z const 0 : i64\n%x load.acquire_spin %p[%z] : i64",
    );
    let mut caps = Caps { atomics: DTypeSet::ALL, ..Caps::default() };
    let error = verify_for(&kernel, &caps).unwrap_err();
    let reason = "no promise that groups go on, so none may wait";
    assert_eq!((error.rule, &error.reason[..]), (Rule::Caps, reason));
    caps.progress = crate::caps::Progress::Occupancy;
    verify_for(&kernel, &caps).unwrap();
}

#[test]
fn breaks_end_serial_loops() {
    for body in [
        "%b break %t",
        "%l loop parallel %n\n%b break %t\n%e end %l",
        "%l loop local %n\n%b break %t\n%e end %l",
        "%i if %t\n%b break %t\n%e end %i",
        "%l loop serial %n\n%i if %t\n%b break %t\n%e end %i\n%f end %l",
    ] {
        assert_eq!(broken(body).0, Rule::Regions, "{body}");
    }
    for body in [
        "%l loop serial %n\n%b break %x\n%e end %l",
        "%l loop serial %n\n%s splat %t : boolx4\n%b break %s\n%e end %l",
    ] {
        assert_eq!(broken(body).0, Rule::Types, "{body}");
    }
    assert_eq!(
        broken("%l loop serial %n\n%b break %t\n%a not %b : bool\n%e end %l").0,
        Rule::Operands
    );
}

/// A loop whose length a register holds, after a store that all iterations make or some, once or in a loop.
#[test]
fn registers_hold_the_same_where_all_iterations_store_the_same() {
    let kernel = |stores: &str| {
        format!(
            "%l loop local %n\n%c lt %l, %v : bool\n%r alloc register 1 : i64\n%o0 store %r[%z], %z : i64
             {stores}\n%k load %r[%z] : i64\n%s loop serial %k\n%w barrier shared\n%e end %s\n%f end %l"
        )
    };
    for alike in [
        "%o1 store %r[%z], %v : i64",
        "%q loop serial %v\n%a load %r[%z] : i64\n%b add %a, %q : i64\n%o1 store %r[%z], %b : i64\n%g end %q",
        "%d lt %v, %n : bool\n%q if %d\n%o1 store %r[%z], %n : i64\n%g end %q",
    ] {
        verify(&parse(&format!("{HEAD}{}", kernel(alike)))).unwrap();
    }
    for apart in [
        "%o1 store %r[%z], %l : i64",
        "%q if %c\n%o1 store %r[%z], %n : i64\n%g end %q",
        "%q loop serial %l\n%o1 store %r[%z], %n : i64\n%g end %q",
        "%q loop serial %n\n%o1 store %r[%z], %q : i64\n%b break %c\n%g end %q",
        "%d if %c\n%q loop serial %n\n%o1 store %r[%z], %q : i64\n%g end %q\n%h end %d",
        "%q loop serial %v\n%a load %r[%z] : i64\n%b add %a, %l : i64\n%o1 store %r[%z], %b : i64\n%g end %q",
    ] {
        assert_eq!(broken(&kernel(apart)).0, Rule::Flow, "{apart}");
    }
    // Uninitialised registers differ from thread to thread.
    let first = "%o0 store %r[%z], %z : i64\n";
    for unknown in ["", "%d lt %v, %n : bool\n%q if %d\n%o1 store %r[%z], %n : i64\n%g end %q"] {
        let body = kernel(unknown).replace(first, "");
        assert!(!body.contains("%o0"), "{body}");
        assert_eq!(broken(&body).0, Rule::Flow, "{body}");
    }
    let several = kernel("").replace("register 1", "register 2");
    assert_eq!(broken(&several).0, Rule::Flow, "{several}");
}

#[test]
fn threads_that_meet_in_a_loop_leave_it_together() {
    for [early, late] in [["%b break %c\n", ""], ["", "%b break %c\n"]] {
        let body = format!(
            "%l loop local %n\n%c lt %l, %v : bool\n%s loop serial %n\n{early}%w barrier shared
             {late}%e end %s\n%f end %l"
        );
        assert_eq!(broken(&body).0, Rule::Flow, "{body}");
    }
    // An inner loop that threads leave one by one is behind them where they meet.
    for fine in [
        "%l loop local %n\n%c lt %l, %v : bool\n%s loop serial %n\n%i loop serial %n\n%b break %c
         %d end %i\n%w barrier shared\n%e end %s\n%f end %l",
        "%l loop local %n\n%s loop serial %n\n%c lt %s, %v : bool\n%b break %c\n%w barrier shared
         %e end %s\n%f end %l",
    ] {
        verify(&parse(&format!("{HEAD}{fine}"))).unwrap();
    }
}

#[test]
fn what_stands_behind_a_break_is_not_certain() {
    let load = "%a load %p[%n] : f32\n";
    for body in [
        format!("%l loop serial %n\n%b break %t\n{load}%e end %l"),
        format!("%l loop serial %n\n%b break %t\n%k loop serial %n\n{load}%d end %k\n%e end %l"),
    ] {
        let report = verify(&parse(&format!("{HEAD}{body}"))).unwrap();
        assert_eq!(report.unproven.len(), 1, "{body}");
    }
    for body in [
        format!("%l loop serial %n\n{load}%b break %t\n%e end %l"),
        format!("%l loop serial %n\n%b break %t\n%e end %l\n{load}"),
    ] {
        assert_eq!(broken(&body).0, Rule::Bounds, "{body}");
    }
}
