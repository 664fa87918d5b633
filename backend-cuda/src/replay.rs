//! Lists of launches that repeat, as CUDA graphs.
//!
//! A list is launched step by step the first times it is seen, since most lists do not come back.
//! Then it becomes a graph: each launch a node that waits for the launches it depends on, each
//! library call the kernels that are captured from what the library queues, or a graph of its own if it is
//! more than kernels. A later run compares addresses and scalars with those the graph was made with and changes
//! the nodes that differ.
//!
//! The core's pool hands buffers out in a short cycle, so a list has up to [`VARIANTS`] graphs
//! with different addresses; usually one of them fits as it is but for scalars.
//!
//! Where devices can, a short kernel that waits for one other kernel is launched when the groups of that
//! are through, and waits in its first instruction for what they stored.
//!
//! A graph that cannot be made is no error: its list is launched step by step for good.

use crate::device::{CudaProgram, Inner, Routine, words};
use crate::driver::{Code, Stream};
use crate::graph::{Executable, Graph, Node};
use crate::memory::{CudaBuffer, Memory};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;
use zyx_core::hal::{Caps, Command};

/// A list of this device.
pub(crate) type List<'a> = [Command<'a, CudaProgram, CudaBuffer>];

/// How often a list is launched step by step before it is worth a graph.
const PLAIN_RUNS: u32 = 2;

/// Most graphs kept for one list.
const VARIANTS: usize = 4;

/// What is kept of a list.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    runs: u32,
    /// Whether making a graph failed.
    hopeless: bool,
    /// Whether making one failed whose launches overlap.
    apart: bool,
    variants: Vec<Variant>,
    /// The variant to change when none fits.
    oldest: usize,
}

/// What a graph is made and run with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Environment<'a> {
    pub(crate) stream: &'a Stream,
    /// A stream that nothing else uses, to capture what libraries queue.
    pub(crate) capture: &'a Stream,
    pub(crate) memory: &'a Arc<Memory>,
    pub(crate) caps: &'a Caps,
    /// Whether kernels may be launched while those they wait for still run.
    pub(crate) overlaps: bool,
}

/// A graph with the arguments it has now.
#[derive(Debug)]
struct Variant {
    executable: Executable,
    /// Keeps the nodes valid.
    _graph: Graph,
    steps: Vec<Step>,
    /// Arguments of all steps, one after the other.
    words: Vec<u64>,
    /// Which of them are addresses.
    addresses: Vec<bool>,
}

/// The nodes of one command.
#[derive(Debug)]
struct Step {
    words: Range<usize>,
    nodes: Vec<Node>,
    /// Whether the node is a graph.
    within: bool,
    /// What a library call needs beside its operands; calls of a list take turns.
    workspace: Option<Arc<CudaBuffer>>,
}

/// Why a graph could not be made or changed.
#[derive(Debug)]
pub(crate) struct Failed(String);

impl From<Code> for Failed {
    fn from(code: Code) -> Failed {
        Failed(code.to_string())
    }
}

impl From<String> for Failed {
    fn from(reason: String) -> Failed {
        Failed(reason)
    }
}

impl Recorded {
    /// Runs the list as a graph. `false` if it has to be launched step by step.
    pub(crate) fn run(&mut self, env: Environment<'_>, list: &List<'_>) -> Result<bool, Code> {
        if self.hopeless {
            return Ok(false);
        }
        self.runs += 1;
        if self.runs <= PLAIN_RUNS {
            return Ok(false);
        }
        let words: Vec<u64> = list.iter().flat_map(|command| words(command.args)).collect();
        // Changing the graph of a call takes longer than the call.
        let known = |variant: &Variant| variant.has_addresses(&words);
        if list.len() == 1 && self.variants.len() == VARIANTS && !self.variants.iter().any(known) {
            return Ok(false);
        }
        while !self.hopeless {
            let env = Environment { overlaps: env.overlaps && !self.apart, ..env };
            match self.variant(env, list, words.clone()) {
                Ok(variant) => {
                    variant.executable.launch(env.stream)?;
                    return Ok(true);
                }
                Err(Failed(reason)) => {
                    let n = list.len();
                    log::debug!(target: "zyx::cuda", "no graph for {n} commands: {reason}");
                    self.hopeless = !env.overlaps;
                    self.apart = true;
                    self.variants.clear();
                }
            }
        }
        Ok(false)
    }

    /// A graph with these arguments.
    fn variant(
        &mut self,
        env: Environment<'_>,
        list: &List<'_>,
        words: Vec<u64>,
    ) -> Result<&Variant, Failed> {
        let fits = self.variants.iter().position(|variant| variant.has_addresses(&words));
        let index = match fits {
            Some(index) => index,
            None if self.variants.len() < VARIANTS => {
                self.variants.push(Variant::new(env, list, words)?);
                return Ok(&self.variants[self.variants.len() - 1]);
            }
            None => {
                self.oldest = (self.oldest + 1) % VARIANTS;
                self.oldest
            }
        };
        if !self.variants[index].change(env, list, &words)? {
            self.variants[index] = Variant::new(env, list, words)?;
        }
        Ok(&self.variants[index])
    }
}

impl Variant {
    fn new(env: Environment<'_>, list: &List<'_>, mut words: Vec<u64>) -> Result<Variant, Failed> {
        let graph = Graph::new(env.stream.context())?;
        let mut steps: Vec<Step> = Vec::with_capacity(list.len());
        let mut addresses = Vec::with_capacity(words.len());
        let waits = Waits::of(list);
        let needed = list.iter().map(|command| match &*command.program.0 {
            Inner::Kernel(_) => 0,
            Inner::Routine(routine, _) => routine.workspace(),
        });
        let workspace = match needed.max().unwrap_or(0) {
            0 => None,
            bytes => env.memory.alloc(bytes)?.map(Arc::new),
        };
        // The last one that has the workspace.
        let mut taken: Option<Node> = None;
        // For each command the nodes after which it is done: those before it if it has none.
        let mut ends: Vec<Vec<Node>> = Vec::with_capacity(list.len());
        let mut start = 0;
        for (i, command) in list.iter().enumerate() {
            let range = start..start + command.args.len();
            start = range.end;
            let is_address = |arg| matches!(arg, &zyx_core::hal::Arg::Buffer(..));
            addresses.extend(command.args.iter().map(is_address));
            let mut after: Vec<Node> = Vec::new();
            for &earlier in &waits.0[i] {
                after.extend(ends[earlier as usize].iter().copied());
            }
            let mut behind_kernels = waits.0[i].iter().all(|&i| !steps[i as usize].within);
            let words_of = range.clone();
            let mut step =
                Step { words: words_of, nodes: Vec::new(), within: false, workspace: None };
            match &*command.program.0 {
                Inner::Kernel(kernel) => {
                    let words = &mut words[range];
                    let launches: Vec<_> = kernel.launches(words, env.caps).collect();
                    let mut params = pointers(words);
                    for (function, grid, starts_waiting) in launches {
                        let overlapped = match after[..] {
                            [only] if env.overlaps && behind_kernels && starts_waiting => {
                                Some(only)
                            }
                            _ => None,
                        };
                        let waits = if overlapped.is_some() { &[][..] } else { &after };
                        // SAFETY: as for launching the program; the core keeps buffers of a list
                        // until the stream is done with its submission.
                        let node = unsafe { graph.add_launch(function, grid, &mut params, waits) }?;
                        if let Some(before) = overlapped {
                            // SAFETY: both are launches, and this one starts by waiting.
                            unsafe { graph.overlap(before, node) }?;
                        }
                        step.nodes.push(node);
                        (after, behind_kernels) = (vec![node], true);
                    }
                }
                Inner::Routine(routine, _) => {
                    if routine.workspace() > 0 {
                        // They take turns, so one is enough.
                        after.extend(taken.filter(|node| !after.contains(node)));
                        step.workspace = Some(workspace.clone().ok_or("no memory".to_owned())?);
                    }
                    let call = capture(env, routine, &words[range], step.workspace.as_deref())?;
                    step.nodes = match graph.add_kernels(&call, &after)? {
                        Some(kernels) => kernels,
                        None => {
                            step.within = true;
                            vec![graph.add_graph(&call, &after)?]
                        }
                    };
                    let last = step.nodes[step.nodes.len() - 1];
                    if routine.workspace() > 0 {
                        taken = Some(last);
                    }
                    after = vec![last];
                }
            }
            ends.push(after);
            steps.push(step);
        }
        let executable = graph.instantiate()?;
        Ok(Variant { executable, _graph: graph, steps, words, addresses })
    }

    fn has_addresses(&self, words: &[u64]) -> bool {
        let pairs = self.words.iter().zip(words).zip(&self.addresses);
        pairs.into_iter().all(|((old, new), is_address)| !is_address || old == new)
    }

    /// Gives the graph these arguments; `false` if it would have other nodes with them.
    fn change(
        &mut self,
        env: Environment<'_>,
        list: &List<'_>,
        new: &[u64],
    ) -> Result<bool, Failed> {
        for (step, command) in self.steps.iter().zip(list) {
            let words = &mut self.words[step.words.clone()];
            if words == &new[step.words.clone()] {
                continue;
            }
            words.copy_from_slice(&new[step.words.clone()]);
            match &*command.program.0 {
                Inner::Kernel(kernel) => {
                    let launches: Vec<_> = kernel.launches(words, env.caps).collect();
                    if launches.len() != step.nodes.len() {
                        return Ok(false);
                    }
                    let mut params = pointers(words);
                    for (&node, (function, grid, _)) in step.nodes.iter().zip(launches) {
                        // SAFETY: as for `add_launch`; the node is of this graph.
                        unsafe { self.executable.set_launch(node, function, grid, &mut params) }?;
                    }
                }
                Inner::Routine(routine, _) => {
                    let call = capture(env, routine, words, step.workspace.as_deref())?;
                    // SAFETY: the nodes are of this graph, and of the same call.
                    let same = unsafe {
                        match step.within {
                            true => self.executable.set_graph(step.nodes[0], &call).map(|()| true),
                            false => self.executable.set_kernels(&step.nodes, &call),
                        }
                    };
                    if !same? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

/// Pointers to the values of parameters.
pub(crate) fn pointers(words: &mut [u64]) -> Vec<*mut c_void> {
    words.iter_mut().map(|word| std::ptr::from_mut(word).cast()).collect()
}

/// What a library call queues, as a graph.
fn capture(
    env: Environment<'_>,
    routine: &Routine,
    words: &[u64],
    workspace: Option<&CudaBuffer>,
) -> Result<Graph, Failed> {
    let workspace = workspace.map_or(0, |buffer| buffer.at(0));
    Ok(Graph::capture(env.capture, || {
        // SAFETY: the arguments are as for launching the call; nodes with this workspace take turns.
        unsafe { routine.queue(env.capture, words, workspace) }
    })?)
}

/// For each command the earlier ones it has to wait for itself, without those that others it
/// waits for have waited for.
struct Waits(Vec<Vec<u32>>);

impl Waits {
    fn of(list: &List<'_>) -> Waits {
        Waits::reduce(list.iter().map(|command| command.after))
    }

    fn reduce<'a>(after: impl Iterator<Item = &'a [u32]>) -> Waits {
        // For each command the set of all that must be done before it, as bits.
        let mut before: Vec<Vec<u64>> = Vec::new();
        let mut waits = Vec::new();
        for (i, after) in after.enumerate() {
            let mut all = vec![0u64; i / 64 + 1];
            let mut direct = Vec::new();
            let mut sorted = after.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            // A later command cannot be among those before an earlier one.
            for &earlier in sorted.iter().rev() {
                let (word, bit) = (earlier as usize / 64, earlier % 64);
                if all[word] >> bit & 1 == 0 {
                    direct.push(earlier);
                    all[word] |= 1 << bit;
                    all.iter_mut().zip(&before[earlier as usize]).for_each(|(a, b)| *a |= b);
                }
            }
            before.push(all);
            waits.push(direct);
        }
        Waits(waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_direct_waits_stay() {
        let after: [&[u32]; 6] = [&[], &[0], &[0, 1], &[0], &[0, 1, 2, 3], &[4, 0]];
        let waits = Waits::reduce(after.into_iter()).0;
        assert_eq!(waits, [vec![], vec![0], vec![1], vec![0], vec![3, 2], vec![4]]);
    }

    #[test]
    fn long_chains_reduce_to_themselves() {
        let all: Vec<u32> = (0..200).collect();
        let waits = Waits::reduce((0..200).map(|i| &all[..i])).0;
        assert!(waits.iter().enumerate().skip(1).all(|(i, w)| *w == [i as u32 - 1]));
    }
}
