//! Realizing in checked mode: operation by operation, each result looked at.
//!
//! What tensors reach is made once more, of nodes that nobody else holds (*twins*), and computed in
//! topological order. A twin is *stored*, and looked at, unless it only moves elements about, is far
//! larger than what it is computed from (the products before a contraction's sum, which would not
//! fit), or is what `where` chooses from: a formula may be infinite where it is not chosen. Such a
//! twin is looked at if what is computed from it is not finite though all stored operands are.

use super::across::{Walk, is_pending};
use super::{realize_unchecked, refuse_no_value};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Op;
use crate::ops::TernaryOp;
use crate::runtime::{Bound, Device, Note, Place};
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::tensor::{History, Tensor};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::panic::Location;

/// Elements up to which every result is stored, and how much larger than its operands it may be else.
const SMALL: usize = 1 << 16;
const LARGER: usize = 4;

/// A tensor to be computed, and whether it needs no history afterwards.
pub(super) type Output<'a> = (&'a Tensor, bool);

/// Computes tensors of one device; says whether that was possible without another one.
#[track_caller]
pub(super) fn realize(device: &Device, outputs: &[Output<'_>]) -> Result<bool> {
    let tensors: Vec<&Tensor> = outputs.iter().map(|(tensor, _)| *tensor).collect();
    let walk = Walk::new(&tensors);
    if walk.entries.iter().any(|entry| entry.moved) {
        return Ok(false);
    }
    refuse_no_value(walk.unknown(), "realize")?;
    let mut twins = Twins::new(device, &walk, &tensors);
    twins.check_all()?;
    let results: Vec<Tensor> = tensors.iter().map(|tensor| twins.of(&walk, tensor)).collect();
    let pending: Vec<&Tensor> = results.iter().filter(|result| !result.is_realized()).collect();
    realize_unchecked(device, &pending, &[], false)?;
    for ((tensor, going), result) in outputs.iter().zip(&results) {
        let buffer = result.value().expect("invariant: it was computed").clone();
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
    /// Whether all its users choose from it.
    chosen_from: bool,
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
    fn new(device: &'a Device, walk: &Walk, asked: &[&Tensor]) -> Twins<'a> {
        let _sharing = device.read_lock();
        let mut twins: Vec<Twin> = Vec::with_capacity(walk.order.len());
        let mut positions = vec![0; walk.entries.len()];
        for &at in &walk.order {
            let original = &walk.entries[at as usize].tensor;
            positions[at as usize] = twins.len();
            let (mut op, mut operands) = (None, SmallVec::new());
            if let (History::Expr(expr), None) = (&*original.history(), original.value()) {
                op = Some(expr.op.clone());
                let operand = |source: &Tensor| match walk.seen.get(&source.id()) {
                    Some(&source) => Operand::Twin(positions[source as usize]),
                    None => Operand::Value(source.clone()),
                };
                operands.extend(expr.operands().map(operand));
            }
            let sources = operands.iter().map(|operand| match operand {
                Operand::Twin(twin) => twins[*twin].tensor.clone(),
                Operand::Value(value) => value.clone(),
            });
            let tensor = original.twin(op.as_ref(), sources);
            let note = original.note();
            for (i, operand) in operands.iter().enumerate() {
                if let Operand::Twin(twin) = operand {
                    let chooses = matches!(op, Some(Op::Ternary(TernaryOp::Where))) && i > 0;
                    twins[*twin].chosen_from &= chooses;
                }
            }
            twins.push(Twin {
                tensor,
                op,
                operands,
                note,
                asked: false,
                chosen_from: true,
                base: 0,
                finite: true,
                stored: false,
            });
        }
        let found = asked.iter().filter_map(|tensor| walk.seen.get(&tensor.id()));
        found.for_each(|&at| twins[positions[at as usize]].asked = true);
        Twins { device, asked_at: Location::caller(), twins, positions }
    }

    /// The twin of a tensor, or itself if it was there or is empty.
    fn of(&self, walk: &Walk, tensor: &Tensor) -> Tensor {
        match walk.seen.get(&tensor.id()) {
            Some(&at) => self.twins[self.positions[at as usize]].tensor.clone(),
            None => tensor.clone(),
        }
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
            let stored = twin.asked || !(moves || large || twin.chosen_from);
            self.twins[at].base = if stored { n } else { base };
            self.twins[at].stored = stored;
            if !stored || n == 0 {
                continue;
            }
            self.compute(&self.twins[at].tensor)?;
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
                (Some(Op::Const { bits, .. }), true) => {
                    !Scalar::from_bits(twin.tensor.dtype(), *bits).to_f64().is_finite()
                }
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
        let allowed = if high <= low {
            "there is nothing to index".to_owned()
        } else if low == i64::MIN {
            format!("the largest is {}", high - 1)
        } else {
            format!("out of range {low} to {}", high - 1)
        };
        let reason = format!("the index is {} at {at}, {allowed}", values[position]);
        Err(Error::Value { op, reason, place: self.place(twin) })
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
        Op::Copy => "contiguous",
        Op::Reshape => "reshape",
        Op::Permute(_) => "permute",
        Op::Expand => "expand",
        Op::Pad(_) => "pad",
        Op::Shrink(_) => "shrink",
        Op::Flip { .. } => "flip",
        Op::Alias(_) => "detach",
    }
}
