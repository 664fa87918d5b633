//! Computations on several devices: the values that move between them.
//!
//! A graph is of one device; where it meets a copy from another, that value has to be there first.
//! [`Walk`] finds everything pending that tensors reach, on whatever device, without recursion, and
//! the *step* of each: how many moves come before it, one after the other. [`realize`] then computes
//! step by step, on each device as one plan: what moves, what was asked for, and what later steps on
//! the same device need too, which would be computed again otherwise. Then values move, through the
//! host, each to each device once. They stay with their tensors, so another use moves nothing.
//!
//! *Locks.* Handles of a device's tensors are made while its plan cache is shared, as
//! [`plan_cache`](super::plan_cache) demands; no two of these locks are held at once. Only a step that
//! computes nothing but what was asked for gives memory of inputs away.

use super::checks::inherit;
use super::plan_cache::{Found, PlanCache};
use super::{checked, find, realize_on, refuse_no_value};
use crate::error::{Error, Result};
use crate::graph::Op;
use crate::hal::attempt;
use crate::runtime::{Buffer, Device};
use crate::tensor::{History, Tensor};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::{BTreeMap, hash_map};

/// Computes `tensors` with all that other devices compute for them.
#[track_caller]
pub(super) fn realize(tensors: &[&Tensor], given: &[Tensor]) -> Result<()> {
    let walk = Walk::new(tensors);
    refuse_no_value(walk.unknown(), "realize")?;
    let mut steps = walk.steps(tensors);
    // What a step has computed and moved is let go before the next one.
    while let Some(((_, device), step)) = steps.steps.pop_first() {
        let device = &steps.devices[device];
        let asked: Vec<&Tensor> = step.asked.iter().map(|&i| tensors[i]).collect();
        if step.stored.is_empty() && !asked.is_empty() {
            realize_on(device, &asked, given)?;
        } else {
            attempt!(step.compute(device, &asked))?;
        }
        step.transfer()?;
    }
    Ok(())
}

/// Whether any of these depends on what has no value.
pub(super) fn any_unknown(tensors: &[&Tensor]) -> bool {
    Walk::new(tensors).unknown()
}

/// Computes what is moved on the way to these tensors; what depends on a tensor without value cannot be.
#[track_caller]
pub(super) fn move_known(tensors: &[&Tensor]) -> Result<()> {
    let walk = Walk::new(tensors);
    let moved = walk.entries.iter().filter(|entry| entry.moved);
    let (unknown, known): (Vec<_>, Vec<_>) = moved.partition(|entry| entry.unknown);
    if let Some(entry) = unknown.first() {
        let reason = format!(
            "a value that depends on the function's arguments moves to {}; trace what each device \
             computes by a function of its own, and move values between their calls",
            entry.tensor.device()
        );
        return Err(Tensor::argument_error("jit", reason));
    }
    let known: Vec<Tensor> = known.into_iter().map(|entry| entry.tensor.clone()).collect();
    drop(walk);
    realize(&known.iter().collect::<Vec<_>>(), &[])
}

/// A pending tensor.
pub(super) struct Entry {
    pub(super) tensor: Tensor,
    /// The pending tensors its value is computed from.
    sources: SmallVec<[u32; 3]>,
    /// Whether it is a copy from another device.
    pub(super) moved: bool,
    /// Whether nothing is gained by storing its value for later: a constant, or a source moved about.
    cheap: bool,
    /// Whether it depends on a tensor without value.
    unknown: bool,
    /// How many moves come before it.
    step: usize,
}

/// Everything pending that tensors reach.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) entries: Vec<Entry>,
    /// Entries by the address of their tensor.
    pub(super) seen: FxHashMap<usize, u32>,
    /// Sources before users.
    pub(super) order: Vec<u32>,
}

impl Walk {
    pub(super) fn new(tensors: &[&Tensor]) -> Walk {
        let mut walk = Walk::default();
        let mut rest: Vec<u32> = Vec::new();
        for tensor in tensors.iter().filter(|tensor| is_pending(tensor)) {
            rest.extend(walk.number(tensor).1);
        }
        let device = |walk: &Walk, at: u32| walk.entries[at as usize].tensor.device().clone();
        // One device after the other, to where values come from another.
        while let Some(&last) = rest.last() {
            let here = device(&walk, last);
            let (mine, others) = rest.into_iter().partition(|&at| device(&walk, at) == here);
            rest = others;
            walk.visit(&here, mine, &mut rest);
        }
        walk.settle();
        walk
    }

    /// The number of a tensor, and once more if it is new.
    fn number(&mut self, tensor: &Tensor) -> (u32, Option<u32>) {
        let next = self.entries.len() as u32;
        let at = *self.seen.entry(tensor.id()).or_insert(next);
        if at < next {
            return (at, None);
        }
        self.entries.push(Entry {
            tensor: tensor.clone(),
            sources: SmallVec::new(),
            moved: false,
            cheap: false,
            unknown: false,
            step: 0,
        });
        (at, Some(at))
    }

    /// Visits what these reach on their device; what they reach elsewhere goes to `others`.
    fn visit(&mut self, device: &Device, mut stack: Vec<u32>, others: &mut Vec<u32>) {
        let _sharing = device.read_lock();
        while let Some(at) = stack.pop() {
            let tensor = self.entries[at as usize].tensor.clone();
            let history = tensor.history();
            let History::Expr(expr) = &*history else {
                self.entries[at as usize].unknown = tensor.value().is_none();
                continue;
            };
            let moved = expr.source_elsewhere(device).is_some();
            for source in expr.operands().filter(|source| is_pending(source)) {
                let (number, new) = self.number(source);
                self.entries[at as usize].sources.push(number);
                if moved { &mut *others } else { &mut stack }.extend(new);
            }
            let entry = &mut self.entries[at as usize];
            entry.moved = moved;
            entry.cheap =
                matches!(expr.op, Op::Const { .. } | Op::Iota) || expr.op.computes_nothing();
        }
    }

    /// Orders the entries and gives each its step.
    fn settle(&mut self) {
        let mut placed = vec![false; self.entries.len()];
        let mut stack: Vec<(u32, usize)> = Vec::new();
        for root in 0..self.entries.len() as u32 {
            if !std::mem::replace(&mut placed[root as usize], true) {
                stack.push((root, 0));
            }
            while let Some((at, next)) = stack.last_mut() {
                let entry = &self.entries[*at as usize];
                if let Some(&source) = entry.sources.get(*next) {
                    *next += 1;
                    if !std::mem::replace(&mut placed[source as usize], true) {
                        stack.push((source, 0));
                    }
                    continue;
                }
                let sources = entry.sources.iter().map(|&source| &self.entries[source as usize]);
                let before = sources.clone().map(|source| source.step).max().unwrap_or(0);
                let step = before + usize::from(entry.moved);
                let unknown = entry.unknown || sources.clone().any(|source| source.unknown);
                let at = *at;
                let entry = &mut self.entries[at as usize];
                (entry.step, entry.unknown) = (step, unknown);
                self.order.push(at);
                stack.pop();
            }
        }
    }

    pub(super) fn unknown(&self) -> bool {
        self.entries.iter().any(|entry| entry.unknown)
    }

    /// For each entry, whether nothing but what is walked leads to it and will be gone once
    /// `tensors` have their values: then it needs no history after its own value is there.
    fn going(&self, tensors: &[&Tensor]) -> Vec<bool> {
        // The walk holds one handle of each.
        let mut rest: Vec<usize> = self.entries.iter().map(|e| e.tensor.owners() - 1).collect();
        let asked = tensors.iter().filter_map(|tensor| self.seen.get(&tensor.id()));
        let mut going = vec![false; self.entries.len()];
        asked.for_each(|&at| {
            going[at as usize] = self.entries[at as usize].tensor.releases_history();
        });
        for &at in self.order.iter().rev() {
            let (at, entry) = (at as usize, &self.entries[at as usize]);
            going[at] |= rest[at] == 0 && !entry.tensor.is_tracked();
            if going[at] {
                for &source in &entry.sources {
                    let rest = &mut rest[source as usize];
                    *rest = rest.saturating_sub(1);
                }
            }
        }
        going
    }

    /// What is computed and moved in each step.
    fn steps(self, tensors: &[&Tensor]) -> Steps {
        let going = self.going(tensors);
        let mut steps = Steps::default();
        let mut stored = vec![false; self.entries.len()];
        let mut store: Vec<u32> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.moved {
                let source = match &*entry.tensor.history() {
                    History::Expr(expr) => expr.srcs[0].clone(),
                    // Another thread has moved it meanwhile.
                    _ => None,
                };
                let Some(source) = source else { continue };
                let step = steps.of(entry.step - 1, source.device());
                step.moves.push(Move { source, copy: entry.tensor.clone(), going: going[at] });
                store.extend(&entry.sources);
                continue;
            }
            // What is computed in an earlier step and needed in this one.
            let mut needed = entry.sources.clone();
            let mut looked_into = SmallVec::<[u32; 8]>::new();
            while let Some(source) = needed.pop() {
                let of = &self.entries[source as usize];
                if of.step == entry.step || of.moved || stored[source as usize] {
                    continue;
                }
                if of.cheap {
                    if !looked_into.contains(&source) && looked_into.len() < 64 {
                        looked_into.push(source);
                        needed.extend(of.sources.iter().copied());
                    }
                } else {
                    stored[source as usize] = true;
                    let step = steps.of(of.step, of.tensor.device());
                    step.stored.push((of.tensor.clone(), going[source as usize]));
                }
            }
        }
        for source in store {
            if !std::mem::replace(&mut stored[source as usize], true) {
                let of = &self.entries[source as usize];
                // A value that comes from a third device is there when its own move is done.
                if !of.moved {
                    let step = steps.of(of.step, of.tensor.device());
                    step.stored.push((of.tensor.clone(), going[source as usize]));
                }
            }
        }
        for (i, tensor) in tensors.iter().enumerate() {
            let at = self.seen.get(&tensor.id()).map_or(0, |&at| self.entries[at as usize].step);
            steps.of(at, tensor.device()).asked.push(i);
        }
        steps
    }
}

/// Whether it has to be computed and has elements.
pub(super) fn is_pending(tensor: &Tensor) -> bool {
    !tensor.is_empty() && !tensor.remember_kept()
}

#[derive(Default)]
struct Steps {
    devices: Vec<Device>,
    /// By number and device.
    steps: BTreeMap<(usize, usize), Step>,
}

impl Steps {
    fn of(&mut self, step: usize, device: &Device) -> &mut Step {
        let known = self.devices.iter().position(|known| known == device);
        let at = known.unwrap_or_else(|| {
            self.devices.push(device.clone());
            self.devices.len() - 1
        });
        self.steps.entry((step, at)).or_default()
    }
}

/// What one device does in one step.
#[derive(Default)]
struct Step {
    /// What moves or is used later, and whether it is going.
    stored: Vec<(Tensor, bool)>,
    /// Positions of tensors that were asked for.
    asked: Vec<usize>,
    moves: Vec<Move>,
}

/// A copy from another device.
struct Move {
    source: Tensor,
    copy: Tensor,
    going: bool,
}

impl Step {
    /// One plan for what is stored and asked for.
    #[track_caller]
    fn compute(&self, device: &Device, asked: &[&Tensor]) -> Result<()> {
        let stored = self.stored.iter().map(|(tensor, going)| (tensor, *going));
        let all = asked.iter().map(|&tensor| (tensor, true)).chain(stored);
        let all: Vec<(&Tensor, bool)> = all.filter(|(tensor, _)| !tensor.is_realized()).collect();
        if all.is_empty() {
            return Ok(());
        }
        if device.is_checked() {
            return checked::realize(device, &all, &[]).map(|_| ());
        }
        let cache = device.attachment::<PlanCache>();
        let sharing = device.read_lock();
        let pending: Vec<&Tensor> = all.iter().map(|(tensor, _)| *tensor).collect();
        let found = match cache.expected(device, &pending, &[], false) {
            Some(found) => found,
            None => find(&cache, device, &pending, &[], false)?
                .expect("invariant: what moves here has moved"),
        };
        let Found { planned, bindings, .. } = &found;
        let plan = planned.plain(device)?;
        let buffers = match plan.play_beside(device, bindings) {
            // Other threads may have what is missing.
            Err(Error::Device(full)) if full.is_about_memory() => {
                drop(sharing);
                let _alone = device.write_lock();
                plan.play_alone(device, bindings)?
            }
            played => played?,
        };
        inherit(plan.graph.as_deref(), bindings, &buffers);
        for (result, ((tensor, going), buffer)) in all.iter().zip(buffers).enumerate() {
            if let Some(graph) = &plan.graph {
                buffer.set_origin(graph.clone(), result);
            }
            if *going { tensor.set_value(buffer) } else { tensor.remember(buffer) }
        }
        Ok(())
    }

    /// Brings values to the devices of their copies.
    fn transfer(&self) -> Result<()> {
        let mut bytes: FxHashMap<usize, Vec<u8>> = FxHashMap::default();
        let mut there: FxHashMap<(usize, &str), Buffer> = FxHashMap::default();
        // Bytes of a value are kept for as many of its copies as follow.
        let mut uses: FxHashMap<usize, usize> = FxHashMap::default();
        let moves: Vec<&Move> = self.moves.iter().filter(|m| !m.copy.is_realized()).collect();
        moves.iter().for_each(|m| *uses.entry(m.source.id()).or_default() += 1);
        for Move { source, copy, going } in moves {
            let (id, to) = (source.id(), copy.device());
            let known = there.get(&(id, to.spec())).filter(|buffer| buffer.device() == to);
            let buffer = match known {
                Some(buffer) => buffer.clone(),
                None => {
                    let value = source.value().expect("invariant: computed in this step or before");
                    let read = match bytes.entry(id) {
                        hash_map::Entry::Occupied(known) => known.into_mut(),
                        hash_map::Entry::Vacant(place) => {
                            let mut read = vec![0; source.numel() * source.dtype().size()];
                            source.device().read(value, &mut read)?;
                            place.insert(read)
                        }
                    };
                    let buffer = to.alloc(read.len())?;
                    to.write(&buffer, read)?;
                    buffer.note_integers(source.dtype(), read);
                    buffer.inherit(&value.suspects());
                    there.insert((id, to.spec()), buffer.clone());
                    buffer
                }
            };
            if *going {
                copy.set_value(buffer)
            } else {
                copy.remember(buffer)
            }
            let rest = uses.entry(id).or_default();
            *rest -= 1;
            if *rest == 0 {
                bytes.remove(&id);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{DType, Device, Jit, Runtime, Stats, Tensor};

    fn devices() -> [Device; 2] {
        // Each holds its runtime's only device.
        [(); 2].map(|()| Runtime::default().device("reference").unwrap())
    }

    fn vector(values: &[f64], device: &Device) -> Tensor {
        Tensor::from_slice(values, [values.len()], device).unwrap()
    }

    fn spent(devices: &[Device; 2], before: &[Stats; 2]) -> [Stats; 2] {
        [0, 1].map(|i| devices[i].stats().since(&before[i]))
    }

    #[test]
    fn nothing_happens_before_a_value_is_asked_for_and_then_once() {
        let devices = devices();
        let [a, b] = &devices;
        let x = vector(&[1.0, 2.0], a).tracked();
        let before = [a.stats(), b.stats()];
        let there = x.square().to_device(b).unwrap();
        let y = there.add(1.0).unwrap();
        let back = y.to_device(a).unwrap().mul(&x).unwrap();
        let dx = back.grad(&[&x]).unwrap().remove(0).unwrap();
        for stats in spent(&devices, &before) {
            assert_eq!((stats.launches, stats.copies, stats.host_syncs), (0, 0, 0));
        }
        assert_eq!(back.to_vec::<f64>().unwrap(), [2.0, 10.0]);
        // The square goes there, the sum comes back, the product is read.
        let [on_a, on_b] = spent(&devices, &before);
        assert_eq!((on_a.launches, on_a.copies, on_a.host_syncs), (2, 3, 2), "{on_a:?}");
        assert_eq!((on_b.launches, on_b.copies, on_b.host_syncs), (1, 2, 1), "{on_b:?}");
        // What has moved is there: the gradient moves only what is its own.
        let before = [a.stats(), b.stats()];
        assert_eq!(there.to_vec::<f64>().unwrap(), [1.0, 4.0]);
        assert_eq!(there.mul(2.0).unwrap().to_vec::<f64>().unwrap(), [2.0, 8.0]);
        assert_eq!(spent(&devices, &before)[0].copies, 0);
        assert_eq!(dx.to_vec::<f64>().unwrap(), [4.0, 13.0]);
        assert_eq!(dx.device(), a);
        let before = [a.stats(), b.stats()];
        dx.realize().unwrap();
        back.realize().unwrap();
        assert!(spent(&devices, &before).iter().all(|s| s.launches + s.copies == 0));
    }

    #[test]
    fn a_step_is_one_plan_on_each_device() {
        let devices = devices();
        let [a, b] = &devices;
        let x: Vec<Tensor> = (0..5).map(|i| vector(&[f64::from(i), 2.0], a)).collect();
        x.iter().for_each(|x| x.realize().unwrap());
        let before = [a.stats(), b.stats()];
        let there = x.iter().map(|x| x.exp().to_device(b).unwrap());
        let sum = there.reduce(|x, y| x.add(y).unwrap()).unwrap();
        let back: Vec<Tensor> =
            x.iter().map(|x| sum.to_device(a).unwrap().mul(x).unwrap()).collect();
        Tensor::realize_all(&back).unwrap();
        let [on_a, on_b] = spent(&devices, &before);
        assert_eq!((on_a.submits, on_b.submits), (2, 1));
        // Five values go there. Five copies of one come back at once.
        assert_eq!((on_a.copies, on_b.copies), (6, 6));
    }

    #[test]
    fn what_later_steps_need_is_stored_and_not_computed_again() {
        let [a, b] = &devices();
        let x = vector(&[0.5, 2.0], a);
        // A product that both the move and the last step use, repeated.
        let h = x.reshape([2, 1]).unwrap().matmul(&x.reshape([1, 2]).unwrap()).unwrap();
        let h = h.mul(2.0).unwrap();
        let wide = h.reshape([2, 2, 1]).unwrap().expand([2, 2, 3]).unwrap();
        let far = wide.sum(2).unwrap().to_device(b).unwrap().exp().to_device(a).unwrap();
        let y = wide.mul(far.reshape([2, 2, 1]).unwrap()).unwrap().max(2).unwrap();
        for (y, h) in y.to_vec::<f64>().unwrap().iter().zip([0.5f64, 2.0, 2.0, 8.0]) {
            assert!((y - h * (3.0 * h).exp()).abs() < 1e-9 * y.abs(), "{y} for {h}");
        }
        assert!(h.is_realized() && !wide.is_realized());
    }

    #[test]
    fn long_ways_between_two_devices_need_no_stack_and_little_memory() {
        let [a, b] = &devices();
        let x = vector(&[1.0, 2.0], a).tracked();
        let there_and_back = |x: &Tensor, n: usize| {
            (0..n).fold(x.clone(), |y, i| {
                y.add(1.0).unwrap().to_device(if i % 2 == 0 { b } else { a }).unwrap()
            })
        };
        let far = there_and_back(&x, 10_000);
        let dx = far.grad(&[&x]).unwrap().remove(0).unwrap();
        assert_eq!(far.to_vec::<f64>().unwrap(), [10_001.0, 10_002.0]);
        assert_eq!(dx.to_vec::<f64>().unwrap(), [1.0, 1.0]);
        drop((far, dx));
        // A million nodes with moves among them, that nobody asks for.
        let mut y = x.clone();
        for i in 0..1_000_000 {
            y = match i % 100 {
                0 => y.to_device(b).unwrap(),
                50 => y.to_device(a).unwrap(),
                _ => y.neg(),
            };
        }
        assert!(y.grad(&[&x]).unwrap()[0].is_some());
        drop(y);
        // Of a long way that no gradient passes, little is there at a time.
        let large = vector(&vec![1.0; 1 << 12], a);
        a.reset_peak();
        let before = a.stats().peak_bytes;
        assert_eq!(there_and_back(&large, 100).to_vec::<f64>().unwrap()[0], 101.0);
        let grown = a.stats().peak_bytes - before;
        assert!(grown < 8 * (8 << 12), "{grown} bytes");
    }

    #[test]
    fn a_million_nodes_with_moves_between_compute() {
        let [a, b] = &devices();
        let mut y = vector(&[1.0, 2.0], a);
        for i in 0..200_000 {
            y = match i % 20_000 {
                0 => y.to_device(b).unwrap(),
                10_000 => y.to_device(a).unwrap(),
                _ => y.neg(),
            };
        }
        assert_eq!(y.to_vec::<f64>().unwrap(), [1.0, 2.0]);
    }

    #[test]
    fn a_value_that_was_not_asked_for_keeps_its_history() {
        let [a, b] = &devices();
        let x = vector(&[1.0, 2.0], a);
        let (y, w) = (x.square(), x.exp());
        let z = y.add(&w).unwrap().mul(&y).unwrap().to_device(b).unwrap().neg();
        z.realize().unwrap();
        for held in [&y, &w] {
            assert!(held.grad(&[&x]).unwrap()[0].is_some());
        }
        assert!(z.grad(&[&x]).is_err(), "as of any untracked tensor that was realized");
    }

    #[test]
    fn constants_are_made_where_they_go() {
        let [a, b] = &devices();
        let before = a.stats();
        let zeros = Tensor::zeros([2], DType::F64, a).to_device(b).unwrap();
        let count = Tensor::iota(2, DType::F64, a).to_device(b).unwrap();
        let x = Tensor::scalar(3f64, a);
        let y = x.to_device(b).unwrap().to_device(a).unwrap().to_device(b).unwrap();
        let sum = zeros.add(&count).unwrap().add(&y).unwrap();
        assert_eq!(sum.to_vec::<f64>().unwrap(), [3.0, 4.0]);
        assert_eq!(a.stats().since(&before).copies, 0);
        let dx = sum.square().grad(&[&x]).unwrap_err();
        assert!(dx.to_string().contains("freed"), "{dx}");
        let dx = y.square().grad(&[&x]).unwrap().remove(0).unwrap();
        assert_eq!((dx.device(), dx.item::<f64>().unwrap()), (a, 6.0));
    }

    #[test]
    fn traced_functions_use_what_moved_and_refuse_to_move_their_arguments() {
        let [a, b] = &devices();
        let w = vector(&[2.0, 3.0], a).exp();
        let jit = Jit::new(|x: &[Tensor]| Ok(vec![x[0].mul(w.to_device(b)?.log())?]));
        for _ in 0..2 {
            let y = jit.call(&[&vector(&[1.0, 2.0], b)]).unwrap();
            assert_eq!(y[0].to_vec::<f64>().unwrap(), [2.0, 6.0]);
        }
        let moves = Jit::new(|x: &[Tensor]| Ok(vec![x[0].neg().to_device(a)?]));
        let error = moves.call(&[&vector(&[1.0], b)]).unwrap_err().to_string();
        assert!(error.contains("moves to reference:0"), "{error}");
        let each = |x: &[Tensor]| x[0].square().to_device(a)?.sum(..);
        let y = Tensor::vmap(each, &[&vector(&[1.0, 2.0], b)], &[Some(0)], 0).unwrap();
        assert_eq!(y.to_vec::<f64>().unwrap(), [1.0, 4.0]);
    }

    #[test]
    fn threads_move_the_same_tensors() {
        let [a, b] = &devices();
        for round in 0..20 {
            let x = vector(&[f64::from(round), 2.0], a);
            let y = x.square().to_device(b).unwrap().add(1.0).unwrap();
            let z = y.to_device(a).unwrap().mul(x.exp()).unwrap().to_device(b).unwrap();
            drop(x);
            let read = |t: &Tensor| t.to_vec::<f64>().unwrap();
            std::thread::scope(|scope| {
                let threads: Vec<_> = [&y, &z, &z, &y].map(|t| scope.spawn(move || read(t))).into();
                let found: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
                assert_eq!((&found[0], &found[1]), (&found[3], &found[2]));
                assert_eq!(found[0], [f64::from(round * round) + 1.0, 5.0]);
                assert_eq!(found[1][1], 5.0 * 2f64.exp());
            });
        }
    }
}
