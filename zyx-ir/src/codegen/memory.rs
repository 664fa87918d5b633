//! Statements that touch memory: loads, stores and atomics, with their guards.

use super::body::Body;
use super::dialect::{Helper, Position};
use super::place::Place;
use super::walk::{Emitted, synchronise};
use crate::ir::{Op, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use std::fmt::Write;

impl Body<'_, '_> {
    /// Qualifier of pointers to this storage, where it has any.
    fn qualifier(&self, buf: Value) -> &'static str {
        match self.kernel.op(buf) {
            Op::Alloc { .. } if self.sync.is_memory(buf) => self.speller.dialect.shared_pointer,
            Op::Alloc { .. } => "",
            _ => self.speller.dialect.buffer,
        }
    }

    /// Whether lanes of an access of type `ty` have to be treated one by one. In private storage they
    /// are, so that a compiler may keep it in registers: nothing there has an address.
    fn is_lanewise(&self, place: &Place, ty: Type) -> bool {
        ty.lanes > self.kernel.ty(place.buf).lanes
            && (!self.sync.is_memory(place.buf)
                || place.relaxed
                || self.kernel.ty(place.index).is_vector()
                || place.conds.iter().any(|&c| self.kernel.ty(c).is_vector()))
    }

    /// Whether an access of consecutive elements is one of a vector in place: buffers begin at
    /// multiples of 64 bytes.
    fn whole(&self, place: &Place, ty: Type) -> bool {
        ty.bytes() <= 16
            && self.is_multiple(place.index, ty.lanes)
            && matches!(self.kernel.op(place.buf), Op::Param { .. })
    }

    /// Whether an index is known to be a multiple of a number of lanes.
    pub(super) fn is_multiple(&self, index: Value, lanes: u8) -> bool {
        let multiple = self.multiples.get(index.idx()).copied().unwrap_or(1);
        multiple.is_multiple_of(lanes.into())
    }

    /// The type of pointers to vectors in a buffer.
    fn vectors(&self, ty: Type) -> String {
        format!("{}{} *", self.speller.dialect.buffer, self.speller.ty(ty))
    }

    /// The index of lane `lane`.
    fn index(&self, place: &Place, lane: u8) -> String {
        let (ty, index) = (self.kernel.ty(place.index), self.name(place.index));
        match lane {
            _ if ty.is_vector() => self.speller.lane(ty, &index, lane),
            0 => index,
            _ => format!("{index} + {lane}"),
        }
    }

    /// The element at an index, as something to read or assign.
    fn element(&self, place: &Place, index: &str) -> String {
        let buf = self.name(place.buf);
        if !place.relaxed {
            return format!("{buf}[{index}]");
        }
        let (qualifier, ty) = (self.qualifier(place.buf), self.kernel.ty(place.buf));
        format!("*(volatile {qualifier}{} *)({buf} + ({index}))", self.speller.ty(ty))
    }

    /// The guards of lane `lane` as one test, empty if there are none.
    fn guards(&self, place: &Place, lane: u8) -> String {
        let term = |&cond: &Value| self.speller.lane(self.kernel.ty(cond), &self.name(cond), lane);
        place.conds.iter().map(term).collect::<Vec<_>>().join(" & ")
    }

    /// `access` where the guards of lane `lane` hold, else zero.
    fn guarded(&self, place: &Place, lane: u8, ty: Type, access: String) -> String {
        let test = self.guards(place, lane);
        if test.is_empty() {
            return access;
        }
        let zero = self.speller.literal(Scalar::from_i64(ty.dtype, 0));
        format!("({test}) ? {access} : {}", self.speller.fill(ty, &zero))
    }

    /// The test for the thread that writes for all where the group acts as one, else empty.
    fn first_thread(&self, buf: Value) -> String {
        if !self.sync.is_memory(buf) {
            return String::new();
        }
        let position = self.speller.dialect.position;
        let test = |axis| format!("{} == 0", position(Position::Local, axis));
        self.sync.idle_axes().map(test).collect::<Vec<_>>().join(" && ")
    }

    pub(super) fn loaded(&mut self, value: Value, ty: Type, place: &Place) {
        let expression = if self.is_lanewise(place, ty) {
            let scalar = Type::scalar(ty.dtype);
            let lanes: Vec<String> = (0..ty.lanes)
                .map(|k| {
                    let access = self.element(place, &self.index(place, k));
                    self.guarded(place, k, scalar, access)
                })
                .collect();
            self.speller.lanes(ty, &mut |_, lane| lanes[lane as usize].clone())
        } else {
            let index = self.index(place, 0);
            let access = if ty.lanes == self.kernel.ty(place.buf).lanes {
                self.element(place, &index)
            } else {
                let pointer = format!("{} + {index}", self.name(place.buf));
                match self.whole(place, ty) {
                    true => format!("*(const {})({pointer})", self.vectors(ty)),
                    false => (self.speller.dialect.load)(ty.lanes, &pointer),
                }
            };
            self.guarded(place, 0, ty, access)
        };
        self.define(value, ty, &expression);
    }

    /// A load that waits for another group.
    pub(super) fn awaited(&mut self, value: Value, ty: Type, place: &Place) {
        let pointer = format!("{} + {}", self.name(place.buf), self.index(place, 0));
        let access = self.speller.call(Helper::Await(ty.dtype), &[&pointer]);
        let expression = self.guarded(place, 0, ty, access);
        self.define(value, ty, &expression);
    }

    /// A statement executed where the guards of lane `lane` hold, once for all threads that run
    /// the same iteration.
    fn write(&mut self, place: &Place, lane: u8, statement: &str) {
        let tests = [self.guards(place, lane), self.first_thread(place.buf)];
        let tests: Vec<String> =
            tests.into_iter().filter(|t| !t.is_empty()).map(|t| format!("({t})")).collect();
        if tests.is_empty() {
            self.line(statement);
        } else {
            self.line(&format!("if ({}) {statement}", tests.join(" && ")));
        }
    }

    pub(super) fn stored(&mut self, place: &Place, x: Value) {
        if let Some([copy, _]) = self.speller.dialect.copies.filter(|_| self.copied[x.idx()]) {
            let Op::Load { buf, index, .. } = self.kernel.op(x) else {
                unreachable!("invariant: what is copied is loaded");
            };
            let [to, slot, from, at] = [place.buf, place.index, buf, index].map(|v| self.name(v));
            self.write(place, 0, &format!("{copy}({to}, {slot}, {from} + {at});"));
            return;
        }
        let (ty, text) = (self.kernel.ty(x), self.name(x));
        if self.is_lanewise(place, ty) {
            for lane in 0..ty.lanes {
                let target = self.element(place, &self.index(place, lane));
                let statement = format!("{target} = {};", self.speller.lane(ty, &text, lane));
                self.write(place, lane, &statement);
            }
            return;
        }
        let index = self.index(place, 0);
        let statement = if ty.lanes == self.kernel.ty(place.buf).lanes {
            format!("{} = {text};", self.element(place, &index))
        } else {
            let pointer = format!("{} + {index}", self.name(place.buf));
            match self.whole(place, ty) {
                true => format!("*({})({pointer}) = {text};", self.vectors(ty)),
                false => format!("{};", (self.speller.dialect.store)(ty.lanes, &pointer, &text)),
            }
        };
        self.write(place, 0, &statement);
    }

    pub(super) fn combined(
        &mut self,
        result: Option<Value>,
        op: BinaryOp,
        place: &Place,
        x: Value,
    ) -> Emitted {
        let buf = place.buf;
        let (ty, text) = (self.kernel.ty(x), self.name(x));
        let scalar = Type::scalar(ty.dtype);
        let first = self.first_thread(buf);
        let mut old = Vec::new();
        for lane in 0..ty.lanes {
            let target = if self.kernel.ty(buf).is_vector() {
                let (pointer, index) = (self.qualifier(buf), self.name(place.index));
                let start = format!(
                    "({pointer}{} *)({} + {index})",
                    self.speller.ty(scalar),
                    self.name(buf)
                );
                format!("{start} + {lane}")
            } else {
                format!("{} + {}", self.name(buf), self.index(place, lane))
            };
            let operand = self.speller.lane(ty, &text, lane);
            let call = match (self.speller.dialect.atomic)(op, ty.dtype) {
                Some(function) => format!("{function}({target}, {operand})"),
                None => {
                    let shared = matches!(self.kernel.op(buf), Op::Alloc { .. });
                    let helper = Helper::Atomic(op, ty.dtype, shared);
                    self.speller.call(helper, &[&target, &operand])
                }
            };
            let Some(value) = result else {
                self.write(place, lane, &format!("{call};"));
                continue;
            };
            let call = self.guarded(place, lane, scalar, call);
            if first.is_empty() {
                old.push(call);
                continue;
            }
            // What the first thread gets, all threads of the group have to see.
            let result = format!("a{}_{lane}", value.0);
            let (qualifier, name) = (self.speller.dialect.shared, self.speller.ty(scalar));
            let _ = writeln!(self.shared, "    {qualifier}{name} {result};");
            self.line(&format!("if ({first}) {result} = {call};"));
            old.push(result);
        }
        let Some(value) = result else { return Ok(()) };
        if !first.is_empty() {
            let barrier = self.sync.broadcast()?;
            synchronise(self, barrier);
        }
        let expression = self.speller.lanes(ty, &mut |_, lane| old[lane as usize].clone());
        self.define(value, ty, &expression);
        Ok(())
    }
}
