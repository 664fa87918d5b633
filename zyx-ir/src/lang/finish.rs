//! From what was recorded to a kernel.
//!
//! Storage that groups share is declared where groups begin, barriers that are not needed go, and accesses whose coordinates
//! are not shown to be inside get guards. Where a driver ends loops of many iterations without a word, threads notice it and tell
//! ([`Role::Cut`](super::Role)).

use super::{Lang, LangError, Place, Recorded, Site, State};
use crate::dtype::DType;
use crate::ir::{Builder, Kernel, LoopKind, Op, Ranges, Space, Type, Value, VerifyError, verify};
use crate::ops::{BinaryOp, UnaryOp};
use crate::passes::dce;
use crate::passes::rebuild::Rebuild;
use crate::passes::registers::split_arrays;
use crate::scalar::Scalar;

pub(super) fn finish(lang: &Lang) -> Result<Recorded, LangError> {
    let mut state = lang.end();
    if let Some(error) = state.error.take() {
        return Err(error);
    }
    let raw = std::mem::take(&mut state.b).finish();
    let limit = lang.caps().max_iterations as i64;
    let placed = Placed { raw: &raw, state: &state, limit };
    let site = |lines: &[u32], value: Value| -> Site {
        let line = lines.get(value.idx()).copied().unwrap_or(0);
        let none = || Site { file: "unknown".into(), line: 0 };
        state.recorded.sites.get(line as usize).cloned().unwrap_or_else(none)
    };
    let verified = |outside: Outside| {
        let (kernel, lines) = placed.kernel(outside);
        let wrong = |error: VerifyError| LangError {
            kernel: raw.name().to_owned(),
            reason: format!("{}: `{}`: {:?}", error.reason, error.op, error.rule),
            site: site(&lines, error.value),
        };
        verify(&kernel).map_err(wrong).map(|_| (kernel, lines))
    };
    let (checked, lines) = verified(Outside::Told)?;
    let (kernel, _) = verified(Outside::Nothing)?;
    let kernel = dce::dce(&split_arrays(&kernel));
    let scalars = state.scalars.into_iter().map(|x| x.0).collect();
    Ok(Recorded { kernel, checked, scalars, lines, ..state.recorded })
}

/// What an access does whose coordinates are outside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    /// It loads zero and stores nothing.
    Nothing,
    /// It is one of element -1, which the interpreter refuses.
    Told,
}

/// A recorded kernel and what is known of it.
struct Placed<'a> {
    raw: &'a Kernel,
    state: &'a State,
    /// Iterations after which the driver ends loops; 0 if it does not.
    limit: i64,
}

impl Placed<'_> {
    /// The kernel, and the line of each of its ops.
    fn kernel(&self, outside: Outside) -> (Kernel, Vec<u32>) {
        let Placed { raw, state, .. } = *self;
        let (ranges, ends) = (Ranges::of(raw), raw.region_ends());
        let mut r = Rebuild::new(raw);
        let mut lines = Vec::new();
        let mut next_place = state.places.iter().peekable();
        let breaks = raw.loops_with_break();
        let limit = self.limit;
        let watch = |cut| Watch { cut, limit, breaks, was_cut: None, open: Vec::new() };
        let mut watch = state.cut.filter(|_| limit > 0).map(watch);
        // Arguments may have been declared within loops.
        let arguments = raw.iter().filter(|x| matches!(x.1, Op::Param { .. } | Op::Var { .. }));
        arguments.for_each(|(value, ..)| _ = r.copy(value));
        for (value, op, ty) in raw.iter() {
            let place = next_place.next_if(|place| place.access == value);
            if state.unneeded.contains(&value) || r.try_get(value).is_some() {
                continue;
            }
            if is_local(op) {
                let inside = (value.idx()..ends[value.idx()]).map(|i| Value(i as u32));
                inside.filter(|&x| is_shared(raw.op(x))).for_each(|x| _ = r.copy(x));
            }
            let mut new = r.mapped(value);
            if let Some(place) = place {
                outside.place(&mut r, &mut new, place, &ranges);
            }
            if let Some(watch) = &mut watch {
                watch.before(&mut r, value);
            }
            let new = r.out.emit(new, ty);
            r.set(value, new);
            if let Some(watch) = &mut watch {
                watch.after(&mut r, value);
            }
            lines.resize(r.out.kernel().ops().len(), state.recorded.lines[value.idx()]);
        }
        (r.out.finish(), lines)
    }
}

/// Loops that a driver may end early, in a kernel being rebuilt.
struct Watch {
    /// The argument that tells of it.
    cut: Value,
    limit: i64,
    breaks: Vec<Value>,
    /// Whether the thread noticed it, among threads.
    was_cut: Option<Value>,
    open: Vec<Watched>,
}

/// One of these loops.
struct Watched {
    open: Value,
    len: Value,
    /// The iterations that began, or whether a break ended the loop, if there is one in it.
    noticed: Value,
    has_break: bool,
}

impl Watch {
    /// Records what has to stand before an op.
    fn before(&mut self, r: &mut Rebuild<'_>, value: Value) {
        match r.src.op(value) {
            Op::Loop { kind: LoopKind::Serial, len, .. } if self.was_cut.is_some() => {
                // A number of iterations that is known is below the limit, but for a `while_`.
                let has_break = self.breaks.contains(&value);
                let known = r.src.constant(len).map(|n| n.to_i64());
                if known.is_none_or(|n| has_break && n >= self.limit / 2) {
                    let dtype = if has_break { DType::Bool } else { DType::I64 };
                    let (len, noticed) = (r.get(len), variable(&mut r.out, dtype));
                    self.open.push(Watched { open: value, len, noticed, has_break });
                }
            }
            Op::Break { cond } => {
                let cond = r.get(cond);
                if let Some(of) = self.open.last() {
                    set(&mut r.out, of.noticed, cond);
                }
            }
            Op::End { open } if is_local(r.src.op(open)) => {
                if let Some(was_cut) = self.was_cut.take() {
                    let cut = r.get(self.cut);
                    tell(&mut r.out, cut, was_cut);
                }
            }
            _ => {}
        }
    }

    /// Records what has to stand behind an op.
    fn after(&mut self, r: &mut Rebuild<'_>, value: Value) {
        match r.src.op(value) {
            op if is_local(op) => self.was_cut = Some(variable(&mut r.out, DType::Bool)),
            Op::Loop { .. } => {
                if let Some(of) = self.open.last().filter(|of| of.open == value && !of.has_break) {
                    let (counter, one) = (r.get(value), r.out.index(1));
                    let began = r.out.binary(BinaryOp::Add, counter, one);
                    set(&mut r.out, of.noticed, began);
                }
            }
            Op::End { open } => {
                if let Some(of) = self.open.pop_if(|of| of.open == open)
                    && let Some(was_cut) = self.was_cut
                {
                    of.note(&mut r.out, was_cut);
                }
            }
            _ => {}
        }
    }
}

fn is_shared(op: Op) -> bool {
    matches!(op, Op::Alloc { space: Space::Shared, .. })
}

fn is_local(op: Op) -> bool {
    matches!(op, Op::Loop { kind: LoopKind::Local, .. })
}

/// Tells other than 0 where a thread noticed that a loop was ended.
fn tell(b: &mut Builder, cut: Value, was_cut: Value) {
    let zero = b.index(0);
    let cond = b.load(was_cut, zero);
    let (at, one) = (b.guard(zero, cond), b.constant(Scalar::from(1i32)));
    b.atomic(BinaryOp::Max, cut, at, one);
}

/// A variable that begins with 0.
fn variable(b: &mut Builder, dtype: DType) -> Value {
    let variable = b.alloc(Space::Register, Type::scalar(dtype), 1);
    let zero = b.constant(Scalar::from_i64(dtype, 0));
    set(b, variable, zero);
    variable
}

fn set(b: &mut Builder, variable: Value, value: Value) {
    let zero = b.index(0);
    b.store(variable, zero, value);
}

impl Watched {
    /// Notes whether the loop ended before its last iteration, and not by itself.
    fn note(&self, b: &mut Builder, was_cut: Value) {
        let zero = b.index(0);
        let [noticed, before] = [self.noticed, was_cut].map(|x| b.load(x, zero));
        let cut = match self.has_break {
            true => b.unary(UnaryOp::Not, noticed),
            false => b.binary(BinaryOp::Lt, noticed, self.len),
        };
        let cut = b.binary(BinaryOp::Or, before, cut);
        set(b, was_cut, cut);
    }
}

impl Outside {
    /// Makes an access whose coordinates may be outside right.
    fn place(self, r: &mut Rebuild<'_>, op: &mut Op, place: &Place, ranges: &Ranges<'_>) {
        let (Op::Load { index, .. } | Op::Store { index, .. } | Op::Atomic { index, .. }) = op
        else {
            return;
        };
        let unknown =
            place.digits.iter().filter(|digit| !ranges.is_below(digit.0, digit.1, place.access));
        let mut bounds = Vec::new();
        for &(at, extent) in unknown {
            let [at, extent] = [at, extent].map(|x| r.get(x));
            let b = &mut r.out;
            let zero = b.index(0);
            bounds.push(b.binary(BinaryOp::Le, zero, at));
            bounds.push(b.binary(BinaryOp::Lt, at, extent));
        }
        let b = &mut r.out;
        let inside = bounds.into_iter().reduce(|all, one| b.binary(BinaryOp::And, all, one));
        let Some(inside) = inside else { return };
        *index = match self {
            Outside::Nothing => b.guard(*index, inside),
            Outside::Told => {
                let mut conditions = Vec::new();
                let mut bare = *index;
                while let Op::Guard { index, cond } = b.op(bare) {
                    conditions.push(cond);
                    bare = index;
                }
                let dtype = b.ty(bare).dtype;
                let none = b.constant(Scalar::from_i64(dtype, -1));
                let told = b.select(inside, bare, none);
                conditions.into_iter().rev().fold(told, |index, cond| b.guard(index, cond))
            }
        };
    }
}
