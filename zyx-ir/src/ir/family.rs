//! Kernels that differ in numbers alone, as those of one computation on tensors of other sizes do.
//!
//! The [`Outline`] of a kernel has its numbers apart: literals, lengths of buffers, ranges of scalars.
//! Kernels with equal outlines are a family. A [`Family`] knows which numbers are the same in all of
//! its members seen so far, and which are always equal to one another. Of those that differ it makes
//! scalar arguments: one kernel then does the work of every member, given the member's numbers. What it
//! accesses is in bounds for these numbers only, so launches with others are refused ([`Members`]).
//!
//! Index expressions are written out at each use, since whether two of them are shared depends on the
//! numbers.

use super::kernel::{Builder, Kernel, ParamInfo, VarInfo};
use super::op::{LoopKind, Op, Space, Type, Value};
use super::pad::{Pad, padded_len};
use super::verify::{Rewritten, Verified, verify};
use crate::dtype::DType;
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Most ops of an outline for each op of its kernel, beyond a few.
const MOST_TIMES: usize = 8;
const FEW: usize = 256;
/// Most scalar arguments that take the place of numbers.
const MOST_ARGUMENTS: usize = 48;
/// How much larger than those seen numbers may be; and how large they always may.
const ROOM: i64 = 16;
const LEAST: i64 = 1 << 12;
const MOST: i64 = 1 << 40;

/// Which powers of two are looked at: passes ask for whole vectors and blocks of them.
const DIVISIBLE: u32 = 6;
/// The least that arguments are counted in, if not 1.
const ALIGNED: i64 = 4;

/// A kernel without its numbers, and the numbers.
#[derive(Clone, Debug)]
pub struct Outline {
    kernel: Arc<Kernel>,
    /// The bits of literals, in order of their ops.
    literals: Vec<u64>,
    lens: Vec<u64>,
    ranges: Vec<(i64, i64)>,
    /// Whether the kernel was verified: others are no members.
    verified: bool,
}

impl Outline {
    /// That of a kernel of loops which nothing has been decided of yet; `None` of others: their numbers
    /// are those of threads and of what they share.
    pub fn of(kernel: &Verified) -> Option<Outline> {
        Some(Outline { verified: true, ..Outline::of_unverified(kernel)? })
    }

    /// As [`Outline::of`], of a kernel that is no [`Member`] by it.
    pub fn of_unverified(kernel: &Kernel) -> Option<Outline> {
        Outline::written(kernel, false)
    }

    /// As [`Outline::of`], but kernels of one family have loops of the same lengths.
    pub fn with_lengths(kernel: &Verified) -> Option<Outline> {
        Some(Outline { verified: true, ..Outline::written(kernel, true)? })
    }

    fn written(kernel: &Kernel, lengths: bool) -> Option<Outline> {
        if kernel.has_extents() {
            // It serves all sizes as it is.
            return None;
        }
        let params = kernel.params().iter().map(|info| ParamInfo { len: 0, ..*info }).collect();
        let vars = kernel.vars().iter().map(|info| VarInfo { min: 0, max: 0, ..*info }).collect();
        let mut writer = Writer {
            kernel,
            out: Builder::raw("").with_arguments(params, vars),
            map: vec![Value(u32::MAX); kernel.ops().len()],
            is_index: Vec::with_capacity(kernel.ops().len()),
            literals: Vec::new(),
            lengths,
        };
        for (value, op, ty) in kernel.iter() {
            writer.write(value, op, ty)?;
        }
        Some(Outline {
            kernel: Arc::new(writer.out.finish()),
            literals: writer.literals,
            lens: kernel.params().iter().map(|info| info.len).collect(),
            ranges: kernel.vars().iter().map(|info| (info.min, info.max)).collect(),
            verified: false,
        })
    }

    /// What is equal for kernels of one family only.
    pub fn key(&self) -> &Kernel {
        &self.kernel
    }
}

struct Writer<'k> {
    kernel: &'k Kernel,
    out: Builder,
    map: Vec<Value>,
    /// Whether a value is computed of counters, scalars and literals alone.
    is_index: Vec<bool>,
    literals: Vec<u64>,
    /// Whether lengths of loops stay what they are.
    lengths: bool,
}

impl Writer<'_> {
    fn write(&mut self, value: Value, op: Op, ty: Type) -> Option<()> {
        let placed = match op {
            Op::Loop { kind, .. } => !matches!(kind, LoopKind::Serial | LoopKind::Parallel),
            Op::Alloc { space, .. } => space == Space::Shared,
            // Longer loops around one that ends on what it loads might never end.
            Op::Break { .. } => true,
            _ => op.meets() || ty.is_vector(),
        };
        let most = FEW + MOST_TIMES * self.kernel.ops().len();
        if placed || self.out.kernel().ops().len() > most {
            return None;
        }
        let is_small = matches!(ty.dtype, DType::I64 | DType::Bool);
        let counts = |&x: &Value| {
            self.is_index[x.idx()] || matches!(self.kernel.op(x), Op::Loop { .. } | Op::Var { .. })
        };
        let is_index = is_small && op.is_pure() && op.operands().all(|x| counts(&x));
        self.is_index.push(is_index);
        if is_index || matches!(op, Op::Const { .. }) {
            return Some(());
        }
        let storage = match op {
            Op::Load { buf, .. } | Op::Store { buf, .. } | Op::Atomic { buf, .. } => Some(buf),
            _ => None,
        };
        // Registers are named by literals.
        let own = storage.is_some_and(|buf| matches!(self.kernel.op(buf), Op::Alloc { .. }));
        let keep = own || self.lengths && matches!(op, Op::Loop { .. });
        let op = op.map(|x| self.operand(x, keep));
        self.map[value.idx()] = self.out.push(op, ty);
        Some(())
    }

    fn operand(&mut self, value: Value, keep: bool) -> Value {
        let (op, ty) = (self.kernel.op(value), self.kernel.ty(value));
        match op {
            Op::Const { bits } => {
                let keep = keep && ty.dtype == DType::I64 || ty.dtype == DType::Bool;
                self.literals.push(bits);
                self.out.push(Op::Const { bits: if keep { bits } else { 0 } }, ty)
            }
            _ if self.is_index[value.idx()] => {
                let op = op.map(|x| self.operand(x, keep));
                self.out.push(op, ty)
            }
            _ => self.map[value.idx()],
        }
    }
}

/// A kernel of a family, as launches of the family's kernel have it.
#[derive(Debug, PartialEq, Eq)]
pub struct Member {
    values: Box<[u64]>,
    lens: Box<[u64]>,
    ranges: Box<[(i64, i64)]>,
}

impl Member {
    /// The scalars behind the kernel's own that make the family's kernel do what this one does.
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// How many elements the buffers have at least.
    pub fn lens(&self) -> &[u64] {
        &self.lens
    }

    /// What the kernel's own scalars are in, as [`VarInfo`] has it.
    pub fn ranges(&self) -> &[(i64, i64)] {
        &self.ranges
    }
}

/// The members of a family that its kernel may be launched for: those that somebody holds.
#[derive(Clone)]
pub struct Members(Arc<Inner>);

struct Inner {
    own: usize,
    /// The kernel of the family, without its members.
    made: OnceLock<Kernel>,
    known: Mutex<FxHashMap<Box<[u64]>, Vec<Weak<Member>>>>,
}

impl Members {
    fn new(own: usize) -> Members {
        Members(Arc::new(Inner { own, made: OnceLock::new(), known: Mutex::default() }))
    }

    /// How many scalars of the kernel stand before the members' numbers.
    pub fn own_scalars(&self) -> usize {
        self.0.own
    }

    /// The members with these numbers. They may differ in what their own scalars are in, and in what else their
    /// buffers have.
    pub fn with(&self, values: &[u64]) -> Vec<Arc<Member>> {
        let known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(values).into_iter().flatten().filter_map(Weak::upgrade).collect()
    }

    /// Whether a kernel is that of the family: what passes made of it, or anybody else, is not.
    pub(super) fn made(&self, kernel: &Kernel) -> bool {
        self.0.made.get().is_some_and(|made| made.computes_as(kernel))
    }

    fn add(&self, member: Member) -> Arc<Member> {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() == known.capacity() {
            known.retain(|_, same| same.iter().any(|member| member.strong_count() > 0));
        }
        let same = known.entry(member.values.clone()).or_default();
        same.retain(|member| member.strong_count() > 0);
        if let Some(known) = same.iter().filter_map(Weak::upgrade).find(|known| **known == member) {
            return known;
        }
        let member = Arc::new(member);
        same.push(Arc::downgrade(&member));
        member
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Members) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Members {}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Members").field(&Arc::as_ptr(&self.0)).finish()
    }
}

/// What is known of the kernels of a family.
#[derive(Clone, Debug)]
pub struct Family {
    outline: Arc<Kernel>,
    members: Members,
    /// For each literal the number of its class: those that were equal in all members.
    classes: Vec<u32>,
    known: Vec<Class>,
    lens: Vec<(u64, bool)>,
    ranges: Vec<(i64, i64)>,
    /// Whether arguments are counted in what all numbers seen are multiples of.
    steps: bool,
}

/// Literals that are equal to one another.
#[derive(Clone, Copy, Debug)]
struct Class {
    dtype: DType,
    /// Their bits in the first member.
    first: u64,
    varies: bool,
    /// Least and greatest, of integers.
    seen: (i64, i64),
    /// What the argument counts: 1, or a small power of two that all that were seen are multiples of.
    step: i64,
    /// Whether it is declared to be little larger than what was seen.
    near: bool,
}

impl Class {
    /// The range that the argument is declared with.
    fn range(&self) -> (i64, i64) {
        if !self.dtype.is_int() {
            return (i64::MIN, i64::MAX);
        }
        if self.near {
            // Twice as far: what is narrower is computed in fewer bits.
            let far = |x: i64| (x / self.step).saturating_mul(2);
            return (far(self.seen.0).min(0), far(self.seen.1).max(2));
        }
        let far = |x: i64| {
            let room = (x.clamp(1, MOST) * ROOM).max(LEAST);
            room.unsigned_abs().next_power_of_two() as i64
        };
        let (min, max) = self.seen;
        (if min < 0 { -far(min.saturating_neg()) } else { min.min(1) }, far(max))
    }
}

fn number(dtype: DType, bits: u64) -> i64 {
    if dtype.is_int() { Scalar::from_bits(dtype, bits).to_i64() } else { 0 }
}

impl Family {
    /// Of one member. With `steps` arguments are counted in powers of two, so that accesses stay as aligned as
    /// those of the members, and members have numbers that are multiples.
    pub fn new(outline: &Outline, steps: bool) -> Family {
        let mut family = Family {
            outline: outline.kernel.clone(),
            members: Members::new(outline.kernel.vars().len()),
            classes: vec![0; outline.literals.len()],
            known: Vec::new(),
            lens: outline.lens.iter().map(|&len| (len, false)).collect(),
            ranges: outline.ranges.clone(),
            steps,
        };
        family.refine(outline);
        family
    }

    /// Bytes of memory, roughly.
    pub fn bytes(&self) -> usize {
        4 * self.classes.len()
            + size_of_val(&*self.known)
            + 16 * (self.lens.len() + self.ranges.len())
    }

    /// Cuts classes where literals differ.
    fn refine(&mut self, outline: &Outline) {
        let mut numbers: FxHashMap<(u32, DType, u64), u32> = FxHashMap::default();
        let literals = outline.kernel.iter().filter_map(|(_, op, ty)| match op {
            Op::Const { .. } => Some(ty.dtype),
            _ => None,
        });
        let mut known = Vec::new();
        for ((class, &bits), dtype) in self.classes.iter_mut().zip(&outline.literals).zip(literals)
        {
            let old = self.known.get(*class as usize);
            *class = *numbers.entry((*class, dtype, bits)).or_insert_with(|| {
                let x = number(dtype, bits);
                let counted = self.steps && dtype == DType::I64;
                let own = if counted { 1 << x.trailing_zeros().min(DIVISIBLE) } else { 1 };
                // Less aligns no vector.
                let own = if own < ALIGNED { 1 } else { own };
                known.push(match old {
                    None => {
                        let (varies, seen, near) = (false, (x, x), self.steps);
                        Class { dtype, first: bits, varies, seen, step: own, near }
                    }
                    Some(old) => Class {
                        varies: old.varies || old.first != bits,
                        seen: (old.seen.0.min(x), old.seen.1.max(x)),
                        step: old.step.min(own),
                        ..*old
                    },
                });
                known.len() as u32 - 1
            });
        }
        self.known = known;
    }

    /// The family with one more member.
    pub fn with(&self, outline: &Outline) -> Family {
        let mut family =
            Family { members: Members::new(self.outline.vars().len()), ..self.clone() };
        family.refine(outline);
        for ((len, varies), &other) in family.lens.iter_mut().zip(&outline.lens) {
            *varies |= *len != other;
            *len = (*len).max(other);
        }
        for ((min, max), other) in family.ranges.iter_mut().zip(&outline.ranges) {
            if (*min, *max) != *other {
                // So that it need not grow often.
                let far = |x: i64| if x == 0 { 0 } else { x.clamp(-MOST, MOST) * ROOM };
                (*min, *max) = ((*min).min(other.0), (*max).max(other.1));
                (*min, *max) = (if *min < 0 { far(*min) } else { *min }, far(*max));
            }
        }
        family
    }

    /// The member that this kernel is, if it is one that the family's kernel serves.
    pub fn member(&self, outline: &Outline) -> Option<Arc<Member>> {
        let is_same = Arc::ptr_eq(&self.outline, &outline.kernel) || self.outline == outline.kernel;
        let values = self.values(outline).filter(|_| is_same && outline.verified)?.into();
        let (lens, ranges) = (outline.lens.as_slice().into(), outline.ranges.as_slice().into());
        Some(self.members.add(Member { values, lens, ranges }))
    }

    /// Whether the family's kernel serves this one, which has the same outline.
    pub fn serves(&self, outline: &Outline) -> bool {
        self.values(outline).is_some()
    }

    fn values(&self, outline: &Outline) -> Option<Vec<u64>> {
        let mut values: Vec<Option<u64>> = vec![None; self.known.len()];
        for (&class, &bits) in self.classes.iter().zip(&outline.literals) {
            let (known, value) = (&self.known[class as usize], &mut values[class as usize]);
            let (min, max) = known.range();
            let x = number(known.dtype, bits);
            let fits = match known.varies {
                true => min <= x / known.step && x / known.step <= max && x % known.step == 0,
                false => bits == known.first,
            };
            let bits = if known.varies && known.step > 1 { (x / known.step) as u64 } else { bits };
            if !fits || *value.get_or_insert(bits) != bits {
                return None;
            }
        }
        let lens =
            self.lens.iter().zip(&outline.lens).all(|(&(len, varies), &x)| varies || len == x);
        let within = |(own, x): (&(i64, i64), &(i64, i64))| own.0 <= x.0 && x.1 <= own.1;
        let ranges = self.ranges.iter().zip(&outline.ranges).all(within);
        let varying = values.iter().zip(&self.known).filter(|(_, known)| known.varies);
        (lens && ranges).then(|| varying.filter_map(|(value, _)| *value).collect())
    }

    /// How large the numbers of a member are that vary, and by which small power of two each can be divided: what
    /// choices of passes go by.
    pub fn magnitudes(&self, outline: &Outline) -> Option<Box<[u16]>> {
        self.looked_at(outline, |x| {
            let length = (u64::BITS - x.unsigned_abs().leading_zeros()) as u16;
            let divisible = x.trailing_zeros().min(DIVISIBLE) as u16;
            u16::from(x < 0) << 15 | length << 8 | divisible
        })
    }

    /// Whether the numbers of a member that vary can be divided by 1, 2 or 4: what vectors go by where loops are about
    /// as long.
    pub fn alignments(&self, outline: &Outline) -> Option<Box<[u16]>> {
        self.looked_at(outline, |x| x.trailing_zeros().min(ALIGNED.trailing_zeros()) as u16)
    }

    fn looked_at(&self, outline: &Outline, look: impl Fn(i64) -> u16) -> Option<Box<[u16]>> {
        let numbers = self.values(outline)?;
        let varying = self.known.iter().filter(|known| known.varies);
        let look = |(&bits, known): (&u64, &Class)| look(number(known.dtype, bits));
        Some(numbers.iter().zip(varying).map(look).collect())
    }

    /// Whether what varies are places in buffers alone: numbers that are added to indices, and that nothing is
    /// divided or counted by.
    pub fn varies_in_places(&self) -> bool {
        if self.lens.iter().any(|len| len.1) {
            return false;
        }
        let mut classes = self.classes.iter();
        let mut place = vec![false; self.outline.ops().len()];
        self.outline.iter().all(|(value, op, ty)| {
            if let Op::Const { .. } = op {
                let known = classes.next().map(|&class| self.known[class as usize]);
                place[value.idx()] = known.is_some_and(|known| known.varies);
                return !place[value.idx()] || ty.dtype == DType::I64;
            }
            let is = |v: Value| place[v.idx()];
            match op {
                Op::Binary { op, .. } if op.is_comparison() => true,
                Op::Binary { op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, x, y } => {
                    place[value.idx()] = is(x) || is(y);
                    ty.dtype == DType::I64 || !place[value.idx()]
                }
                Op::Guard { index, .. } => {
                    place[value.idx()] = is(index);
                    true
                }
                Op::Load { .. } => true,
                Op::Store { value, .. } | Op::Atomic { value, .. } => !is(value),
                op => !op.operands().any(is),
            }
        })
    }

    /// The kernel of this outline with loops a little longer where their lengths vary among the members
    /// (`padded_len`), so that many sizes have loops of the same lengths. Iterations that the kernel does not
    /// have load zeros, change no register that outlives them and store nothing. `None` if no length varies, or of a kernel that was
    /// not verified.
    pub fn padded(&self, outline: &Outline, name: &str) -> Option<Rewritten> {
        if !outline.verified {
            return None;
        }
        let padded = self.padded_by(outline, &outline.literals, &outline.lens, name, padded_len)?;
        let unproven = |kernel: &Kernel| verify(kernel).map_or(usize::MAX, |it| it.unproven.len());
        // An outline writes an index at each of its uses, where some are no longer known to be the same.
        let is_in_bounds = || {
            let own = self.padded_by(outline, &outline.literals, &outline.lens, name, |n, _| n);
            own.is_some_and(|own| unproven(&padded) <= unproven(&own))
        };
        debug_assert!(is_in_bounds(), "iterations that there are not access nothing\n{padded}");
        Some(Rewritten::by_passes(padded))
    }

    /// The family of kernels that become loops of the lengths of `padded`, which is what that of this outline did:
    /// everything varies in it that does here, as far as it did here. `None` where numbers tell what ops there are.
    pub fn of_padded(&self, outline: &Outline, padded: &Outline) -> Option<Family> {
        let mut family = Family::new(padded, self.steps);
        for greatest in [false, true] {
            let number = |(&class, &bits): (&u32, &u64)| {
                let known = &self.known[class as usize];
                let (least, most) = known.seen;
                let between = known.step * i64::from(most / known.step % 2 == 0);
                match known.varies && known.dtype.is_int() {
                    true if greatest => Scalar::from_i64(known.dtype, most + between).bits(),
                    true => Scalar::from_i64(known.dtype, least).bits(),
                    // Any other number.
                    false => bits ^ u64::from(known.varies && greatest),
                }
            };
            let literals: Vec<u64> =
                self.classes.iter().zip(&outline.literals).map(number).collect();
            let lens =
                self.lens.iter().zip(&outline.lens).map(|(own, &len)| len + u64::from(own.1));
            let lens: Vec<u64> = lens.collect();
            let other = self.padded_by(outline, &literals, &lens, "", padded_len)?;
            let other = Outline::written(&other, true)?;
            if other.key() != padded.key() {
                return None;
            }
            family = family.with(&other);
        }
        family.ranges.clone_from(&self.ranges);
        Some(family)
    }

    /// As [`Family::padded`] of a kernel with these literals instead and buffers of these lengths; loops are as long as
    /// those of `outline` become.
    fn padded_by(
        &self,
        outline: &Outline,
        literals: &[u64],
        lens: &[u64],
        name: &str,
        longer: fn(i64, bool) -> i64,
    ) -> Option<Kernel> {
        let old = &*outline.kernel;
        let ends = old.region_ends();
        let params = old.params().iter().zip(lens);
        let params = params.map(|(info, &len)| ParamInfo { len, ..*info }).collect();
        let vars = old.vars().iter().zip(&outline.ranges);
        let vars = vars.map(|(info, &(min, max))| VarInfo { min, max, ..*info }).collect();
        let mut pad = Pad::new(old, Builder::raw(name).with_arguments(params, vars));
        // Of literals that vary what the kernel has.
        let mut varying: Vec<Option<u64>> = vec![None; old.ops().len()];
        let mut numbers = self.classes.iter().zip(&outline.literals).zip(literals);
        let mut any = false;
        for (value, op, ty) in old.iter() {
            match op {
                Op::Const { .. } => {
                    let ((&class, &own), &bits) = numbers.next()?;
                    let varies = self.known[class as usize].varies;
                    varying[value.idx()] = varies.then_some(own);
                    pad.literal(Scalar::from_bits(ty.dtype, bits))
                }
                Op::Loop { kind, len, .. } if let Some(n) = varying[len.idx()] => {
                    let body = value.idx() + 1..ends[value.idx()];
                    let is_serial = |op: &Op| matches!(op, Op::Loop { kind: LoopKind::Serial, .. });
                    let sums = kind == LoopKind::Serial || old.ops()[body].iter().any(is_serial);
                    any = true;
                    let longer = longer(n as i64, sums);
                    pad.open_loop(value, longer)
                }
                op => pad.copy(value, op, ty),
            }
        }
        any.then(|| pad.finish())
    }

    /// Whether no number varies: one member is all of it.
    pub fn is_single(&self) -> bool {
        !self.known.iter().any(|known| known.varies) && !self.lens.iter().any(|len| len.1)
    }

    /// The kernel that does the work of all members, with this name; `None` if it had too many arguments.
    /// Given the numbers of a member it accesses what that one does, which was verified.
    pub fn kernel(&self, name: &str) -> Option<Rewritten> {
        let arguments = self.known.iter().filter(|known| known.varies).count();
        if arguments > MOST_ARGUMENTS {
            return None;
        }
        let params = self.outline.params().iter().zip(&self.lens);
        let params = params.map(|(info, &(len, open))| ParamInfo { len, open, ..*info }).collect();
        let vars = self.outline.vars().iter().zip(&self.ranges);
        let vars = vars.map(|(info, &(min, max))| VarInfo { min, max, ..*info }).collect();
        let mut out = Builder::new(name).with_arguments(params, vars);
        let argument = |known: &Class| {
            let (min, max) = known.range();
            known.varies.then(|| out.var(known.dtype, min, max))
        };
        let mut values: Vec<Option<Value>> = self.known.iter().map(argument).collect();
        for (value, known) in values.iter_mut().zip(&self.known) {
            if let Some(value) = value.as_mut().filter(|_| known.step > 1) {
                let step = out.constant(Scalar::from_i64(known.dtype, known.step));
                *value = out.binary(BinaryOp::Mul, *value, step);
            }
        }
        let mut classes = self.classes.iter();
        let mut map: Vec<Value> = Vec::with_capacity(self.outline.ops().len());
        for (_, op, ty) in self.outline.iter() {
            let class = match op {
                Op::Const { .. } => classes.next(),
                _ => None,
            };
            let new = match class.map(|&class| (self.known[class as usize], values[class as usize]))
            {
                Some((_, Some(argument))) => argument,
                Some((known, None)) => out.constant(Scalar::from_bits(ty.dtype, known.first)),
                None => out.emit(op.map(|x| map[x.idx()]), ty),
            };
            map.push(new);
        }
        let kernel = out.finish();
        self.members.0.made.get_or_init(|| kernel.clone());
        let kernel = kernel.with_members(Some(self.members.clone()));
        Some(Rewritten::by_passes(kernel))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Access, Verified, interp};
    use super::*;
    use crate::ops::TernaryOp;

    /// Sums of the rows of a matrix, each times a factor that depends on their length.
    fn sums(rows: i64, columns: i64) -> Verified {
        let mut b = Builder::new("sums");
        let x = b.param(DType::F32, (rows * columns) as u64, Access::Read);
        let y = b.param(DType::F32, rows as u64, Access::Write);
        let n = b.index(rows);
        let i = b.open_loop(LoopKind::Parallel, 0, n);
        let acc = b.alloc(Space::Register, Type::scalar(DType::F32), 1);
        let (zero, none) = (b.index(0), b.constant(Scalar::from(0f32)));
        b.store(acc, zero, none);
        let m = b.index(columns);
        let start = b.binary(BinaryOp::Mul, i, m);
        let j = b.open_loop(LoopKind::Serial, 1, m);
        let at = b.binary(BinaryOp::Add, start, j);
        let (element, old) = (b.load(x, at), b.load(acc, zero));
        let new = b.binary(BinaryOp::Add, old, element);
        b.store(acc, zero, new);
        b.close();
        let (sum, factor) = (b.load(acc, zero), b.constant(Scalar::from(0.5 * columns as f32)));
        let scaled = b.binary(BinaryOp::Mul, sum, factor);
        b.store(y, i, scaled);
        b.close();
        Verified::new(&b.finish()).unwrap()
    }

    #[test]
    fn one_kernel_computes_what_its_members_do() {
        let outline = |rows, columns| Outline::of(&sums(rows, columns)).unwrap();
        let (first, second) = (outline(3, 8), outline(5, 8));
        assert_eq!(first.key(), second.key());
        let values =
            |family: &Family, outline| family.member(&outline).map(|x| x.values().to_vec());
        let alone = Family::new(&first, false);
        assert!(alone.is_single() && !alone.serves(&second));
        assert_eq!(values(&alone, first), Some(vec![]));
        // Rows alone vary: the length of a row stays a literal.
        let rows = alone.with(&second);
        assert_eq!(values(&rows, outline(7, 8)), Some(vec![7]));
        assert_eq!(values(&rows, outline(7, 9)), None);
        // Also where both are equal by chance.
        let both = Family::new(&outline(4, 4), false).with(&outline(16, 4)).with(&outline(16, 40));
        assert_eq!(values(&both, outline(20, 20)).map(|all| all.len()), Some(3));
        let general = both.kernel("all").unwrap().verify().unwrap();
        for (rows, columns) in [(2, 3), (5, 5), (9, 6), (4, 33)] {
            let (member, outline) = (sums(rows, columns), outline(rows, columns));
            let x: Vec<u8> = (0..rows * columns).flat_map(|i| (i as f32).to_le_bytes()).collect();
            let run = |kernel: &Kernel, vars: &[u64]| {
                let mut buffers = vec![x.clone(), vec![0; 4 * rows as usize]];
                interp::interpret(kernel, &mut buffers, vars, &interp::Options::default())?;
                Ok::<_, interp::InterpError>(buffers.remove(1))
            };
            let held = both.member(&outline).unwrap();
            assert_eq!(held.lens(), [rows * columns, rows].map(|n| n as u64));
            assert_eq!(run(&general, held.values()), run(&member, &[]), "{rows} {columns}");
            // Whoever makes one up, or lets go of it, has none.
            let values = held.values().to_vec();
            let more: Vec<u64> = values.iter().map(|x| x + 1).collect();
            assert!(run(&general, &more).is_err());
            drop(held);
            assert!(run(&general, &values).is_err());
        }
        assert!(!both.serves(&outline(1 << 20, 4)), "out of range");
    }

    /// An index that is chosen is written out in its guard, too, where it is another value.
    #[test]
    fn loops_with_guarded_indices_are_made_longer() {
        let chosen = |n: i64| {
            let mut b = Builder::new("chosen");
            let x = b.param(DType::F32, 1, Access::Read);
            let y = b.param(DType::F32, n as u64, Access::Write);
            let [at, len, back] = [0; 3].map(|_| b.var(DType::I64, i64::MIN, i64::MAX));
            let n = b.index(n);
            let i = b.open_loop(LoopKind::Parallel, 0, n);
            let (inside, further) =
                (b.binary(BinaryOp::Lt, at, len), b.binary(BinaryOp::Add, at, back));
            let place = b.ternary(TernaryOp::Where, inside, further, at);
            let (zero, one) = (b.index(0), b.index(1));
            let (least, most) =
                (b.binary(BinaryOp::Le, zero, place), b.binary(BinaryOp::Lt, place, one));
            let is_one = b.binary(BinaryOp::And, least, most);
            let place = b.guard(place, is_one);
            let element = b.load(x, place);
            b.store(y, i, element);
            b.close();
            Outline::of(&Verified::new(&b.finish()).unwrap()).unwrap()
        };
        let family = Family::new(&chosen(2), false).with(&chosen(3));
        assert!(family.padded(&chosen(2), "padded").is_some());
    }

    /// Some elements from a place on, or of every so many blocks if it is `divided`.
    fn part(place: i64, divided: bool) -> Verified {
        let mut b = Builder::new("part");
        let (x, y) =
            (b.param(DType::F32, 4096, Access::Read), b.param(DType::F32, 32, Access::Write));
        let (n, place, block) = (b.index(32), b.index(place), b.index(8));
        let i = b.open_loop(LoopKind::Parallel, 0, n);
        let at = b.binary(BinaryOp::Add, i, place);
        let at = if divided { b.binary(BinaryOp::Div, at, block) } else { at };
        let element = b.load(x, at);
        b.store(y, i, element);
        b.close();
        Verified::new(&b.finish()).unwrap()
    }

    #[test]
    fn places_are_counted_in_steps_that_keep_accesses_aligned() {
        let outline = |place, divided| Outline::of(&part(place, divided)).unwrap();
        let of = |divided, steps| {
            let family = Family::new(&outline(128, divided), steps);
            family.with(&outline(640, divided)).with(&outline(2048, divided))
        };
        let family = of(false, true);
        assert!(family.varies_in_places());
        assert!(!of(true, true).varies_in_places(), "divided");
        let rows = Family::new(&Outline::of(&sums(3, 8)).unwrap(), true);
        assert!(!rows.with(&Outline::of(&sums(5, 8)).unwrap()).varies_in_places(), "counted");
        let values =
            |place: i64| family.member(&outline(place, false)).map(|x| x.values().to_vec());
        assert_eq!(values(640), Some(vec![10]));
        assert_eq!(values(641), None, "between two steps");
        let general = family.kernel("part").unwrap().verify().unwrap();
        let x: Vec<u8> = (0..4096).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let run = |kernel: &Kernel, vars: &[u64]| {
            let mut buffers = vec![x.clone(), vec![0; 128]];
            interp::interpret(kernel, &mut buffers, vars, &interp::Options::default()).unwrap();
            buffers.remove(1)
        };
        for place in [64, 128, 1984] {
            let held = family.member(&outline(place, false)).unwrap();
            assert_eq!(run(&general, held.values()), run(&part(place, false), &[]), "{place}");
        }
    }

    /// One program for several sizes: loops as long as the longest, all other numbers as arguments.
    #[test]
    fn longer_loops_compute_what_the_members_do() {
        let outline = |rows, columns| Outline::of(&sums(rows, columns)).unwrap();
        let family = Family::new(&outline(17, 33), true).with(&outline(20, 45));
        let padded = |rows, columns| {
            Verified::new(&family.padded(&outline(rows, columns), "padded").unwrap()).unwrap()
        };
        let sized = |rows, columns| Outline::with_lengths(&padded(rows, columns)).unwrap();
        assert_eq!(sized(17, 33).key(), sized(23, 47).key());
        assert_ne!(sized(17, 33).key(), sized(17, 49).key());
        // What varies is known from the kernels as they are.
        let all = family.of_padded(&outline(24, 48), &sized(24, 48)).unwrap();
        let general = all.kernel("all").unwrap().verify().unwrap();
        for (rows, columns) in [(24, 48), (17, 33), (18, 40), (23, 47), (21, 46)] {
            let x: Vec<u8> = (0..rows * columns).flat_map(|i| (i as f32).to_le_bytes()).collect();
            let run = |kernel: &Kernel, vars: &[u64]| {
                let mut buffers = vec![x.clone(), vec![0; 4 * rows as usize]];
                interp::interpret(kernel, &mut buffers, vars, &interp::Options::default()).unwrap();
                buffers.remove(1)
            };
            let expected = run(&sums(rows, columns), &[]);
            assert_eq!(run(&padded(rows, columns), &[]), expected, "{rows} {columns}");
            let held = all.member(&sized(rows, columns)).unwrap();
            assert_eq!(run(&general, held.values()), expected, "{rows} {columns}");
        }
    }

    /// A running product that is added up besides, and its value at the last small factor.
    fn running(n: i64) -> Verified {
        let mut b = Builder::new("running");
        let x = b.param(DType::F32, n as u64, Access::Read);
        let y = b.param(DType::F32, 3, Access::Write);
        let (zero, one) = (b.index(0), b.index(1));
        let f32 = Type::scalar(DType::F32);
        let registers = [1f32, 0.0, 0.0].map(|start| {
            let register = b.alloc(Space::Register, f32, 1);
            let start = b.constant(Scalar::from(start));
            b.store(register, zero, start);
            register
        });
        let [product, sum, last] = registers;
        let len = b.index(n);
        let i = b.open_loop(LoopKind::Serial, 0, len);
        let (element, old) = (b.load(x, i), b.load(product, zero));
        let new = b.binary(BinaryOp::Mul, old, element);
        b.store(product, zero, new);
        let old = b.load(sum, zero);
        let total = b.binary(BinaryOp::Add, old, new);
        b.store(sum, zero, total);
        let few = b.constant(Scalar::from(1f32));
        let small = b.binary(BinaryOp::Lt, element, few);
        b.open_if(small);
        b.store(last, zero, new);
        b.close();
        b.close();
        let two = b.index(2);
        for (register, at) in registers.into_iter().zip([zero, one, two]) {
            let value = b.load(register, zero);
            b.store(y, at, value);
        }
        Verified::new(&b.finish()).unwrap()
    }

    /// What is loaded or computed in front of the inner of two loops: `a` starts anew from what `b` was, `c` adds up a
    /// product of the outer loop.
    fn nested(n: i64) -> Verified {
        let mut b = Builder::new("nested");
        let x = b.param(DType::F32, n as u64, Access::Read);
        let y = b.param(DType::F32, 2, Access::Write);
        let (zero, one) = (b.index(0), b.index(1));
        let start = b.constant(Scalar::from(0f32));
        let registers = [(), ()].map(|()| {
            let register = b.alloc(Space::Register, Type::scalar(DType::F32), 1);
            b.store(register, zero, start);
            register
        });
        let [kept, sum] = registers;
        let len = b.index(n);
        let i = b.open_loop(LoopKind::Serial, 0, len);
        let (element, old) = (b.load(x, i), b.load(kept, zero));
        let product = b.binary(BinaryOp::Mul, element, element);
        let j = b.open_loop(LoopKind::Serial, 1, len);
        let other = b.load(x, j);
        let new = b.binary(BinaryOp::Add, old, other);
        b.store(kept, zero, new);
        let before = b.load(sum, zero);
        let total = b.binary(BinaryOp::Add, before, product);
        b.store(sum, zero, total);
        b.close();
        b.close();
        for (register, at) in registers.into_iter().zip([zero, one]) {
            let value = b.load(register, zero);
            b.store(y, at, value);
        }
        Verified::new(&b.finish()).unwrap()
    }

    /// Loops of random kernels with three iterations more each.
    #[test]
    fn random_kernels_with_longer_loops_compute_the_same() {
        use super::super::generate::{
            Options, random_inputs, random_kernel, random_vars, same_elements,
        };
        let options = Options { atomics: true, ..Options::scalar() };
        let mut longer = 0;
        for seed in 0..2000 {
            let kernel = random_kernel(seed, &options);
            let verified = Verified::new(&kernel).unwrap();
            let Some(outline) = Outline::of(&verified) else { continue };
            let mut family = Family::new(&outline, true);
            let mut classes = family.classes.iter();
            let mut class_of = FxHashMap::default();
            for (value, op, _) in outline.kernel.iter() {
                match op {
                    Op::Const { .. } => {
                        class_of.insert(value, *classes.next().unwrap());
                    }
                    Op::Loop { len, .. } => {
                        if let Some(&class) = class_of.get(&len) {
                            family.known[class as usize].varies = true;
                        }
                    }
                    _ => {}
                }
            }
            let (literals, lens) = (&outline.literals, &outline.lens);
            let padded = family.padded_by(&outline, literals, lens, "padded", |n, _| n + 3);
            let Some(padded) = padded else { continue };
            longer += 1;
            let (inputs, vars) = (random_inputs(&kernel, seed), random_vars(&kernel, seed));
            let run = |kernel: &Kernel| {
                let mut buffers = inputs.clone();
                interp::interpret(kernel, &mut buffers, &vars, &interp::Options::default())
                    .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{kernel}"));
                buffers
            };
            let (expected, found) = (run(&kernel), run(&Verified::new(&padded).unwrap()));
            let buffers = expected.iter().zip(&found).zip(kernel.params());
            for ((expected, found), info) in buffers {
                let same = same_elements(info.dtype, expected, found);
                assert!(same, "seed {seed}:\n{kernel}\n{padded}");
            }
        }
        assert!(longer > 500, "{longer}");
    }

    #[test]
    fn added_iterations_leave_what_a_loop_carries() {
        let kernels: [fn(i64) -> Verified; 2] = [running, nested];
        for (kernel, n) in kernels.into_iter().flat_map(|k| [9, 33, 40, 45].map(|n| (k, n))) {
            let outline = |n| Outline::of(&kernel(n)).unwrap();
            let family = Family::new(&outline(33), true).with(&outline(45));
            let x: Vec<u8> =
                (0..n).flat_map(|i| (0.7 + 0.1 * (i % 5) as f32).to_le_bytes()).collect();
            let run = |kernel: &Kernel| {
                let mut buffers = vec![x.clone(), vec![0; 12]];
                interp::interpret(kernel, &mut buffers, &[], &interp::Options::default()).unwrap();
                buffers.remove(1)
            };
            let padded = family.padded(&outline(n), "padded").unwrap();
            assert_eq!(run(&Verified::new(&padded).unwrap()), run(&kernel(n)), "{n}: {}", *padded);
        }
    }

    #[test]
    fn nothing_else_is_a_member_or_the_kernel_of_a_family() {
        let [first, second] = [3, 5].map(|rows| Outline::of(&sums(rows, 8)).unwrap());
        let family = Family::new(&first, false).with(&second);
        let unverified = Outline::of_unverified(&sums(7, 8)).unwrap();
        assert!(family.serves(&unverified) && family.member(&unverified).is_none());
        assert!(family.padded(&first, "").is_some() && family.padded(&unverified, "").is_none());
        // What others make of the kernel accesses nothing of which the length is open.
        let general = family.kernel("all").unwrap();
        assert_eq!(*Verified::new(&general).unwrap(), *general);
        let mut b = general.rebuild();
        let map = general.iter().fold(Vec::new(), |mut map: Vec<Value>, (_, op, ty)| {
            let new = match op.map(|x| map[x.idx()]) {
                Op::Load { buf, index, order } => {
                    let far = b.index(1 << 30);
                    let index = b.binary(BinaryOp::Add, index, far);
                    b.emit(Op::Load { buf, index, order }, ty)
                }
                op => b.emit(op, ty),
            };
            map.push(new);
            map
        });
        assert_eq!(map.len(), general.ops().len());
        let other = b.finish();
        assert!(other.members() == general.members());
        if let Ok(guarded) = Verified::new(&other) {
            assert_ne!(*guarded, other);
        }
    }
}
