//! From what was recorded to a kernel.
//!
//! Storage that groups share is declared where groups begin, barriers that are not needed go, and accesses whose coordinates
//! are not shown to be inside get guards. Threads tell of loops that did not come to their end ([`Role::Cut`](super::Role)): those that
//! only a break ends, and those of any number of iterations where a driver ends long ones without a word.

use super::{Lang, LangError, Place, Recorded, Site, State};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Kernel, LoopKind, Op, Ranges, Space, Type, Value, VerifyError, verify};
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
    let placed = Placed { raw: &raw, state: &state, caps: lang.caps() };
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
    caps: &'a Caps,
}

impl Placed<'_> {
    /// The kernel, and the line of each of its ops.
    fn kernel(&self, outside: Outside) -> (Kernel, Vec<u32>) {
        let Placed { raw, state, caps } = *self;
        let (ranges, ends) = (Ranges::of(raw), raw.region_ends());
        let mut r = Rebuild::new(raw);
        let mut lines = Vec::new();
        let mut next_place = state.places.iter().peekable();
        let mut watch =
            state.cut.map(|cut| Watch { cut, caps, waits: &state.waits, open: Vec::new() });
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

/// Loops that may not come to their end, in a kernel being rebuilt.
struct Watch<'a> {
    /// The argument that tells of it.
    cut: Value,
    caps: &'a Caps,
    /// Loops that only a break ends.
    waits: &'a [Value],
    open: Vec<(Value, Option<Watched>)>,
}

/// A variable with the number of iterations that began, or of all of them if a break ended the loop. In a loop that only a break ends
/// none count.
struct Watched(Value);

impl Watch<'_> {
    /// Records what has to stand before an op.
    fn before(&mut self, r: &mut Rebuild<'_>, value: Value) {
        match r.src.op(value) {
            Op::Loop { kind: LoopKind::Serial, len, .. } => {
                // A number of iterations that is known is below what a driver runs.
                let is_long = self.caps.max_iterations > 0 && r.src.constant(len).is_none();
                let is_watched = is_long || self.waits.contains(&value);
                let watched = is_watched.then(|| {
                    let began = r.out.alloc(Space::Register, Type::scalar(DType::I64), 1);
                    let zero = r.out.index(0);
                    r.out.store(began, zero, zero);
                    Watched(began)
                });
                self.open.push((value, watched));
            }
            Op::Break { cond } => {
                if let Some((open, Some(Watched(began)))) = self.open.last()
                    && let Op::Loop { len, .. } = r.src.op(*open)
                {
                    let [cond, len] = [cond, len].map(|x| r.get(x));
                    let zero = r.out.index(0);
                    let now = r.out.load(*began, zero);
                    let now = r.out.select(cond, len, now);
                    r.out.store(*began, zero, now);
                }
            }
            _ => {}
        }
    }

    /// Records what has to stand behind an op.
    fn after(&mut self, r: &mut Rebuild<'_>, value: Value) {
        match r.src.op(value) {
            Op::Loop { .. } if !self.waits.contains(&value) => {
                if let Some((open, Some(Watched(began)))) = self.open.last()
                    && *open == value
                {
                    let (counter, zero, one) = (r.get(value), r.out.index(0), r.out.index(1));
                    let now = r.out.binary(BinaryOp::Add, counter, one);
                    r.out.store(*began, zero, now);
                }
            }
            Op::End { open } => {
                if let Some((open, Some(Watched(began)))) = self.open.pop_if(|of| of.0 == open)
                    && let Op::Loop { len, .. } = r.src.op(open)
                {
                    let (len, zero) = (r.get(len), r.out.index(0));
                    let began = r.out.load(began, zero);
                    let is_cut = r.out.binary(BinaryOp::Lt, began, len);
                    self.tell(r, is_cut);
                }
            }
            _ => {}
        }
    }

    /// Tells other than 0 where a condition holds.
    fn tell(&self, r: &mut Rebuild<'_>, condition: Value) {
        let (cut, zero) = (r.get(self.cut), r.out.index(0));
        let (at, one) = (r.out.guard(zero, condition), r.out.constant(Scalar::from(1i32)));
        match self.caps.has_atomic(BinaryOp::Max, DType::I32) {
            true => _ = r.out.atomic(BinaryOp::Max, cut, at, one),
            // All that store here store the same.
            false => _ = r.out.store(cut, at, one),
        }
    }
}

fn is_shared(op: Op) -> bool {
    matches!(op, Op::Alloc { space: Space::Shared, .. })
}

fn is_local(op: Op) -> bool {
    matches!(op, Op::Loop { kind: LoopKind::Local, .. })
}

impl Outside {
    /// Makes an access whose coordinates may be outside right.
    fn place(self, r: &mut Rebuild<'_>, op: &mut Op, place: &Place, ranges: &Ranges<'_>) {
        let (Op::Load { index, .. } | Op::Store { index, .. } | Op::Atomic { index, .. }) = op
        else {
            return;
        };
        let mut all = |bounds: Vec<(Value, Value)>| {
            let unknown = bounds.into_iter().filter(|x| !ranges.is_below(x.0, x.1, place.access));
            let mut conditions = Vec::new();
            for (at, extent) in unknown {
                let [at, extent] = [at, extent].map(|x| r.get(x));
                let zero = r.out.index(0);
                conditions.push(r.out.binary(BinaryOp::Le, zero, at));
                conditions.push(r.out.binary(BinaryOp::Lt, at, extent));
            }
            conditions.into_iter().reduce(|all, one| r.out.binary(BinaryOp::And, all, one))
        };
        // A coordinate inside of a tile may be beyond the end of the array.
        let digits = || place.digits.iter();
        let in_array =
            all(digits().filter(|x| x.tile.is_some()).map(|x| (x.at, x.extent)).collect());
        let inside = all(digits().map(|x| x.tile.unwrap_or((x.at, x.extent))).collect());
        let b = &mut r.out;
        if self == Outside::Nothing {
            let conditions = [in_array, inside].into_iter().flatten();
            *index = conditions.fold(*index, |index, condition| b.guard(index, condition));
            return;
        }
        let mut conditions = Vec::new();
        let mut bare = *index;
        while let Op::Guard { index, cond } = b.op(bare) {
            conditions.push(cond);
            bare = index;
        }
        let mut masks = in_array;
        if let Some(inside) = inside {
            let none = b.constant(Scalar::from_i64(b.ty(bare).dtype, -1));
            bare = b.select(inside, bare, none);
            let outside = b.unary(UnaryOp::Not, inside);
            masks = masks.map(|mask| b.binary(BinaryOp::Or, mask, outside));
        }
        let conditions = conditions.into_iter().rev().chain(masks);
        *index = conditions.fold(bare, |index, condition| b.guard(index, condition));
    }
}
