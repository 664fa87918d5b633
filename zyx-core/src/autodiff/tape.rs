//! What a gradient passes on its way from a tensor to others, in order.
//!
//! A tensor with one user is reached once, so its position on the tape is handed up to that user;
//! positions of others are looked up. Should another thread drop users meanwhile, so that a tensor is
//! taken for one with a single user, it is on the tape twice, each time with the cotangents of some
//! of its users: their sum arrives at its sources all the same. Targets are never taken for such,
//! since the caller holds them.

use crate::graph::Op;
use crate::tensor::{Expr, History, Tensor};
use rustc_hash::FxHashMap;

/// A tensor on the way, with how it was computed and whether a target lies below it.
pub(super) struct Entry {
    pub(super) tensor: Tensor,
    pub(super) expr: Option<Expr>,
    /// The positions of the sources that may lead to a target; [`NOWHERE`] for any other.
    pub(super) sources: [u32; 3],
    pub(super) leads: bool,
}

/// The position of what is not on the tape.
const NOWHERE: u32 = u32::MAX;

/// Entries of one piece of a tape: few KiB. When a large block comes back, the usual allocator of
/// Linux tidies up all its small ones, which a training loop would pay for at each step.
const PIECE: usize = 64;

/// Entries in pieces, which are not moved when more come.
#[derive(Default)]
pub(super) struct Entries(Vec<Vec<Entry>>);

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * PIECE + last.len())
    }

    fn get(&self, position: u32) -> &Entry {
        &self.0[position as usize / PIECE][position as usize % PIECE]
    }

    /// The positions of the inputs of an alias's rule, in order; without those at the end that lead to no target.
    pub(super) fn inputs(&self, entry: &Entry) -> Vec<u32> {
        let mut inputs = vec![entry.sources[1]];
        let mut rest = entry.sources[2];
        while rest != NOWHERE {
            let last = self.get(rest);
            if !last.expr.as_ref().is_some_and(Expr::is_list) {
                inputs.push(rest);
                break;
            }
            inputs.push(last.sources[1]);
            rest = last.sources[2];
        }
        inputs
    }

    /// Whether a target is reached from there.
    pub(super) fn leads(&self, position: u32) -> bool {
        position != NOWHERE && self.get(position).leads
    }

    fn push(&mut self, entry: Entry) {
        match self.0.last_mut() {
            Some(last) if last.len() < PIECE => last.push(entry),
            _ => {
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(entry);
                self.0.push(piece);
            }
        }
    }

    /// With their positions, the last first.
    pub(super) fn reversed(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let positions = (0..self.len()).rev();
        positions.zip(self.0.iter().rev().flat_map(|piece| piece.iter().rev()))
    }
}

/// The tensors a gradient passes, sources before users.
#[derive(Default)]
pub(super) struct Tape {
    pub(super) entries: Entries,
    /// Of tensors that may be reached again.
    positions: FxHashMap<usize, u32>,
    /// The tensors whose gradients are wanted, with their positions if they are on the tape.
    pub(super) targets: FxHashMap<usize, Option<u32>>,
    /// Whether all targets are tracked: then whatever leads to one is, too.
    tracked: bool,
    /// Whether leaves of parameters are targets too.
    params: bool,
    /// Whether a history on the way had been freed.
    pub(super) released: bool,
    /// Whether a visited tensor has [`History::Forgotten`]. Gradients are refused then.
    pub(super) forgotten: bool,
}

/// What remains to be recorded; when it is, it has left one position.
enum Task {
    Visit(Tensor),
    /// The sources have left theirs; and whether the tensor may be reached again.
    Finish(Tensor, Expr, bool),
    /// The position is known.
    Known(u32),
}

impl Tape {
    pub(super) fn record(output: &Tensor, wrt: &[&Tensor]) -> Tape {
        let targets = wrt.iter().map(|x| (x.id(), None)).collect();
        let tracked = wrt.iter().all(|x| x.is_tracked());
        Tape { targets, tracked, ..Tape::default() }.walk(output)
    }

    /// The way to all leaves of parameters.
    pub(super) fn record_params(output: &Tensor) -> Tape {
        Tape { tracked: true, params: true, ..Tape::default() }.walk(output)
    }

    fn walk(self, output: &Tensor) -> Tape {
        let mut tape = self;
        let mut tasks = vec![Task::Visit(output.clone())];
        let mut positions: Vec<u32> = Vec::new();
        while let Some(task) = tasks.pop() {
            let position = match task {
                Task::Known(position) => position,
                Task::Visit(tensor) => {
                    // Besides the user there are the user's copy of how it is computed and this handle.
                    let shared = tensor.owners() > 3;
                    match tape.position(&tensor, shared) {
                        Some(position) => position,
                        None => match tape.expr(&tensor) {
                            None => tape.add(tensor, None, &mut positions, shared),
                            Some(expr) => {
                                let place = tasks.len();
                                tasks.push(Task::Known(NOWHERE));
                                tasks.extend(tape.passed(&expr).map(|(_, x)| tape.task(x)));
                                tasks[place] = Task::Finish(tensor, expr, shared);
                                continue;
                            }
                        },
                    }
                }
                Task::Finish(tensor, expr, shared) => {
                    tape.add(tensor, Some(expr), &mut positions, shared)
                }
            };
            positions.push(position);
        }
        tape
    }

    /// The sources that gradients can flow to, with their places, but for those that lead to no
    /// target for certain.
    fn passed<'a>(&self, expr: &'a Expr) -> impl Iterator<Item = (usize, &'a Tensor)> + use<'a> {
        let tracked = self.tracked;
        let skip = matches!(expr.op, Op::Alias(_)) as usize;
        let sources = expr.srcs.iter().enumerate().skip(skip);
        let sources = sources.filter_map(|(i, source)| Some((i, source.as_ref()?)));
        sources.filter(move |(_, source)| {
            source.dtype().is_float() && (source.is_tracked() || !tracked)
        })
    }

    /// The position of a tensor; only one that is shared can have been reached before.
    fn position(&self, tensor: &Tensor, shared: bool) -> Option<u32> {
        if shared { self.positions.get(&tensor.id()).copied() } else { None }
    }

    /// What is to be done for a source; no handle of it is needed if it has its position.
    fn task(&self, source: &Tensor) -> Task {
        match self.position(source, source.owners() > 2) {
            Some(position) => Task::Known(position),
            None => Task::Visit(source.clone()),
        }
    }

    /// Appends a tensor whose sources have left their positions, that of the first last.
    fn add(
        &mut self,
        tensor: Tensor,
        expr: Option<Expr>,
        positions: &mut Vec<u32>,
        shared: bool,
    ) -> u32 {
        let mut sources = [NOWHERE; 3];
        for (slot, _) in expr.iter().flat_map(|expr| self.passed(expr)) {
            sources[slot] = positions.pop().expect("invariant: each source left its position");
        }
        let position = self.entries.len() as u32;
        let target = self.targets.get_mut(&tensor.id());
        let is_param = self.params && tensor.param_id() != 0;
        let leads = target.is_some()
            || is_param
            || sources.iter().any(|&source| self.entries.leads(source));
        if let Some(target) = target {
            *target = Some(position);
        }
        if shared {
            self.positions.insert(tensor.id(), position);
        }
        self.entries.push(Entry { tensor, expr, sources, leads });
        position
    }

    fn expr(&mut self, tensor: &Tensor) -> Option<Expr> {
        match &*tensor.history() {
            History::Leaf => None,
            History::Released => {
                self.released = true;
                None
            }
            History::Forgotten => {
                self.forgotten = true;
                None
            }
            known => known.expr().cloned(),
        }
    }
}
