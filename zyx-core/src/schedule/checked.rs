//! Realizing in checked mode: operation by operation, with each result checked to be finite; then by the plan
//! that runs without checked mode, whose results are compared with the first ones.
//!
//! The graph of the tensors is copied. The new nodes (*twins*) read copies of the inputs, have no other holders,
//! and are computed in topological order. A twin is *stored* and checked with three exceptions. It only moves
//! elements. It is far larger than its operands, as the products before a contraction's sum, which may exceed
//! memory. It is *handled*: each user selects from it by `where`, since a formula may be infinite where it is
//! not selected, or tests it for NaN and infinities. These twins are checked only if the result of a user
//! is not finite though all stored operands are. A handled twin is still computed by its own plan, so that
//! the user that selects from it is a kernel of one operation.
//!
//! Twins share no memory with the tensors. So the second plan is the one that runs without checked mode, with
//! its fusion, donation and replay. Values that it keeps for later are compared, too. Plan and twins round
//! differently. Where they differ by more than a few rounding errors of the largest element, the twins are
//! computed again several times, with a random relative error in each operation. A result of the plan that
//! differs by far more than these runs do is a fault of the plan. Results that rounding decides, such as the
//! position of one of two nearly equal maxima, are not judged.

use super::across::{Walk, is_pending};
use super::{realize_unchecked, refuse_no_value};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{KernelCall, Op};
use crate::ops::{TernaryOp, UnaryOp};
use crate::runtime::{Bound, Buffer, Device, Note, Place};
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::tensor::{History, Tensor, WeakTensor};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::panic::Location;

/// Elements up to which every result is stored, and how much larger than its operands it may be else.
const SMALL: usize = 1 << 16;
const LARGER: usize = 4;

/// Disturbed computations, the relative error of each operation in them, in units in the last place, and how
/// many times as much a plan may differ.
const RUNS: u64 = 4;
const NOISE_ULPS: f64 = 4.0;
const MARGIN: f64 = 32.0;

/// A tensor to be computed, and whether it needs no history afterwards.
pub(super) type Output<'a> = (&'a Tensor, bool);

/// Computes tensors of one device; says whether that was possible without another one. Memory of `given`
/// may become that of results.
#[track_caller]
pub(super) fn realize(device: &Device, outputs: &[Output<'_>], given: &[Tensor]) -> Result<bool> {
    let tensors: Vec<&Tensor> = outputs.iter().map(|(tensor, _)| *tensor).collect();
    let walk = Walk::new(&tensors);
    if walk.entries.iter().any(|entry| entry.moved) {
        return Ok(false);
    }
    refuse_no_value(walk.unknown(), "realize")?;
    let mut twins = Twins::new(device, &walk, &tensors)?;
    twins.check_all()?;
    let results: Vec<Option<usize>> =
        tensors.iter().map(|tensor| twins.position(&walk, tensor)).collect();
    // Handles would have values kept that the program does not hold.
    let originals = twins.originals(&walk);
    drop(walk);
    for &result in results.iter().flatten() {
        twins.compute(&twins.twins[result].tensor)?;
    }
    if outputs.iter().all(|(_, going)| *going) {
        realize_unchecked(device, &tensors, given, true)?;
        let found = tensors.iter().zip(&results);
        let mut found: Vec<(Buffer, usize)> =
            found.filter_map(|(tensor, twin)| Some((tensor.known_value()?, (*twin)?))).collect();
        for (twin, original) in originals {
            // Computed on the way and kept: it is not computed again when it is asked for.
            let Some(kept) = original.value() else { continue };
            if !twins.twins[twin].asked {
                twins.compute(&twins.twins[twin].tensor)?;
                found.push((kept, twin));
            }
        }
        return twins.compare(&found).map(|()| true);
    }
    // Values that stay pending beside their buffers have no plan of their own.
    for ((tensor, going), result) in outputs.iter().zip(results) {
        let Some(result) = result else { continue };
        let buffer =
            twins.twins[result].tensor.value().expect("invariant: it was computed").clone();
        if *going { tensor.set_value(buffer) } else { tensor.remember(buffer) }
    }
    Ok(true)
}

/// An operand of a twin.
#[derive(Clone)]
enum Operand {
    Twin(usize),
    /// A value that was there.
    Value(Tensor),
}

struct Twin {
    tensor: Tensor,
    /// None for a value that another thread computed meanwhile.
    op: Option<Op>,
    operands: SmallVec<[Operand; 3]>,
    note: Option<Note>,
    asked: bool,
    /// Whether all its users choose from it or test whether it is finite.
    handled: bool,
    /// Elements of what is stored and it is computed from.
    base: usize,
    /// Whether a stored value is finite everywhere.
    finite: bool,
    stored: bool,
}

/// Operands before what is computed from them.
struct Twins<'a> {
    device: &'a Device,
    /// Where values were asked for.
    asked_at: &'static Location<'static>,
    twins: Vec<Twin>,
    /// By entry of the walk.
    positions: Vec<usize>,
}

impl<'a> Twins<'a> {
    #[track_caller]
    fn new(device: &'a Device, walk: &Walk, asked: &[&Tensor]) -> Result<Twins<'a>> {
        let _sharing = device.read_lock();
        let mut copies: FxHashMap<usize, Tensor> = FxHashMap::default();
        let mut twins: Vec<Twin> = Vec::with_capacity(walk.order.len());
        let mut positions = vec![0; walk.entries.len()];
        for &at in &walk.order {
            let original = &walk.entries[at as usize].tensor;
            positions[at as usize] = twins.len();
            let (mut op, mut operands) = (None, SmallVec::new());
            if let (History::Expr(expr), None) = (&*original.history(), original.value()) {
                // A rule for gradients would hold tensors.
                op = Some(match &expr.op {
                    Op::Alias(_) => Op::Alias(None),
                    op => op.clone(),
                });
                for source in expr.operands() {
                    operands.push(match walk.seen.get(&source.id()) {
                        Some(&source) => Operand::Twin(positions[source as usize]),
                        None => Operand::Value(copied(&mut copies, source)?),
                    });
                }
            }
            let sources = operands.iter().map(|operand| match operand {
                Operand::Twin(twin) => twins[*twin].tensor.clone(),
                Operand::Value(value) => value.clone(),
            });
            let tensor = match &op {
                Some(_) => original.twin(op.as_ref(), sources),
                None => copied(&mut copies, original)?,
            };
            let note = original.note();
            twins.push(Twin {
                tensor,
                op,
                operands,
                note,
                asked: false,
                handled: true,
                base: 0,
                finite: true,
                stored: false,
            });
        }
        let found = asked.iter().filter_map(|tensor| walk.seen.get(&tensor.id()));
        found.for_each(|&at| twins[positions[at as usize]].asked = true);
        let mut twins = Twins { device, asked_at: Location::caller(), twins, positions };
        twins.find_handled();
        Ok(twins)
    }

    /// The number of the twin of a tensor; `None` of one that was there.
    fn position(&self, walk: &Walk, tensor: &Tensor) -> Option<usize> {
        walk.seen.get(&tensor.id()).map(|&at| self.positions[at as usize])
    }

    /// Finds the twins that are handled.
    fn find_handled(&mut self) {
        for at in (0..self.twins.len()).rev() {
            let user = &self.twins[at];
            let verdicts: SmallVec<[(usize, bool); 3]> = (user.operands.iter().enumerate())
                .filter_map(|(i, operand)| match operand {
                    Operand::Twin(twin) => Some((*twin, self.handles(user, i))),
                    Operand::Value(_) => None,
                })
                .collect();
            for (twin, handles) in verdicts {
                self.twins[twin].handled &= handles;
            }
        }
    }

    /// Whether a twin chooses from its operand number `i`, tests whether that is finite, or hands it on to what
    /// does.
    fn handles(&self, user: &Twin, i: usize) -> bool {
        match &user.op {
            Some(Op::Ternary(TernaryOp::Where)) => i > 0,
            Some(Op::Binary(op)) if op.is_comparison() => {
                let [x, y] = &user.operands[..] else { return false };
                let same = matches!((x, y), (Operand::Twin(x), Operand::Twin(y)) if x == y);
                same || self.is_infinite_constant(if i == 0 { y } else { x })
            }
            Some(Op::Unary(UnaryOp::Abs | UnaryOp::Neg) | Op::Cast { bits: false } | Op::Copy) => {
                user.handled && !user.asked
            }
            Some(op) => op.computes_nothing() && user.handled && !user.asked,
            None => false,
        }
    }

    /// Whether all elements of an operand are one literal that is not finite.
    fn is_infinite_constant(&self, operand: &Operand) -> bool {
        let Operand::Twin(at) = operand else { return false };
        let twin = &self.twins[*at];
        match (&twin.op, twin.operands.first()) {
            (Some(Op::Const { bits, .. }), _) => is_infinite(twin.tensor.dtype(), *bits),
            (Some(Op::Expand | Op::Reshape | Op::Cast { bits: false }), Some(of)) => {
                self.is_infinite_constant(of)
            }
            _ => false,
        }
    }

    /// The tensors that have to be computed, not held, and the numbers of their twins.
    fn originals(&self, walk: &Walk) -> Vec<(usize, WeakTensor)> {
        let twins = walk.order.iter().map(|&at| (self.positions[at as usize], at));
        let pending = twins.filter(|(twin, _)| self.twins[*twin].op.is_some());
        pending.map(|(twin, at)| (twin, walk.entries[at as usize].tensor.downgrade())).collect()
    }

    /// Compares what a plan gave with the twins that have these numbers, which are computed.
    #[track_caller]
    fn compare(&self, results: &[(Buffer, usize)]) -> Result<()> {
        let mut disturbed: Option<Vec<Vec<Vec<Scalar>>>> = None;
        let numbers: Vec<usize> = results.iter().map(|(_, twin)| *twin).collect();
        for (number, (buffer, twin)) in results.iter().enumerate() {
            let twin = &self.twins[*twin];
            let tensor = &twin.tensor;
            let (found, expected) = (self.bytes_of(tensor, buffer)?, self.bytes(tensor)?);
            if found == expected {
                continue;
            }
            let [found, expected] =
                [found, expected].map(|bytes| Scalar::read_all(tensor.dtype(), &bytes));
            let ulp = NOISE_ULPS * roundoff(tensor.dtype());
            let largest = expected.iter().map(|x| x.to_f64().abs()).filter(|x| x.is_finite());
            let few = MARGIN * ulp * largest.fold(0.0, f64::max);
            // A distance that is NaN differs.
            let differs = |x: &Scalar, y: &Scalar, most: f64| {
                let order = distance(x, y).partial_cmp(&most);
                order.is_none_or(std::cmp::Ordering::is_gt)
            };
            let first =
                |most: f64| found.iter().zip(&expected).position(|(x, y)| differs(x, y, most));
            if first(few).is_none() {
                continue;
            }
            if disturbed.is_none() {
                let runs = (0..RUNS).map(|run| self.disturbed(run, &numbers));
                disturbed = Some(runs.collect::<Result<_>>()?);
            }
            let runs = disturbed.iter().flatten().map(|run| &run[number]);
            let moved = runs.flat_map(|run| run.iter().zip(&expected)).map(|(x, y)| distance(x, y));
            let moved = moved.fold(0.0, |most: f64, x| match most.is_nan() || x.is_nan() {
                true => f64::NAN,
                false => most.max(x),
            });
            let is_exact = !tensor.dtype().is_float();
            // Rounding decides this result: a disturbed run changed an integer, or gave NaN or infinity.
            if moved.is_nan() || moved.is_infinite() || is_exact && moved > 0.0 {
                continue;
            }
            if let Some(position) = first(few.max(MARGIN * moved)) {
                return Err(self.wrong_plan(twin, position, found[position], expected[position]));
            }
        }
        Ok(())
    }

    /// The elements of these twins, all operations computed with a small relative error.
    #[track_caller]
    fn disturbed(&self, run: u64, asked: &[usize]) -> Result<Vec<Vec<Scalar>>> {
        let mut random = 0x9e37_79b9_7f4a_7c15 ^ run;
        // On the host: a pending product would be fused with what is computed from it.
        let mut noisy = |tensor: Tensor| {
            let dtype = tensor.dtype();
            if !dtype.is_float() || tensor.is_empty() {
                return Ok(tensor);
            }
            self.compute(&tensor)?;
            let unit = NOISE_ULPS * roundoff(dtype);
            let mut bytes = Vec::with_capacity(tensor.numel() * dtype.size());
            for x in self.read(&tensor)? {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let factor = 1.0 + if random & 1 == 0 { unit } else { -unit };
                let x = Scalar::from_f64(dtype, x.to_f64() * factor);
                bytes.extend_from_slice(&x.bits().to_le_bytes()[..dtype.size()]);
            }
            Tensor::from_bytes(&bytes, dtype, tensor.shape().clone(), self.device)
        };
        let mut values: FxHashMap<usize, Tensor> = FxHashMap::default();
        let mut tensors: Vec<Tensor> = Vec::with_capacity(self.twins.len());
        for twin in &self.twins {
            let mut sources = SmallVec::<[Tensor; 3]>::new();
            for operand in &twin.operands {
                sources.push(match operand {
                    Operand::Twin(twin) => tensors[*twin].clone(),
                    Operand::Value(value) => match values.get(&value.id()) {
                        Some(known) => known.clone(),
                        None => {
                            let new = noisy(value.clone())?;
                            values.insert(value.id(), new.clone());
                            new
                        }
                    },
                });
            }
            let Some(op) = &twin.op else {
                tensors.push(noisy(twin.tensor.clone())?);
                continue;
            };
            let tensor = twin.tensor.twin(Some(op), sources.into_iter());
            let exact = op.computes_nothing() || matches!(op, Op::Const { .. } | Op::Iota);
            if exact || is_pending(&twin.tensor) {
                tensors.push(tensor);
                continue;
            }
            // One by one, as the twins: a plan of all would have the fault that is looked for.
            self.compute(&tensor)?;
            tensors.push(noisy(tensor)?);
        }
        let read = |&at: &usize| {
            self.compute(&tensors[at])?;
            self.read(&tensors[at])
        };
        asked.iter().map(read).collect()
    }

    /// The error about a plan that gives another number than its operations.
    fn wrong_plan(&self, twin: &Twin, position: usize, found: Scalar, expected: Scalar) -> Error {
        let op = twin.op.as_ref().map_or("realize", name);
        let at = tuple(twin.tensor.shape(), position);
        let reason = format!(
            "the plan gives {found} at {at}, where operation by operation it is {expected}; this is a \
             fault of zyx, please report it"
        );
        Error::Value { op, reason, place: self.place(twin) }
    }

    fn operand(&self, operand: &Operand) -> Tensor {
        match operand {
            Operand::Twin(twin) => self.twins[*twin].tensor.clone(),
            Operand::Value(value) => value.clone(),
        }
    }

    #[track_caller]
    fn check_all(&mut self) -> Result<()> {
        for at in 0..self.twins.len() {
            let twin = &self.twins[at];
            let Some(op) = &twin.op else {
                self.twins[at].stored = true;
                self.twins[at].finite = self.is_finite(&self.twins[at].tensor)?;
                continue;
            };
            match op {
                // A list has no value.
                Op::Operands { .. } => {
                    self.twins[at].base = 1;
                    continue;
                }
                Op::Kernel(call) => self.check_kernel(twin, call)?,
                _ => {}
            }
            if let (Op::Alias(_), Some(bound)) =
                (op, twin.note.as_ref().and_then(|note| note.bound))
            {
                self.check_bound(twin, bound)?;
            }
            let base = twin.operands.iter().map(|operand| match operand {
                Operand::Twin(twin) if !self.twins[*twin].stored => self.twins[*twin].base,
                operand => self.operand(operand).numel(),
            });
            let base = base.sum::<usize>().max(1);
            let n = twin.tensor.numel();
            let moves = op.computes_nothing() || matches!(op, Op::Const { .. } | Op::Iota);
            let large = n > SMALL && n / LARGER > base;
            let stored = twin.asked || !(moves || large || twin.handled);
            self.twins[at].base = if stored { n } else { base };
            self.twins[at].stored = stored;
            // A handled twin is computed but not checked: its user becomes a kernel of one operation.
            if stored || !(moves || large) {
                self.compute(&self.twins[at].tensor)?;
            }
            if !stored || n == 0 {
                continue;
            }
            self.twins[at].finite = self.is_finite(&self.twins[at].tensor)?;
            if !self.twins[at].finite {
                self.blame(at)?;
            }
        }
        Ok(())
    }

    #[track_caller]
    fn compute(&self, tensor: &Tensor) -> Result<()> {
        if is_pending(tensor) {
            realize_unchecked(self.device, &[tensor], &[], false)?;
        }
        Ok(())
    }

    /// Finds what a result that is not finite comes from: an error, unless some operand was not either.
    #[track_caller]
    fn blame(&self, at: usize) -> Result<()> {
        let (at, chosen) = self.chosen(at)?;
        // The twins that are computed together with it, in order.
        let (mut group, mut known) = (vec![at], FxHashSet::default());
        let mut next = 0;
        while let Some(&member) = group.get(next) {
            next += 1;
            for operand in &self.twins[member].operands {
                match operand {
                    Operand::Twin(twin) if self.twins[*twin].stored => {
                        if !self.twins[*twin].finite {
                            return Ok(());
                        }
                    }
                    Operand::Twin(twin) if known.insert(*twin) => group.push(*twin),
                    Operand::Twin(_) => {}
                    Operand::Value(value) => {
                        if !self.is_finite(value)? {
                            return Ok(());
                        }
                    }
                }
            }
            // A constant of the formula, or bits that somebody chose.
            let twin = &self.twins[member];
            let constant = match (&twin.op, twin.tensor.dtype().is_float()) {
                (Some(Op::Const { bits, .. }), true) => is_infinite(twin.tensor.dtype(), *bits),
                (Some(Op::Cast { bits: true }), float) => float,
                _ => false,
            };
            if constant {
                return Ok(());
            }
        }
        group.sort_unstable();
        for &member in &group {
            let twin = &self.twins[member];
            let moves = twin.op.as_ref().is_none_or(Op::computes_nothing);
            // What does not fit is not looked at: the whole is blamed.
            if moves && member != at || self.compute(&twin.tensor).is_err() {
                continue;
            }
            let found = match chosen {
                Some(found) if member == at => Some(found),
                _ => self.first_not_finite(&twin.tensor)?,
            };
            if let Some((position, value)) = found {
                return Err(self.not_finite(twin, position, value));
            }
        }
        Ok(())
    }

    /// What `where` chose at the first position where its result is not finite, with that element;
    /// any other twin itself.
    #[track_caller]
    fn chosen(&self, mut at: usize) -> Result<(usize, Option<(usize, Scalar)>)> {
        let mut found = None;
        while let (Some(Op::Ternary(TernaryOp::Where)), [condition, yes, no]) =
            (&self.twins[at].op, self.twins[at].operands.as_slice())
        {
            let first = found.or(self.first_not_finite(&self.twins[at].tensor)?);
            let Some((position, value)) = first else { break };
            let condition = self.operand(condition);
            self.compute(&condition)?;
            let holds = self.read(&condition)?.get(position).is_none_or(|c| c.to_bool());
            let Operand::Twin(next) = (if holds { yes } else { no }) else { break };
            let twin = &self.twins[*next];
            if twin.stored
                || twin.op.as_ref().is_none_or(Op::computes_nothing)
                || self.compute(&twin.tensor).is_err()
            {
                break;
            }
            (at, found) = (*next, Some((position, value)));
        }
        Ok((at, found))
    }

    /// The error about a result that is not finite at a position.
    fn not_finite(&self, twin: &Twin, position: usize, value: Scalar) -> Error {
        let op = twin.op.as_ref().map_or("realize", name);
        let at = tuple(twin.tensor.shape(), position);
        let mut of = Vec::new();
        if let Some(Op::Unary(_) | Op::Binary(_) | Op::Ternary(_) | Op::Cast { bits: false }) =
            twin.op
        {
            for operand in &twin.operands {
                let operand = self.operand(operand);
                if self.compute(&operand).is_ok()
                    && let Ok(values) = self.read(&operand)
                {
                    of.extend(values.get(position).map(Scalar::to_string));
                }
            }
        }
        let operands = match of.as_slice() {
            [] => ", of finite operands".to_owned(),
            [one] => format!(", where the operand is {one}"),
            more => format!(", where the operands are {}", more.join(" and ")),
        };
        let reason = format!("the result is {value} at {at}{operands}");
        Error::Value { op, reason, place: self.place(twin) }
    }

    /// Runs a user kernel in the interpreter, which finds races and accesses outside of arrays.
    #[track_caller]
    fn check_kernel(&self, twin: &Twin, call: &KernelCall) -> Result<()> {
        let mut inputs = Vec::new();
        let mut operands: Vec<&Operand> = twin.operands.iter().rev().collect();
        while let Some(operand) = operands.pop() {
            if let Operand::Twin(at) = operand
                && let Some(Op::Operands { .. }) = self.twins[*at].op
            {
                operands.extend(self.twins[*at].operands.iter().rev());
                continue;
            }
            let tensor = self.operand(operand);
            self.compute(&tensor)?;
            inputs.push(self.bytes(&tensor)?);
        }
        call.interpret(&inputs, Some(0))?;
        Ok(())
    }

    /// Looks for an index out of range.
    #[track_caller]
    fn check_bound(&self, twin: &Twin, bound: Bound) -> Result<()> {
        let Some(index) = twin.operands.first().map(|operand| self.operand(operand)) else {
            return Ok(());
        };
        self.compute(&index)?;
        let Bound { op, low, high, except } = bound;
        let fits = |x: &Scalar| {
            let value = x.to_i128();
            (i128::from(low)..i128::from(high)).contains(&value)
                || except.is_some_and(|except| i128::from(except) == value)
        };
        let values = self.read(&index)?;
        let Some(position) = values.iter().position(|x| !fits(x)) else { return Ok(()) };
        let at = tuple(index.shape(), position);
        let allowed = bound.allowed();
        let reason = format!("the index is {} at {at}, {allowed}", values[position]);
        Err(Error::Index { op, reason, place: self.place(twin) })
    }

    /// The call that made a tensor, and the one that asked for a value.
    fn place(&self, twin: &Twin) -> String {
        match &twin.note {
            Some(Note { place: Place::Other(text), .. }) => text.to_string(),
            Some(Note { place, .. }) => format!("{place}, computed at {}", self.asked_at),
            None => format!("an unknown line, computed at {}", self.asked_at),
        }
    }

    /// The elements of a computed tensor; none of one that is empty.
    fn read(&self, tensor: &Tensor) -> Result<Vec<Scalar>> {
        Ok(Scalar::read_all(tensor.dtype(), &self.bytes(tensor)?))
    }

    fn bytes(&self, tensor: &Tensor) -> Result<Vec<u8>> {
        let Some(buffer) = tensor.value() else { return Ok(Vec::new()) };
        self.bytes_of(tensor, buffer)
    }

    /// Reads as many bytes from a buffer as the elements of a tensor take.
    fn bytes_of(&self, tensor: &Tensor, buffer: &Buffer) -> Result<Vec<u8>> {
        let mut bytes = vec![0; tensor.numel() * tensor.dtype().size()];
        self.device.read(buffer, &mut bytes)?;
        Ok(bytes)
    }

    fn is_finite(&self, tensor: &Tensor) -> Result<bool> {
        Ok(self.first_not_finite(tensor)?.is_none())
    }

    /// The flat position of the first element that is not finite, and it.
    fn first_not_finite(&self, tensor: &Tensor) -> Result<Option<(usize, Scalar)>> {
        // The bits of an exponent: all are set in what is not finite.
        let exponent: u64 = match tensor.dtype() {
            DType::F16 => 0x7c00,
            DType::BF16 => 0x7f80,
            DType::F32 => 0x7f80_0000,
            DType::F64 => 0x7ff0_0000_0000_0000,
            _ => return Ok(None),
        };
        let bytes = self.bytes(tensor)?;
        let size = tensor.dtype().size();
        let infinite = |element: &[u8]| {
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(element);
            u64::from_le_bytes(wide) & exponent == exponent
        };
        let Some(position) = bytes.chunks_exact(size).position(infinite) else { return Ok(None) };
        let element = &bytes[position * size..][..size];
        Ok(Scalar::read_all(tensor.dtype(), element).pop().map(|value| (position, value)))
    }
}

/// A copy of a tensor's value in new memory, one for each tensor. A tensor without a value is returned itself.
fn copied(copies: &mut FxHashMap<usize, Tensor>, tensor: &Tensor) -> Result<Tensor> {
    let Some(buffer) = tensor.value() else { return Ok(tensor.clone()) };
    if let Some(copy) = copies.get(&tensor.id()) {
        return Ok(copy.clone());
    }
    let mut bytes = vec![0; tensor.numel() * tensor.dtype().size()];
    tensor.device().read(buffer, &mut bytes)?;
    let copy = Tensor::from_bytes(&bytes, tensor.dtype(), tensor.shape().clone(), tensor.device())?;
    copies.insert(tensor.id(), copy.clone());
    Ok(copy)
}

/// Whether the bits are those of a float that is not finite.
fn is_infinite(dtype: DType, bits: u64) -> bool {
    dtype.is_float() && !Scalar::from_bits(dtype, bits).to_f64().is_finite()
}

/// The largest relative error of a result that is rounded to a dtype; 0 of integers.
fn roundoff(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f64::powi(2.0, -11),
        DType::BF16 => f64::powi(2.0, -8),
        DType::F32 => f64::powi(2.0, -24),
        DType::F64 => f64::powi(2.0, -53),
        _ => 0.0,
    }
}

/// How far apart two numbers are: NaN if only one is a number.
fn distance(x: &Scalar, y: &Scalar) -> f64 {
    let (x, y) = (x.to_f64(), y.to_f64());
    if x == y || x.is_nan() && y.is_nan() { 0.0 } else { (x - y).abs() }
}

/// The index tuple of a flat position.
fn tuple(shape: &Shape, mut position: usize) -> String {
    let mut index = vec![0; shape.rank()];
    for (i, &extent) in index.iter_mut().zip(shape.iter()).rev() {
        *i = position % extent;
        position /= extent;
    }
    format!("{index:?}")
}

/// What an op is called.
fn name(op: &Op) -> &'static str {
    use crate::ops::BinaryOp;
    let combined = |op: BinaryOp, names: [&'static str; 4]| match op {
        BinaryOp::Add => names[0],
        BinaryOp::Mul => names[1],
        BinaryOp::Max => names[2],
        BinaryOp::Min => names[3],
        other => other.name(),
    };
    match op {
        Op::Const { .. } => "full",
        Op::Iota => "iota",
        Op::Unary(op) => op.name(),
        Op::Binary(op) => op.name(),
        Op::Ternary(op) => op.name(),
        Op::Cast { bits: false } => "cast",
        Op::Cast { bits: true } => "bitcast",
        Op::Reduce { op, .. } => combined(*op, ["sum", "prod", "max", "min"]),
        Op::Scan { scaled: true, .. } => "recurrence",
        Op::Scan { op, .. } => combined(*op, ["cumsum", "cumprod", "cummax", "cummin"]),
        Op::Gather { .. } => "gather",
        Op::Scatter { .. } => "scatter",
        Op::RadixScatter | Op::SortRows { .. } => "sort",
        Op::Fourier(_) => "fft",
        Op::Kernel(_) | Op::Operands { .. } => "kernel",
        Op::Copy => "contiguous",
        Op::Reshape => "reshape",
        Op::Permute(_) => "permute",
        Op::Expand => "expand",
        Op::Pad(_) => "pad",
        Op::Shrink(_) => "shrink",
        Op::Flip { .. } => "flip",
        Op::Alias(_) => "detach",
        Op::Within(_) => "index",
    }
}
