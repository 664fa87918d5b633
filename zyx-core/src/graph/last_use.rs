//! Which leaves of a captured graph nobody will hold once its outputs have their values.
//!
//! An output that gradients do not pass gives its history up when it is computed
//! (`Tensor::set_value`); nodes that only this history holds go with it, and so may leaves. Here the
//! same is done in thought: the handles that will be dropped are counted, and a node of which they
//! are all goes too. What is found is memory that results may take.

use super::Bindings;
use crate::runtime::{Buffer, Device};
use crate::tensor::Tensor;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::atomic::{Ordering::Acquire, fence};

/// What a realization starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holders<'a> {
    /// The tensors to be computed.
    pub(crate) outputs: &'a [&'a Tensor],
    /// Handles that the caller gives up if all goes well.
    pub(crate) given: &'a [Tensor],
    pub(crate) bindings: &'a Bindings,
}

/// Nodes looked at besides so many for each output: bounds what a step of a loop pays.
const FREE_LOOKS: usize = 64;
/// Nodes looked at for each output: an update of a parameter has fewer.
const LOOKS_EACH: usize = 32;

impl Holders<'_> {
    /// Of the leaves in these slots those whose buffers go, ascending. The search ends early when
    /// all of `enough`, ascending, are found.
    ///
    /// Nobody else may make or drop handles of what is looked at between this and the use of the
    /// answer: then a buffer that goes stays without another holder.
    pub(crate) fn dying(&self, slots: &[u32], enough: &[u32]) -> Vec<u32> {
        let buffer = |slot: u32| &self.bindings.leaves[slot as usize];
        // Space for all at once: a step of an optimizer would make the tables grow several times.
        let mut wanted = FxHashMap::with_capacity_and_hasher(slots.len(), FxBuildHasher);
        for &slot in slots.iter().filter(|&&slot| buffer(slot).may_be_given()) {
            // A buffer is held by the bindings and by so many nodes.
            wanted.insert(buffer(slot).key(), (buffer(slot).holders() - 1, slot));
        }
        let n = self.outputs.len();
        let Some(first) = self.outputs.first() else { return Vec::new() };
        let mut fall = Fall {
            device: first.device(),
            wanted,
            enough,
            missing: enough.len(),
            dying: Vec::with_capacity(enough.len()),
            handles: FxHashMap::with_capacity_and_hasher(2 * n, FxBuildHasher),
            queue: VecDeque::with_capacity(2 * n),
        };
        // One tensor may be several outputs. They keep their order, so that equal steps of a loop
        // look at the same nodes.
        let mut seen = FxHashSet::with_capacity_and_hasher(n, FxBuildHasher);
        let outputs = self.outputs.iter().filter(|output| seen.insert(output.id()));
        outputs.for_each(|output| fall.release(output));
        self.given.iter().for_each(|tensor| fall.drop_handle(tensor));
        fall.run(FREE_LOOKS + LOOKS_EACH * self.outputs.len());
        // What other threads did with handles they dropped comes before what follows.
        fence(Acquire);
        fall.dying.sort_unstable();
        fall.dying
    }
}

/// Handles dropped in thought.
struct Fall<'a> {
    device: &'a Device,
    /// Buffers in question: how many nodes still hold one, and its slot.
    wanted: FxHashMap<usize, (usize, u32)>,
    enough: &'a [u32],
    missing: usize,
    dying: Vec<u32>,
    /// Of nodes with several handles, those that were dropped.
    handles: FxHashMap<usize, usize>,
    /// Nodes that go, whose own handles are still to be dropped; nearest to the outputs first.
    queue: VecDeque<Tensor>,
}

impl Fall<'_> {
    /// The history of an output goes, if it does when the output is computed.
    fn release(&mut self, output: &Tensor) {
        if output.releases_history() {
            output.each_source(&mut |source| self.drop_handle(source));
        }
    }

    fn drop_handle(&mut self, tensor: &Tensor) {
        // Threads that compute on another device may make handles of its tensors meanwhile.
        if tensor.device() != self.device {
            return;
        }
        let owners = tensor.owners();
        let dropped = match owners {
            1 => 1,
            _ => {
                let dropped = self.handles.entry(tensor.id()).or_default();
                *dropped += 1;
                *dropped
            }
        };
        // This handle more is never counted: no other of the tensor is left to be dropped.
        if dropped == owners {
            self.queue.push_back(tensor.clone());
        }
    }

    /// Lets go what goes, looking at so many nodes at most.
    fn run(&mut self, mut looks: usize) {
        while let Some(tensor) = self.queue.pop_front() {
            if let Some(buffer) = tensor.value() {
                self.drop_buffer(buffer);
            }
            if looks == 0 || self.missing == 0 {
                break;
            }
            looks -= 1;
            tensor.each_source(&mut |source| self.drop_handle(source));
        }
    }

    fn drop_buffer(&mut self, buffer: &Buffer) {
        let Some((held, slot)) = self.wanted.get_mut(&buffer.key()) else { return };
        *held = held.saturating_sub(1);
        if *held == 0 {
            self.dying.push(*slot);
            self.missing -= usize::from(self.enough.binary_search(slot).is_ok());
        }
    }
}
