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
use super::verify::{Rewritten, Verified};
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
        let numbers = self.values(outline)?;
        let varying = self.known.iter().filter(|known| known.varies);
        let magnitude = |(&bits, known): (&u64, &Class)| {
            let x = number(known.dtype, bits);
            let length = (u64::BITS - x.unsigned_abs().leading_zeros()) as u16;
            let divisible = x.trailing_zeros().min(DIVISIBLE) as u16;
            u16::from(x < 0) << 15 | length << 8 | divisible
        };
        Some(numbers.iter().zip(varying).map(magnitude).collect())
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
    /// have load zeros, change no register that outlives them and store nothing. `None` if no length varies.
    pub fn padded(&self, outline: &Outline, name: &str) -> Option<Kernel> {
        self.padded_by(outline, &outline.literals, &outline.lens, name)
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
            let other = self.padded_by(outline, &literals, &lens, "")?;
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
    ) -> Option<Kernel> {
        let old = &*outline.kernel;
        let ends = old.region_ends();
        let params = old.params().iter().zip(lens);
        let params = params.map(|(info, &len)| ParamInfo { len, ..*info }).collect();
        let vars = old.vars().iter().zip(&outline.ranges);
        let vars = vars.map(|(info, &(min, max))| VarInfo { min, max, ..*info }).collect();
        let mut pad = Pad {
            old,
            // Which ops there are does not depend on numbers.
            out: Builder::raw(name).with_arguments(params, vars),
            map: Vec::with_capacity(old.ops().len()),
            depends: Vec::with_capacity(old.ops().len()),
            sums: old.iter().filter_map(|(_, op, _)| sum_of(old, op)).collect(),
            products: FxHashMap::default(),
            open: Vec::new(),
            longer: 0,
        };
        pad.products = pad.products_in_sums();
        // Of literals that vary what the kernel has.
        let mut varying: Vec<Option<u64>> = vec![None; old.ops().len()];
        let mut numbers = self.classes.iter().zip(&outline.literals).zip(literals);
        let mut any = false;
        for (value, op, ty) in old.iter() {
            let new = match op {
                Op::Const { .. } => {
                    let ((&class, &own), &bits) = numbers.next()?;
                    let varies = self.known[class as usize].varies;
                    varying[value.idx()] = varies.then_some(own);
                    pad.depends.push(0);
                    pad.out.constant(Scalar::from_bits(ty.dtype, bits))
                }
                Op::Loop { kind, axis, len } if let Some(n) = varying[len.idx()] => {
                    let body = value.idx() + 1..ends[value.idx()];
                    let is_serial = |op: &Op| matches!(op, Op::Loop { kind: LoopKind::Serial, .. });
                    let sums = kind == LoopKind::Serial || old.ops()[body].iter().any(is_serial);
                    any = true;
                    let longer = padded_len(n as i64, sums);
                    pad.open_loop(value, kind, axis, len, longer)
                }
                op => pad.copy(value, op, ty),
            };
            pad.map.push(new);
        }
        any.then(|| pad.out.finish())
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

/// How long a loop of `n` iterations is made where sizes share programs, and what strategies take it to be, so that
/// sizes have the same ones. Few lengths remain, of which each is at most an eighth or 31 iterations longer, or a quarter
/// where nothing is added up: those iterations cost little.
pub(crate) fn padded_len(n: i64, sums: bool) -> i64 {
    let step = match n {
        ..=8 => return n,
        9..=32 => 8,
        33..=128 => 16,
        _ if sums => 32.max(1 << (n.ilog2() - 3)),
        _ => 1 << (n.ilog2() - 2),
    };
    (n as u64).checked_next_multiple_of(step).map_or(n, |longer| longer as i64)
}

/// A kernel rebuilt with longer loops.
struct Pad<'k> {
    old: &'k Kernel,
    out: Builder,
    map: Vec<Value>,
    /// For each old value the longer loops that it depends on, a bit each.
    depends: Vec<u64>,
    /// Old values that combine what a register has with another value and are stored there, with the register and that
    /// value.
    sums: FxHashMap<Value, (Value, Value)>,
    /// Old products that are added to a register.
    products: FxHashMap<Value, Value>,
    /// The regions that are open, with the longer loops among them.
    open: Vec<(Value, Option<Longer>)>,
    longer: u32,
}

/// A value stored in a register that combines what this has with another value: with the register and that value.
fn sum_of(kernel: &Kernel, store: Op) -> Option<(Value, (Value, Value))> {
    let Op::Store { buf, index, value, .. } = store else { return None };
    let Op::Binary { op, x, y } = kernel.op(value) else { return None };
    op.identity(kernel.ty(value).dtype)?;
    let same = |other: Value| {
        let known = kernel.constant(index);
        index == other || known.is_some() && known == kernel.constant(other)
    };
    let is_old = |x: Value| matches!(kernel.op(x), Op::Load { buf: from, index: at, .. } if from == buf && same(at));
    let own = matches!(kernel.op(buf), Op::Alloc { .. });
    let other = if is_old(x) { y } else { x };
    (own && is_old(x) != is_old(y)).then_some((value, (buf, other)))
}

/// A loop that is longer.
#[derive(Clone, Copy)]
struct Longer {
    bit: u64,
    serial: bool,
    /// Whether the iteration is one of the kernel's own.
    own: Value,
}

impl Pad<'_> {
    fn open_loop(
        &mut self,
        old: Value,
        kind: LoopKind,
        axis: u8,
        len: Value,
        longer: i64,
    ) -> Value {
        let len = self.map[len.idx()];
        let all = self.out.index(longer);
        let counter = self.out.open_loop(kind, axis, all);
        let own = self.out.binary(BinaryOp::Lt, counter, len);
        let bit = 1 << self.longer.min(u64::BITS - 1);
        self.longer += 1;
        self.depends.push(bit);
        self.open.push((old, Some(Longer { bit, serial: kind == LoopKind::Serial, own })));
        counter
    }

    /// The bits of the longer loops that are open and pass a test.
    fn bits(&self, test: impl Fn(Value, &Longer) -> bool) -> u64 {
        let open = self.open.iter().filter_map(|(open, longer)| Some((*open, longer.as_ref()?)));
        open.filter(|&(open, longer)| test(open, longer)).fold(0, |bits, (_, l)| bits | l.bit)
    }

    /// Whether the iteration is one of the kernel's own, by these of the loops; `None` if it always is.
    fn own(&mut self, bits: u64) -> Option<Value> {
        let conds = self.open.iter().filter_map(|(_, longer)| *longer);
        let conds: Vec<Value> = conds.filter(|l| bits & l.bit != 0).map(|l| l.own).collect();
        conds.into_iter().reduce(|all, cond| self.out.binary(BinaryOp::And, all, cond))
    }

    fn copy(&mut self, value: Value, op: Op, ty: Type) -> Value {
        let is_param = |buf: Value| matches!(self.old.op(buf), Op::Param { .. });
        let depends = op.operands().fold(0, |bits, x| bits | self.depends[x.idx()]);
        self.depends.push(depends);
        let mut new = op.map(|x| self.map[x.idx()]);
        match (op, &mut new) {
            // What does not depend on a loop is in bounds in all of its iterations.
            (Op::Load { buf, index: at, .. }, Op::Load { index, .. }) if is_param(buf) => {
                *index = self.guarded(*index, self.depends[at.idx()]);
            }
            (Op::Store { buf, .. }, Op::Store { index, .. }) if is_param(buf) => {
                *index = self.guarded(*index, u64::MAX);
            }
            (Op::Atomic { buf, .. }, Op::Atomic { index, .. }) if is_param(buf) => {
                *index = self.guarded(*index, u64::MAX);
            }
            (Op::Store { .. }, Op::Store { value, .. }) => *value = self.kept(op, *value),
            (Op::Binary { op, x, y }, Op::Binary { x: a, y: b, .. }) => {
                if let Some(&register) = self.products.get(&value) {
                    // It stays a product: of zeros.
                    (*a, *b) = (self.or_zero(register, x), self.or_zero(register, y));
                }
                if let Some(&(buf, other)) = self.sums.get(&value) {
                    let added = self.added(op, buf, other);
                    *(if x == other { a } else { b }) = added;
                    debug_assert!(x == other || y == other, "{value}");
                }
            }
            (Op::Loop { .. } | Op::If { .. }, _) => self.open.push((value, None)),
            (Op::End { .. }, _) => drop(self.open.pop()),
            _ => {}
        }
        self.out.emit(new, ty)
    }

    /// An index that is used in the kernel's own iterations only, by these of the loops.
    fn guarded(&mut self, index: Value, bits: u64) -> Value {
        let Some(own) = self.own(bits) else { return index };
        match self.out.op(index) {
            Op::Guard { index, cond } => {
                let both = self.out.binary(BinaryOp::And, cond, own);
                self.out.guard(index, both)
            }
            _ => self.out.guard(index, own),
        }
    }

    fn products_in_sums(&self) -> FxHashMap<Value, Value> {
        let product = |(&sum, &(register, other)): (&Value, &(Value, Value))| {
            let adds = matches!(self.old.op(sum), Op::Binary { op: BinaryOp::Add, .. });
            let is_product = matches!(self.old.op(other), Op::Binary { op: BinaryOp::Mul, .. });
            (adds && is_product).then_some((other, register))
        };
        self.sums.iter().filter_map(product).collect()
    }

    /// A factor of what is added to a register: zero in an iteration that was added.
    fn or_zero(&mut self, register: Value, factor: Value) -> Value {
        let (bits, new) = (self.around(register), self.map[factor.idx()]);
        match self.own(bits) {
            Some(own) if !self.is_zero(factor, bits) => {
                let zero = Scalar::from_i64(self.out.ty(new).dtype, 0);
                let zero = self.out.constant(zero);
                self.out.select(own, new, zero)
            }
            _ => new,
        }
    }

    /// The serial loops that run within the life of a register.
    fn around(&self, register: Value) -> u64 {
        self.bits(|open, longer| longer.serial && register < open)
    }

    /// What is combined with a register: in an iteration that was added nothing.
    fn added(&mut self, op: BinaryOp, register: Value, other: Value) -> Value {
        let (bits, new) = (self.around(register), self.map[other.idx()]);
        let Some(own) = self.own(bits) else { return new };
        if op == BinaryOp::Add && self.is_zero(other, bits) {
            return new;
        }
        let identity = op.identity(self.out.ty(new).dtype);
        let identity = identity.expect("invariant: sums have identities");
        let identity = self.out.constant(identity);
        self.out.select(own, new, identity)
    }

    /// What a register gets by an old store: in an iteration that was added what it has.
    fn kept(&mut self, store: Op, new: Value) -> Value {
        let Op::Store { buf, value, index, .. } = store else { return new };
        if self.sums.contains_key(&value) {
            return new;
        }
        let bits = self.around(buf);
        let Some(own) = self.own(bits) else { return new };
        let [buf, index] = [buf, index].map(|v| self.map[v.idx()]);
        let old = self.out.load(buf, index);
        self.out.select(own, new, old)
    }

    /// Whether an old value is zero where the iteration is not the kernel's own by these of the loops, any of them:
    /// what is loaded there is, and products of that.
    fn is_zero(&self, value: Value, bits: u64) -> bool {
        match self.old.op(value) {
            Op::Load { buf, index, .. } => {
                let is_param = matches!(self.old.op(buf), Op::Param { .. });
                is_param && bits & !self.depends[index.idx()] == 0
            }
            Op::Cast { x } => self.is_zero(x, bits),
            Op::Binary { op: BinaryOp::Mul, x, y } => {
                let factors = self.products.get(&value).map(|register| self.around(*register));
                factors == Some(bits) || self.is_zero(x, bits) && self.is_zero(y, bits)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Access, Verified, interp};
    use super::*;

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

    #[test]
    fn nothing_else_is_a_member_or_the_kernel_of_a_family() {
        let [first, second] = [3, 5].map(|rows| Outline::of(&sums(rows, 8)).unwrap());
        let family = Family::new(&first, false).with(&second);
        let unverified = Outline::of_unverified(&sums(7, 8)).unwrap();
        assert!(family.serves(&unverified) && family.member(&unverified).is_none());
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
