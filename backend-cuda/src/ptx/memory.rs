//! Memory: addresses, guards, loads and stores of several lanes, atomics, private arrays.

use super::{Body, MOST_REGISTERS, MOVED, Reg, bits, memory, reg, suffix};
use std::collections::HashSet;
use std::fmt::Write;
use zyx_core::codegen::Place;
use zyx_core::codegen::walk::{Emitted, synchronise};
use zyx_core::ir::{Kernel, Op, Space, Type, Value};
use zyx_core::{BinaryOp, DType, UnaryOp};

impl Body<'_> {
    pub(super) fn declare(&mut self, space: &str, value: Value, bytes: usize) -> String {
        let name = format!("m{}", value.0);
        let _ = writeln!(self.declared, "    {space} .b8 {name}[{bytes}];");
        name
    }

    /// The position along an axis, or how many there are.
    pub(super) fn position(&mut self, register: &str, axis: usize, dtype: DType) -> String {
        let word =
            self.set(Reg::Word, "mov.u32", &[&format!("%{register}.{}", ["x", "y", "z"][axis])]);
        self.cast(DType::U32, dtype, &word)
    }

    pub(super) fn space(&self, buf: Value) -> &'static str {
        match self.kernel.op(buf) {
            Op::Alloc { space: Space::Shared, .. } => "shared",
            Op::Alloc { .. } => "local",
            _ => "global",
        }
    }

    /// The address of lane `lane` of an access: a register and the bytes beyond it.
    pub(super) fn at(&mut self, place: &Place, lane: usize) -> (String, i64) {
        let (ty, element) = (self.kernel.ty(place.index), self.kernel.ty(place.buf));
        let base = self.bases[&place.buf].clone();
        let size = element.bytes() as i64;
        let beyond = match (ty.is_vector(), element.is_vector()) {
            (true, _) => 0,
            // Elements are whole vectors.
            (false, true) => (lane * element.dtype.size()) as i64,
            (false, false) => lane as i64 * size,
        };
        if let Some(n) = self.kernel.constant(place.index).filter(|_| !ty.is_vector()) {
            let bytes = n.to_i64() * size + beyond;
            if i32::try_from(bytes).is_ok() {
                return (base, bytes);
            }
            // What is added in an address has 32 bits.
            return (self.set(Reg::Long, "add.s64", &[&base, &bytes.to_string()]), 0);
        }
        let lanes = self.lanes(place.index);
        let (index, size) = (&lanes[if ty.is_vector() { lane } else { 0 }], size.to_string());
        let at = if self.space(place.buf) == "shared" {
            let word = match ty.dtype.bits() {
                64 => self.set(Reg::Word, "cvt.u32.u64", &[index]),
                _ => index.clone(),
            };
            self.set(Reg::Word, "mad.lo.u32", &[&word, &size, &base])
        } else {
            let multiply = if ty.dtype.bits() == 64 { "mad.lo" } else { "mad.wide" };
            let multiply = format!("{multiply}.{}", suffix(ty.dtype));
            self.set(Reg::Long, &multiply, &[index, &size, &base])
        };
        (at, beyond)
    }

    /// The predicate of an access of a lane, and of the thread that writes for all if `writes`.
    pub(super) fn test(&mut self, place: &Place, lane: u8, writes: bool) -> Option<String> {
        let mut all: Option<String> = None;
        let mut tests = Vec::new();
        for &cond in &place.conds {
            let lanes = self.lanes(cond);
            tests.push(lanes[if lanes.len() > 1 { usize::from(lane) } else { 0 }].clone());
        }
        if writes && self.sync.is_memory(place.buf) {
            for axis in self.sync.idle_axes().collect::<Vec<_>>() {
                let at = self.position("tid", axis, DType::U32);
                tests.push(self.set(Reg::Pred, "setp.eq.u32", &[&at, "0"]));
            }
        }
        for test in tests {
            all = Some(match all {
                None => test,
                Some(all) => self.set(Reg::Pred, "and.pred", &[&all, &test]),
            });
        }
        all
    }

    /// Lanes that an access moves at once.
    pub(super) fn moved(&self, place: &Place, ty: Type) -> usize {
        let (lanes, size) = (usize::from(ty.lanes), ty.dtype.size());
        let element = self.kernel.ty(place.buf);
        let vectors = self.kernel.ty(place.index).is_vector()
            || place.conds.iter().any(|&cond| self.kernel.ty(cond).is_vector());
        if lanes == 1 || vectors || place.relaxed {
            return 1;
        }
        // Buffers begin at multiples of 64 bytes.
        let aligned = match element.lanes == ty.lanes {
            true => lanes as u64,
            false if matches!(self.kernel.op(place.buf), Op::Param { .. }) => {
                match self.multiples[place.index.idx()] {
                    0 => lanes as u64,
                    n => 1 << n.trailing_zeros().min(5),
                }
            }
            false => 1,
        };
        lanes.min(aligned as usize).min(MOVED / size).max(1)
    }

    /// The elements of a private array that an access is to.
    pub(super) fn cells(&self, place: &Place, lanes: u8) -> Vec<(usize, usize)> {
        let index = self.kernel.constant(place.index);
        let first = index.expect("invariant: it has no address").to_i64() as usize;
        match self.kernel.ty(place.buf).lanes == lanes {
            true => (0..usize::from(lanes)).map(|lane| (first, lane)).collect(),
            false => (0..usize::from(lanes)).map(|lane| (first + lane, 0)).collect(),
        }
    }

    /// Combines with an element by compare and exchange of the word around it; `result` becomes what it was.
    pub(super) fn exchange(
        &mut self,
        op: BinaryOp,
        place: &Place,
        lane: usize,
        x: &str,
        result: &str,
    ) {
        let (dtype, space) = (self.kernel.ty(place.buf).dtype, self.space(place.buf));
        let (base, beyond) = self.at(place, lane);
        let (pointer, bits) = if space == "shared" { (Reg::Word, 32) } else { (Reg::Long, 64) };
        let mut at = self.set(pointer, &format!("add.s{bits}"), &[&base, &beyond.to_string()]);
        let narrow = dtype.bits() < 32;
        let (word, width) = if dtype.bits() == 64 { (Reg::Long, 64) } else { (Reg::Word, 32) };
        let mut shift = String::new();
        if narrow {
            let byte = self.set(pointer, &format!("and.b{bits}"), &[&at, "3"]);
            at = self.set(pointer, &format!("and.b{bits}"), &[&at, "-4"]);
            let byte = if bits == 64 { self.set(word, "cvt.u32.u64", &[&byte]) } else { byte };
            shift = self.set(word, "shl.b32", &[&byte, "3"]);
        }
        let seen = self.set(word, &format!("ld.volatile.{space}.b{width}"), &[&format!("[{at}]")]);
        let label = self.labels;
        self.labels += 1;
        self.out.push_str(&format!("$L{label}:\n"));
        let old = self.set(word, &format!("mov.b{width}"), &[&seen]);
        let y = if narrow {
            let part = self.set(word, "shr.u32", &[&old, &shift]);
            match reg(dtype) {
                Reg::Half => self.set(Reg::Half, "cvt.u16.u32", &[&part]),
                Reg::Pred => {
                    let byte = self.set(word, "and.b32", &[&part, "255"]);
                    self.set(Reg::Pred, "setp.ne.u32", &[&byte, "0"])
                }
                _ => self.set(word, &format!("cvt.{}.u32", suffix(dtype)), &[&part]),
            }
        } else {
            self.bitcast(if width == 64 { DType::U64 } else { DType::U32 }, dtype, &old)
        };
        let z = self.binary(op, dtype, &y, x);
        let new = if narrow {
            let z = match reg(dtype) {
                Reg::Half => self.set(word, "cvt.u32.u16", &[&z]),
                Reg::Pred => self.set(word, "selp.u32", &["1", "0", &z]),
                _ => z,
            };
            self.set(word, "bfi.b32", &[&z, &old, &shift, &dtype.bits().to_string()])
        } else {
            self.bitcast(dtype, if width == 64 { DType::U64 } else { DType::U32 }, &z)
        };
        self.line(&format!("atom.{space}.cas.b{width} {seen}, [{at}], {old}, {new};"));
        let again = self.set(Reg::Pred, &format!("setp.ne.u{width}"), &[&seen, &old]);
        self.line(&format!("@{again} bra $L{label};"));
        self.assign(dtype, result, &y);
    }

    /// Gives a register another value.
    pub(super) fn assign(&mut self, dtype: DType, to: &str, x: &str) {
        match dtype {
            DType::Bool => self.line(&format!("or.pred {to}, {x}, {x};")),
            _ => self.line(&format!("mov.{} {to}, {x};", bits(dtype))),
        }
    }

    /// The instruction that combines indivisibly, where there is one.
    pub(super) fn indivisible(op: BinaryOp, dtype: DType) -> Option<(&'static str, &'static str)> {
        use BinaryOp::{Add, And, Max, Min, Or, Sub, Xor};
        let integer = dtype.is_int() && dtype.bits() >= 32;
        let unsigned = if dtype.bits() == 64 { "u64" } else { "u32" };
        match op {
            Add | Sub if integer => Some(("add", unsigned)),
            Add if matches!(dtype, DType::F32 | DType::F64) => Some(("add", suffix(dtype))),
            Max | Min if integer => Some((op.name(), suffix(dtype))),
            And | Or | Xor if integer => Some((op.name(), bits(dtype))),
            _ => None,
        }
    }
    pub(super) fn loaded(&mut self, value: Value, ty: Type, place: &Place) -> Emitted {
        let dtype = ty.dtype;
        if self.copied[value.idx()] {
            return Ok(());
        }
        if let Some(array) = self.arrays.get(&place.buf).cloned() {
            let cells = self.cells(place, ty.lanes).into_iter();
            let lanes = cells.map(|(i, lane)| self.copy(dtype, &array[i][lane]));
            self.values[value.idx()] = lanes.collect();
            return Ok(());
        }
        let (n, space) = (self.moved(place, ty), self.space(place.buf));
        let access = if place.relaxed || place.awaited { ".volatile" } else { "" };
        // Several lanes in a word are moved as words.
        let packed = dtype.bits() < 32 && n * dtype.size() >= 4;
        let (held, unit, of) = match packed {
            true => (Reg::Word, DType::U32, "b32"),
            false if dtype == DType::Bool => (Reg::Word, DType::U32, "u8"),
            false => (reg(dtype), dtype, memory(dtype)),
        };
        let units = if packed { n * dtype.size() / 4 } else { n };
        let mut lanes = Vec::new();
        for first in (0..usize::from(ty.lanes)).step_by(n) {
            let targets: Vec<String> = (0..units).map(|_| self.fresh(held)).collect();
            let test = self.test(place, first as u8, false);
            let (base, beyond) = self.at(place, first);
            if test.is_some() {
                let zero = self.zero(unit);
                for target in &targets {
                    self.assign(unit, target, &zero);
                }
            }
            let guard = test.as_ref().map_or(String::new(), |test| format!("@{test} "));
            let (list, width) = vector(&targets);
            if !place.awaited {
                let load = format!("ld{access}.{space}{width}.{of}");
                self.line(&format!("{guard}{load} {list}, [{base}+{beyond}];"));
            } else {
                let (start, end) = (self.labels, self.labels + 1);
                self.labels += 2;
                if let Some(test) = &test {
                    self.line(&format!("@!{test} bra $L{end};"));
                }
                self.out.push_str(&format!("$L{start}:\n"));
                self.line(&format!("ld.volatile.{space}.{of} {list}, [{base}+{beyond}];"));
                let zero = self.zero(dtype);
                let again = self.binary(BinaryOp::Eq, dtype, &targets[0], &zero);
                self.line(&format!("@{again} bra $L{start};"));
                self.out.push_str(&format!("$L{end}:\n"));
            }
            match packed {
                true => lanes.extend(self.unpack(dtype, &targets)),
                false if dtype == DType::Bool => {
                    let test = |target: &String| self.set(Reg::Pred, "setp.ne.u32", &[target, "0"]);
                    lanes.extend(targets.iter().map(test).collect::<Vec<_>>());
                }
                false => lanes.extend(targets),
            }
        }
        self.values[value.idx()] = lanes;
        Ok(())
    }

    pub(super) fn stored(&mut self, place: &Place, x: Value) -> Emitted {
        let ty = self.kernel.ty(x);
        if let (true, Op::Load { order, buf, index }) = (self.copied[x.idx()], self.kernel.op(x)) {
            let from = Place::of(self.kernel, order, buf, index)?;
            let test = self.test(place, 0, true);
            let ((to, a), (from, b)) = (self.at(place, 0), self.at(&from, 0));
            let guard = test.map_or(String::new(), |test| format!("@{test} "));
            let copy = format!("cp.async.cg.shared.global [{to}+{a}], [{from}+{b}], {MOVED}");
            self.line(&format!("{guard}{copy};"));
            return Ok(());
        }
        let values = self.lanes(x);
        let dtype = ty.dtype;
        if let Some(array) = self.arrays.get(&place.buf).cloned() {
            for ((i, lane), x) in self.cells(place, ty.lanes).into_iter().zip(values) {
                self.assign(dtype, &array[i][lane], &x);
            }
            return Ok(());
        }
        let (n, space) = (self.moved(place, ty), self.space(place.buf));
        let access = if place.relaxed { ".volatile" } else { "" };
        let packed = dtype.bits() < 32 && n * dtype.size() >= 4;
        for first in (0..values.len()).step_by(n) {
            let test = self.test(place, first as u8, true);
            let (base, beyond) = self.at(place, first);
            let part = &values[first..first + n];
            let (list, of) = if packed {
                (self.pack(dtype, part), "b32")
            } else {
                let held = |x: &String| match dtype {
                    DType::Bool => self.set(Reg::Word, "selp.u32", &["1", "0", x]),
                    dtype if !x.starts_with('%') => self.copy(dtype, x),
                    _ => x.clone(),
                };
                (part.iter().map(held).collect(), memory(dtype))
            };
            let guard = test.map_or(String::new(), |test| format!("@{test} "));
            let (list, width) = vector(&list);
            let store = format!("st{access}.{space}{width}.{of}");
            self.line(&format!("{guard}{store} [{base}+{beyond}], {list};"));
        }
        Ok(())
    }

    pub(super) fn combined(
        &mut self,
        old: Option<Value>,
        op: BinaryOp,
        place: &Place,
        x: Value,
    ) -> Emitted {
        let (ty, values, space) = (self.kernel.ty(x), self.lanes(x), self.space(place.buf));
        let dtype = ty.dtype;
        let shares = old.is_some()
            && self.sync.is_memory(place.buf)
            && self.sync.idle_axes().next().is_some();
        let (mut lanes, mut shared) = (Vec::new(), Vec::new());
        for (lane, x) in values.iter().enumerate() {
            let test = self.test(place, lane as u8, true);
            let result = self.zero(dtype);
            let result = self.copy(dtype, &result);
            let end = self.labels;
            self.labels += 1;
            if let Some(test) = &test {
                self.line(&format!("@!{test} bra $L{end};"));
            }
            match Self::indivisible(op, dtype) {
                Some((name, of)) => {
                    let negated = op == BinaryOp::Sub;
                    let x = if negated { self.unary(UnaryOp::Neg, dtype, x) } else { x.clone() };
                    let (base, beyond) = self.at(place, lane);
                    let of = format!("{space}.{name}.{of}");
                    if old.is_some() {
                        self.line(&format!("atom.{of} {result}, [{base}+{beyond}], {x};"));
                    } else {
                        self.line(&format!("red.{of} [{base}+{beyond}], {x};"));
                    }
                }
                None => self.exchange(op, place, lane, x, &result),
            }
            self.out.push_str(&format!("$L{end}:\n"));
            if let (true, Some(value)) = (shares, old) {
                // What the first thread gets, all threads of the group have to see.
                let name = format!("a{}_{lane}", value.0);
                let bytes = dtype.size();
                let _ = writeln!(self.declared, "    .shared .align 8 .b8 {name}[{bytes}];");
                let held = match dtype {
                    DType::Bool => self.set(Reg::Word, "selp.u32", &["1", "0", &result]),
                    _ => result.clone(),
                };
                let mut first: Option<String> = None;
                for axis in self.sync.idle_axes().collect::<Vec<_>>() {
                    let at = self.position("tid", axis, DType::U32);
                    let here = self.set(Reg::Pred, "setp.eq.u32", &[&at, "0"]);
                    first = Some(match first {
                        None => here,
                        Some(all) => self.set(Reg::Pred, "and.pred", &[&all, &here]),
                    });
                }
                let first = first.expect("invariant: an axis is idle");
                self.line(&format!("@{first} st.shared.{} [{name}], {held};", memory(dtype)));
                shared.push(name);
            }
            lanes.push(result);
        }
        let Some(value) = old else { return Ok(()) };
        if shares {
            let barrier = self.sync.broadcast()?;
            synchronise(self, barrier);
            lanes.clear();
            for name in shared {
                let held = if dtype == DType::Bool { Reg::Word } else { reg(dtype) };
                let load = format!("ld.shared.{}", memory(dtype));
                let x = self.set(held, &load, &[&format!("[{name}]")]);
                lanes.push(match dtype {
                    DType::Bool => self.set(Reg::Pred, "setp.ne.u32", &[&x, "0"]),
                    _ => x,
                });
            }
        }
        self.values[value.idx()] = lanes;
        Ok(())
    }
}

/// Registers as one operand, and how many they are.
fn vector(registers: &[String]) -> (String, String) {
    match registers {
        [one] => (one.clone(), String::new()),
        all => (format!("{{{}}}", all.join(", ")), format!(".v{}", all.len())),
    }
}

/// Private arrays that are accessed at indices that vary, or are large.
pub(super) fn addressed(kernel: &Kernel) -> HashSet<Value> {
    let is_private = |buf| matches!(kernel.op(buf), Op::Alloc { space: Space::Register, .. });
    let mut found = HashSet::new();
    for (value, op, _) in kernel.iter() {
        match op {
            Op::Load { buf, index, .. } | Op::Store { buf, index, .. }
                if is_private(buf) && kernel.constant(index).is_none() =>
            {
                found.insert(buf);
            }
            Op::Atomic { buf, .. } if is_private(buf) => {
                found.insert(buf);
            }
            Op::Alloc { space: Space::Register, len } if len > MOST_REGISTERS => {
                found.insert(value);
            }
            _ => {}
        }
    }
    found
}
