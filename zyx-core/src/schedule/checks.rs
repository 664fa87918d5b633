//! Flags of indices (`tensor/indices.rs`) as further results of a plan, and who holds them afterwards.
//!
//! Few tensors are computed by an index with a flag, and all others know that they are not
//! ([`Tensor::is_flagged`]). [`Reached::by`] finds the flags that those few reach; [`realize`](super::realize)
//! computes their numbers in the plan of the results, so they join its launches. Each result then holds the flags
//! that it reaches, and no other. [`inherit`] passes flags on to what later plans compute from such results.

use super::realize_all;
use crate::error::Result;
use crate::graph::{Bindings, Graph, Op};
use crate::runtime::{Buffer, Flag, Flags};
use crate::tensor::{Check, Expr, History, Tensor};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// The flags that tensors reach.
#[derive(Default)]
pub(super) struct Reached {
    /// With the index of each.
    pub(super) checks: Vec<(Arc<Check>, Tensor)>,
    /// By tensor: a bit for each check. All checks behind [`Reached::MAX_TOLD_APART`] share the last.
    of: Vec<u64>,
}

impl Reached {
    const MAX_TOLD_APART: usize = 63;

    pub(super) fn by(tensors: &[&Tensor]) -> Reached {
        let mut reached = Reached::default();
        if !tensors.iter().any(|tensor| tensor.is_flagged()) {
            return reached;
        }
        let mut known = FxHashMap::default();
        reached.of = tensors.iter().map(|tensor| reached.visit(tensor, &mut known)).collect();
        reached
    }

    /// The bits of a tensor, sources first, without recursion.
    fn visit(&mut self, tensor: &Tensor, known: &mut FxHashMap<usize, u64>) -> u64 {
        let mut stack = vec![(tensor.clone(), false)];
        while let Some((tensor, entered)) = stack.pop() {
            if !tensor.is_flagged() || known.contains_key(&tensor.id()) {
                continue;
            }
            let mut bits = 0;
            let mut sources: SmallVec<[Tensor; 3]> = SmallVec::new();
            // The buffer of a kept value has its flags, and what is computed from the buffer inherits them.
            if matches!(&*tensor.history(), History::Kept(_)) {
                known.insert(tensor.id(), 0);
                continue;
            }
            if let Some(expr) = tensor.history().expr() {
                if entered {
                    let of = |source: &Tensor| known.get(&source.id()).copied().unwrap_or(0);
                    bits = expr.operands().fold(0, |bits, source| bits | of(source));
                    if let Op::Within(check) = &expr.op
                        && check.flagged.is_some()
                    {
                        bits |= 1 << self.checks.len().min(Reached::MAX_TOLD_APART);
                        let index = expr.srcs[0].clone().expect("invariant: one source");
                        self.checks.push((check.clone(), index));
                    }
                } else {
                    sources.extend(expr.operands().filter(|x| x.is_flagged()).cloned());
                }
            }
            if entered {
                known.insert(tensor.id(), bits);
            } else {
                stack.push((tensor, true));
                stack.extend(sources.into_iter().map(|source| (source, false)));
            }
        }
        known.get(&tensor.id()).copied().unwrap_or(0)
    }

    /// Whether the tensor at a position reaches the check at another.
    pub(super) fn reaches(&self, tensor: usize, check: usize) -> bool {
        let bits = self.of.get(tensor).copied().unwrap_or(0);
        bits >> check.min(Reached::MAX_TOLD_APART) & 1 == 1
    }

    /// The numbers that are still to be computed.
    pub(super) fn pending(&self) -> Vec<&Tensor> {
        let numbers =
            self.checks.iter().filter_map(|(check, _)| Some(&check.flagged.as_ref()?.number));
        numbers.filter(|number| !number.is_realized()).collect()
    }

    /// Gives the flags to their tensors, after all was computed.
    pub(super) fn pass_to(&self, tensors: &[&Tensor]) {
        for (check, _) in &self.checks {
            settle(check);
        }
        for (i, tensor) in tensors.iter().enumerate() {
            let own = self.checks.iter().enumerate().filter(|(at, _)| self.reaches(i, *at));
            let flags =
                own.filter_map(|(_, (check, _))| Some(check.flagged.as_ref()?.flag.clone()));
            let flags: Flags = flags.collect();
            if let Some(buffer) = tensor.value().filter(|_| !flags.is_empty()) {
                buffer.set_flags(flags);
            }
        }
    }
}

/// Gives the flags that kept values reach to their buffers. A later read of a value then reports a bad index,
/// also when the history is gone.
pub(super) fn pass_to_kept(kept: &[(usize, Tensor)], buffers: &[Buffer]) {
    let tensors: Vec<&Tensor> = kept.iter().map(|(_, tensor)| tensor).collect();
    let reached = Reached::by(&tensors);
    if reached.checks.is_empty() {
        return;
    }
    for (i, (output, _)) in kept.iter().enumerate() {
        let own = reached.checks.iter().enumerate().filter(|(at, _)| reached.reaches(i, *at));
        let flags = own.filter_map(|(_, (check, _))| check.flagged.as_ref());
        let flags: Flags = flags.map(|x| x.flag.clone()).filter(|flag| !flag.is_fine()).collect();
        if !flags.is_empty() {
            buffers[*output].set_flags(flags);
        }
    }
}

/// Notes the number of a flag, if it was computed.
fn settle(check: &Check) {
    if let Some(flagged) = &check.flagged
        && let Some(number) = flagged.number.value()
    {
        flagged.flag.set(number);
    }
}

/// The flag of a tensor that is an index with a flag, computed now.
#[track_caller]
pub(super) fn flag_of(index: &Tensor) -> Result<Option<Arc<Flag>>> {
    let check = match &*index.history() {
        History::Expr(Expr { op: Op::Within(check), .. }) => check.clone(),
        _ => return Ok(None),
    };
    let Some(flagged) = &check.flagged else { return Ok(None) };
    if !flagged.number.is_realized() {
        realize_all(&[&flagged.number], &[])?;
    }
    settle(&check);
    Ok(Some(flagged.flag.clone()))
}

/// Gives flags of leaves to the results that are computed from them; all results, where the graph is not known.
pub(super) fn inherit(graph: Option<&Graph>, bindings: &Bindings, results: &[Buffer]) {
    if !bindings.leaves.iter().any(Buffer::has_suspects) {
        return;
    }
    let of: Vec<Flags> = bindings.leaves.iter().map(Buffer::suspects).collect();
    let mut flags = Flags::new();
    for flag in of.iter().flatten() {
        if !flags.iter().any(|known| Arc::ptr_eq(known, flag)) {
            flags.push(flag.clone());
        }
    }
    let reaches = graph.map(|graph| graph.reached_from(|slot| !of[slot as usize].is_empty()));
    for (i, result) in results.iter().enumerate() {
        let own = reaches.as_ref().is_none_or(|reaches| reaches[i]);
        let is_leaf = bindings.leaves.iter().any(|leaf| leaf.key() == result.key());
        if own && !is_leaf {
            result.inherit(&flags);
        }
    }
}
