//! Plans that are kept: one for each graph, or several that differ in whose memory results take.
//!
//! Which inputs die with a plan is no matter of structure: it depends on who holds them. So a graph
//! has variants of its plan, made when they are first needed; a loop needs one.
//!
//! Whether an input dies can be told only while nobody makes handles of it. Threads that capture
//! and play share the cache; one that gives memory away has it alone, from looking at the holders
//! until the results have their values.

use super::explain::Speeds;
use super::plan::Plan;
use super::refuse_impossible;
use super::work::Launches;
use crate::error::Result;
use crate::graph::{Bindings, Graph, Holders};
use crate::runtime::{Buffer, Device};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

/// Graphs beyond this many nodes are planned anew each time instead of being kept as keys.
const MAX_CACHED_NODES: usize = 1 << 16;
/// Most graphs whose plans are kept; a program that exceeds it starts over.
const MAX_PLANS: usize = 4096;
/// Most variants of a plan.
const MAX_VARIANTS: usize = 4;
/// Plays of a plan until it is settled which inputs die, and how often it is looked at again.
const SETTLED: usize = 3;
const LOOK_AGAIN: usize = 16;

/// Plans of a device by the structure of their graphs.
#[derive(Default)]
pub(super) struct PlanCache {
    plans: Mutex<FxHashMap<Arc<Graph>, Arc<Planned>>>,
    /// Nodes of the last graph: the next one of a loop will have as many.
    pub(super) last: AtomicUsize,
    /// What the device can do, if it was measured.
    pub(super) speeds: OnceLock<Speeds>,
    gate: RwLock<()>,
}

/// The plans of a graph.
#[derive(Default)]
pub(super) struct Planned {
    /// What they compute, if they are kept.
    graph: Option<Arc<Graph>>,
    /// Leaves whose memory results could have.
    candidates: Vec<u32>,
    /// The one used last comes first.
    variants: Mutex<Vec<Arc<Plan>>>,
    plays: AtomicUsize,
}

impl PlanCache {
    /// While it is held, nobody gives memory away.
    pub(super) fn share(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// While it is held, nobody else computes anything on the device.
    pub(super) fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plans of a graph, found or made.
    #[track_caller]
    pub(super) fn planned(
        &self,
        device: &Device,
        graph: Graph,
        holders: &Holders<'_>,
    ) -> Result<Arc<Planned>> {
        let lock = || self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&graph).cloned();
        device.count_plan(known.is_some());
        if let Some(planned) = known {
            return Ok(planned);
        }
        refuse_impossible(&graph, "realize")?;
        if graph.len() > MAX_CACHED_NODES {
            let plan = Plan::new(&graph, device, Launches::Joint, &mut |_| Vec::new())?;
            let variants = Mutex::new(vec![Arc::new(plan)]);
            return Ok(Arc::new(Planned { variants, ..Planned::default() }));
        }
        let mut dying = |slots: &[u32]| holders.dying(slots, slots);
        let mut plan = Plan::new(&graph, device, Launches::Joint, &mut dying)?;
        let graph = Arc::new(graph);
        plan.graph = Some(graph.clone());
        let planned = Arc::new(Planned {
            graph: Some(graph.clone()),
            candidates: plan.candidates.clone(),
            variants: Mutex::new(vec![Arc::new(plan)]),
            plays: AtomicUsize::new(0),
        });
        let mut plans = lock();
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        plans.insert(graph, planned.clone());
        Ok(planned)
    }
}

impl Planned {
    fn variants(&self) -> MutexGuard<'_, Vec<Arc<Plan>>> {
        self.variants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is worth asking which inputs die.
    pub(super) fn may_donate(&self, bindings: &Bindings) -> bool {
        let given = |&slot: &u32| Buffer::may_be_given(&bindings.leaves[slot as usize]);
        self.candidates.iter().any(given)
    }

    /// The plan that takes nothing from inputs.
    pub(super) fn plain(&self, device: &Device) -> Result<Arc<Plan>> {
        let known = self.variants().iter().find(|plan| plan.donated.is_empty()).cloned();
        known.map_or_else(|| self.make(device, Vec::new()), Ok)
    }

    /// The plan for inputs that die now. Only for a thread that has the cache alone.
    pub(super) fn choose(&self, device: &Device, holders: &Holders<'_>) -> Result<Arc<Plan>> {
        let plays = self.plays.fetch_add(1, Relaxed);
        let settled = plays >= SETTLED && !plays.is_multiple_of(LOOK_AGAIN);
        let last = self.variants().first().map(|plan| plan.donated.clone()).unwrap_or_default();
        let enough = if settled { &last } else { &self.candidates };
        let dying = holders.dying(&self.candidates, enough);
        let fits = |plan: &&Arc<Plan>| plan.donated.iter().all(|slot| dying.contains(slot));
        let (best, exact, n) = {
            let variants = self.variants();
            let best = variants.iter().filter(fits).max_by_key(|plan| plan.donated.len()).cloned();
            (best, variants.iter().any(|plan| plan.dying == dying), variants.len())
        };
        match best {
            Some(plan) if settled || exact || n >= MAX_VARIANTS => {
                self.put_first(&plan);
                Ok(plan)
            }
            None if n >= MAX_VARIANTS => self.plain(device),
            _ => self.make(device, dying),
        }
    }

    fn put_first(&self, plan: &Arc<Plan>) {
        let mut variants = self.variants();
        if let Some(at) = variants.iter().position(|known| Arc::ptr_eq(known, plan)) {
            variants[..=at].rotate_right(1);
        }
    }

    /// One more variant.
    fn make(&self, device: &Device, dying: Vec<u32>) -> Result<Arc<Plan>> {
        let graph = self.graph.as_ref().expect("invariant: a graph that is not kept has its plan");
        let mut plan = Plan::new(graph, device, Launches::Joint, &mut |_| dying.clone())?;
        plan.graph = Some(graph.clone());
        let plan = Arc::new(plan);
        self.variants().insert(0, plan.clone());
        Ok(plan)
    }
}
