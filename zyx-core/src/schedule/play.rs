//! Playing a plan: one submission, or step by step where memory does not hold all of it at once.

use super::item::Launches;
use super::plan::{Crowded, Place, Plan, PlanArg, Replay, Sizes, Step};
use super::plan_cache::PlanCache;
use crate::error::{Error, Result};
use crate::graph::Bindings;
use crate::hal::{Arg, Recording};
use crate::runtime::{Arguments, Buffer, Device, Launch, Pinned, Program};
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{MutexGuard, PoisonError};

/// Plays step by step until a plan is tried at once again, whatever is known of the memory.
const TRY_AGAIN: u32 = 16;

impl Plan {
    fn kept(&self) -> MutexGuard<'_, Replay> {
        self.replay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was kept, taken out, with the best programs there are now.
    fn replay(&self, device: &Device) -> Replay {
        let mut replay = std::mem::take(&mut *self.kept());
        let generation = device.generation();
        if replay.generation != generation {
            let program = |step: &Step| device.better(&step.program);
            let better: Vec<Option<Program>> = self.steps.iter().map(program).collect();
            let own = self.steps.iter().map(|step| &step.program);
            if better.iter().any(Option::is_some) {
                let best = better.into_iter().zip(own);
                replay.programs = best.map(|(b, own)| b.unwrap_or_else(|| own.clone())).collect();
                // A recording is of the programs it was made with.
                replay.recording = Recording::default();
            }
            replay.generation = generation;
        }
        replay
    }

    /// Runs the plan beside other threads and gives the buffers of the graph's outputs. If there is
    /// no memory for all of it at once, [`Plan::play_alone`] is the way.
    pub(crate) fn play_beside(&self, device: &Device, bindings: &Bindings) -> Result<Vec<Buffer>> {
        if self.stepwise.load(Relaxed) || !self.fits(device, bindings) {
            return Err(device.has_no_room_for(self.arena).into());
        }
        device.count_temporaries(self.temporaries);
        self.play_whole(device, bindings)
    }

    /// Runs the plan for a thread that has the device alone.
    ///
    /// A plan that needs more memory at once than the device has is run step by step, until there
    /// may be more.
    pub(crate) fn play_alone(&self, device: &Device, bindings: &Bindings) -> Result<Vec<Buffer>> {
        device.count_temporaries(self.temporaries);
        if self.fits(device, bindings) && self.may_have_room(device) {
            let demand = device.demand();
            match self.play_whole(device, bindings) {
                Err(Error::Device(full)) if full.is_about_memory() && self.steps.len() > 1 => {
                    *self.crowded() = Some(Crowded { demand, plays: 0 });
                    self.stepwise.store(true, Relaxed);
                }
                done => {
                    self.stepwise.store(false, Relaxed);
                    return done;
                }
            }
        }
        self.apart(device)?.play_steps(device, bindings)
    }

    /// Whether it did not fail yet for want of memory, or things have changed since: tensors are
    /// gone, the limit is another, or so many plays later anything outside of this program.
    fn may_have_room(&self, device: &Device) -> bool {
        if !self.stepwise.load(Relaxed) {
            return true;
        }
        let (now, mut crowded) = (device.demand(), self.crowded());
        let Some(crowded) = &mut *crowded else { return true };
        crowded.plays += 1;
        let (bytes, limits) = crowded.demand;
        now.0 < bytes || now.1 != limits || crowded.plays.is_multiple_of(TRY_AGAIN)
    }

    fn crowded(&self) -> MutexGuard<'_, Option<Crowded>> {
        self.crowded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This plan without joint launches, which bind at once what their items need in turn; itself
    /// where the graph was not kept.
    fn apart(&self, device: &Device) -> Result<&Plan> {
        let (None, Some(graph)) = (self.apart.get(), &self.graph) else {
            return Ok(self.apart.get().map_or(self, |plan| plan));
        };
        let plan = Plan::new(graph, device, Launches::Single, Sizes::One, &mut |_| Vec::new())?;
        device.attachment::<PlanCache>().grow(graph, plan.bytes());
        Ok(self.apart.get_or_init(|| Box::new(plan)))
    }

    /// Whether it is going to run as one submission, as far as is known.
    pub(super) fn fits_whole(&self, device: &Device, bindings: &Bindings) -> bool {
        !self.stepwise.load(Relaxed) && self.fits(device, bindings)
    }

    /// Whether all buffers may fit the device together.
    fn fits(&self, device: &Device, bindings: &Bindings) -> bool {
        let leaves: usize = bindings.leaves.iter().map(Buffer::bytes).sum();
        let outputs: usize = self.output_bytes.iter().sum();
        self.steps.len() <= 1 || device.could_hold(leaves + outputs + self.arena)
    }

    /// Runs the plan as one submission.
    fn play_whole(&self, device: &Device, bindings: &Bindings) -> Result<Vec<Buffer>> {
        // First what exists: allocating what does not may move other buffers to the host.
        let leaves = pinned(&bindings.leaves)?;
        let alloc = |&bytes: &usize| device.alloc_here(bytes);
        let outputs = self.output_bytes.iter().map(alloc).collect::<Result<Vec<_>>>()?;
        let results = pinned(&outputs)?;
        // An arena of no bytes still is one: temporaries may all be empty.
        let arena = if self.temporaries > 0 { Some(device.alloc_here(self.arena)?) } else { None };
        let arena = arena.as_ref().map(Buffer::pin).transpose()?;
        let locate = |number: u32| match self.places[number as usize] {
            Place::Leaf(slot) | Place::Donated(slot) => (&leaves[slot as usize], 0),
            Place::Output(output) => (&results[output as usize], 0),
            Place::Temporary(offset, _) => {
                (arena.as_ref().expect("invariant: temporaries have an arena"), offset)
            }
        };
        if !self.steps.is_empty() {
            let args = self.steps.iter().flat_map(|step| &step.args);
            let args: SmallVec<[Arg<'_, Pinned>; 64]> =
                args.map(|arg| arg.value(&bindings.arguments, locate)).collect();
            let Replay { mut recording, programs, generation } = self.replay(device);
            let mut launches: SmallVec<[Launch<'_>; 16]> = SmallVec::new();
            let mut rest = args.as_slice();
            for (i, step) in self.steps.iter().enumerate() {
                let (args, others) = rest.split_at(step.args.len());
                rest = others;
                let program = programs.get(i).unwrap_or(&step.program);
                launches.push(Launch { program, args, after: &step.after });
            }
            let in_place = !self.donated.is_empty();
            device.submit_recorded(&mut recording, &launches, (in_place, self.about(device)))?;
            drop(launches);
            *self.kept() = Replay { recording, programs, generation };
        }
        device.count_donations(self.donated.len());
        let mut donated: FxHashMap<u32, Buffer> =
            FxHashMap::with_capacity_and_hasher(self.donated.len(), FxBuildHasher);
        for &slot in &self.donated {
            donated.insert(slot, bindings.leaves[slot as usize].succeed()?);
        }
        let result = |&number: &u32| match self.places[number as usize] {
            Place::Leaf(slot) => bindings.leaves[slot as usize].clone(),
            Place::Donated(slot) => donated[&slot].clone(),
            Place::Output(output) => outputs[output as usize].clone(),
            Place::Temporary(..) => unreachable!("invariant: outputs are no temporaries"),
        };
        Ok(self.outputs.iter().map(result).collect())
    }

    /// What a trace says of each launch.
    #[cfg(feature = "trace")]
    fn about(&self, device: &Device) -> &[Arguments] {
        let Some(graph) = self.graph.as_ref().filter(|_| device.is_traced()) else { return &[] };
        self.about.get_or_init(|| {
            let _span = device.span("explain", &[("nodes", graph.len())]);
            super::explain::about_launches(graph, device, self.steps.len())
        })
    }

    /// Nothing is traced.
    #[cfg(not(feature = "trace"))]
    fn about(&self, _: &Device) -> &[Arguments] {
        &[]
    }

    /// Runs the plan step by step, so that only what one step needs has to be on the device: all
    /// else, temporaries and finished outputs too, may move to the host meanwhile.
    fn play_steps(&self, device: &Device, bindings: &Bindings) -> Result<Vec<Buffer>> {
        device.count_stepwise();
        let mut buffers: Vec<Option<Buffer>> = vec![None; self.places.len()];
        let buffer = |slot: &mut Option<Buffer>, number: u32| match (&*slot, self.bytes_of(number))
        {
            (Some(buffer), _) => Ok(buffer.clone()),
            (None, Err(leaf)) => Ok(bindings.leaves[leaf as usize].clone()),
            (None, Ok(bytes)) => device.alloc_here(bytes).inspect(|new| *slot = Some(new.clone())),
        };
        let mut last_use = vec![0; self.places.len()];
        let numbers = |step: &Step| {
            step.args.iter().filter_map(PlanArg::buffer).collect::<SmallVec<[u32; 12]>>()
        };
        for (at, step) in self.steps.iter().enumerate() {
            numbers(step).iter().for_each(|&number| last_use[number as usize] = at);
        }
        for (at, step) in self.steps.iter().enumerate() {
            let mut pins: SmallVec<[Pinned; 12]> = SmallVec::new();
            for number in numbers(step) {
                pins.push(buffer(&mut buffers[number as usize], number)?.pin()?);
            }
            let mut pins = pins.iter();
            let mut pin = |_| (pins.next().expect("invariant: one pin per buffer"), 0);
            let args = step.args.iter().map(|arg| arg.value(&bindings.arguments, &mut pin));
            let args: SmallVec<[Arg<'_, Pinned>; 12]> = args.collect();
            let launch = Launch { program: &step.program, args: &args, after: &[] };
            device.submit(&[launch])?;
            for number in numbers(step) {
                let temporary = matches!(self.places[number as usize], Place::Temporary(..));
                if temporary && last_use[number as usize] == at {
                    buffers[number as usize] = None;
                }
            }
        }
        let result = |&number: &u32| buffer(&mut buffers[number as usize], number);
        self.outputs.iter().map(result).collect()
    }

    /// The bytes of a buffer that the plan makes, or the slot of a leaf.
    fn bytes_of(&self, number: u32) -> Result<usize, u32> {
        match self.places[number as usize] {
            Place::Leaf(slot) | Place::Donated(slot) => Err(slot),
            Place::Output(output) => Ok(self.output_bytes[output as usize]),
            Place::Temporary(_, bytes) => Ok(bytes),
        }
    }
}

/// Pins of all buffers.
fn pinned(buffers: &[Buffer]) -> Result<SmallVec<[Pinned; 16]>> {
    buffers.iter().map(Buffer::pin).collect()
}
