//! Plans that are kept: one for each graph, or several that differ in whose memory results take.
//!
//! Which inputs die with a plan is no matter of structure: it depends on who holds them. So a graph
//! has variants of its plan, made when they are first needed; a loop needs one.
//!
//! Most graphs are like one that was played before: [`PlanCache::expected`] compares with those first, and
//! only what is like none is captured.
//!
//! Whether an input dies can be told only while nobody makes handles of it. Threads that capture
//! and play share the device; one that gives memory away has it alone ([`Device::alone`]), from looking
//! at the holders until the results have their values.

use super::explain::Speeds;
use super::item::{Launches, Scheduled, schedule, schedule_by};
use super::names::Names;
use super::plan::{Draft, Plan, Sizes};
use super::refuse_impossible;
use super::rows::{Row, Rows};
use super::search::{self, Choices};
use crate::error::Result;
use crate::graph::{
    Bindings, CaptureOrder, Graph, HeldNode, Holders, Matched, NodeId, Places, match_held,
};
use crate::hal::{Watch, lock};
use crate::lru::Lru;
use crate::runtime::{Buffer, Device, Plans};
use crate::tensor::Tensor;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Graphs beyond this many nodes are planned anew each time instead of being kept as keys.
const MAX_CACHED_NODES: usize = 1 << 20;
/// Most variants of a plan.
const MAX_VARIANTS: usize = 4;
/// Plays of a plan until it is settled which inputs die, and how often it is looked at again.
const SETTLED: usize = 3;
const LOOK_AGAIN: usize = 16;

/// Most graphs without their sizes whose first size is known.
const MAX_STRUCTURES: usize = 1 << 12;

/// Most searches whose outcome is kept: each may name thousands of nodes.
const MAX_CHOSEN: usize = 1 << 9;

/// Most graphs that others are compared with, and how many are tried.
const MAX_RECENT: usize = 16;
const TRIES: usize = 4;

/// A graph that was played, and how it was reached.
struct Played {
    graph: Arc<Graph>,
    order: CaptureOrder,
    planned: Arc<Planned>,
    keeping: Keeping,
}

/// The held nodes of a graph, and which of them its plan stores or computes in place.
#[derive(Default)]
pub(super) struct Keeping {
    /// How many outputs were asked for; those behind them are kept.
    pub(super) asked: usize,
    pub(super) held: Vec<HeldNode>,
    /// Nodes whose tensors are told that they were computed in place.
    pub(super) deferred: Vec<NodeId>,
    /// Leaves that held values are computed from which are not stored.
    pub(super) live_leaves: Vec<NodeId>,
}

/// A known plan for some tensors with the values of its leaves, and the tensors whose state it changes.
pub(super) struct Found {
    pub(super) planned: Arc<Planned>,
    pub(super) bindings: Bindings,
    /// Outputs stored because the program holds their tensors: number of the output, tensor.
    pub(super) kept: Vec<(usize, Tensor)>,
    /// Tensors that are held, and computed in place this time.
    pub(super) deferred: Vec<Tensor>,
    /// Kept values that what is computed now is made of, and nothing else that is held and not stored.
    pub(super) outlived: Vec<Tensor>,
}

impl Found {
    /// Which tensors are to have which outputs of a graph.
    pub(super) fn new(
        planned: Arc<Planned>,
        bindings: Bindings,
        outputs: &[NodeId],
        keeping: &Keeping,
        tensors: Vec<(NodeId, Tensor)>,
        kept_leaves: Vec<(NodeId, Tensor)>,
    ) -> Found {
        let (mut kept, mut deferred) = (Vec::new(), Vec::new());
        for (node, tensor) in tensors {
            match outputs[keeping.asked..].iter().position(|output| *output == node) {
                Some(output) => kept.push((keeping.asked + output, tensor)),
                None if keeping.deferred.contains(&node) => deferred.push(tensor),
                None => {}
            }
        }
        let outlived = kept_leaves.into_iter().filter(|(x, _)| !keeping.live_leaves.contains(x));
        let outlived = outlived.map(|(_, tensor)| tensor).collect();
        Found { planned, bindings, kept, deferred, outlived }
    }
}

/// The graphs played of late.
#[derive(Default)]
struct Recent {
    played: Vec<Arc<Played>>,
    /// For each the one that was played after it.
    next: Vec<usize>,
    /// The one played last, and the one to make place for another.
    last: usize,
    oldest: usize,
}

impl Recent {
    /// The likely ones, likeliest first.
    fn likely(&self) -> SmallVec<[(usize, Arc<Played>); TRIES]> {
        let first = [self.next.get(self.last).copied().unwrap_or_default(), self.last];
        let others = (0..self.played.len()).filter(|i| !first.contains(i));
        let twice = usize::from(first[0] == first[1]);
        let all = first.into_iter().skip(twice).chain(others).take(TRIES);
        all.filter_map(|i| Some((i, self.played.get(i)?.clone()))).collect()
    }

    fn follows(&mut self, this: usize) {
        if let Some(next) = self.next.get_mut(self.last) {
            *next = this;
        }
        self.last = this;
    }

    fn add(&mut self, played: Played) {
        let same = |other: &Arc<Played>| Arc::ptr_eq(&other.graph, &played.graph);
        let known = self.played.iter().position(same);
        let this = known.unwrap_or_else(|| match self.played.len() {
            MAX_RECENT => {
                self.oldest = (self.oldest + 1) % MAX_RECENT;
                self.oldest
            }
            n => n,
        });
        let played = Arc::new(played);
        match self.played.get_mut(this) {
            Some(place) => *place = played,
            None => {
                self.played.push(played);
                self.next.push(this);
            }
        }
        self.follows(this);
    }
}

/// Plans of a device by the structure of their graphs.
#[derive(Default)]
pub(super) struct PlanCache {
    plans: Mutex<Lru<Arc<Graph>, Arc<Planned>>>,
    /// The graph that was planned last, and what its variants have in common.
    draft: Mutex<Option<(Arc<Graph>, Arc<Draft>)>>,
    recent: Mutex<Recent>,
    /// Where slices of the graphs captured of late start.
    places: Mutex<Places>,
    /// For graphs without their sizes the first that they had.
    sizes: Mutex<FxHashMap<u64, u64>>,
    /// What searches chose for graphs of a structure that begin [alike](search::about).
    chosen: Mutex<FxHashMap<[u64; 2], Arc<Choices>>>,
    /// Kernels that programs registered for operations.
    rows: Mutex<Rows>,
    /// Visits of tensors that were counted so far.
    visits: AtomicU64,
    /// Nodes of the last graph: the next one of a loop will have as many.
    pub(super) last: AtomicUsize,
    /// The parameters that have names.
    pub(super) names: Names,
    /// What the device can do, if it was measured.
    pub(super) speeds: OnceLock<Speeds>,
}

/// The plans of a graph. Whoever holds it does not hold the plans: the cache may drop them, and they
/// are made again when they are asked for.
#[derive(Default)]
pub(super) struct Planned {
    /// What they compute, if they are kept.
    graph: Option<Arc<Graph>>,
    sizes: Sizes,
    /// Leaves whose memory results could have.
    candidates: Vec<u32>,
    /// The one used last comes first.
    variants: Mutex<Vec<Arc<Plan>>>,
    plays: AtomicUsize,
    /// When it was asked for plans last, in the device's ticks.
    used: AtomicU64,
}

impl Plans for PlanCache {
    fn bytes(&self) -> usize {
        lock(&self.plans).bytes() + lock(&self.places).bytes()
    }

    fn drop_oldest(&self, bytes: usize, keep: usize) -> usize {
        if keep == 0 {
            *self.recent() = Recent::default();
            *lock(&self.places) = Places::default();
            *lock(&self.draft) = None;
            lock(&self.sizes).clear();
            lock(&self.chosen).clear();
        }
        let used = |planned: &Arc<Planned>, _| Some(planned.used.load(Relaxed));
        let dropped = lock(&self.plans).drop_oldest(bytes, keep, used);
        dropped.iter().for_each(|planned| planned.forget());
        dropped.len()
    }

    fn drop_plans_of_rows(&self) {
        if !self.rows().is_empty() {
            self.drop_oldest(usize::MAX, 0);
        }
    }
}

impl PlanCache {
    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plans of what `outputs` reach and the values it has, if it is like one of the graphs
    /// played of late, and as much of it is held. Without `keeps` nothing is kept.
    pub(super) fn expected(
        &self,
        device: &Device,
        outputs: &[&Tensor],
        given: &[Tensor],
        keeps: bool,
    ) -> Option<Found> {
        let likely = self.recent().likely();
        likely.into_iter().find_map(|(i, played)| {
            let Played { graph, order, planned, keeping } = &*played;
            let kept = &graph.outputs[keeping.asked..];
            if keeping.asked != outputs.len() || !(keeps || kept.is_empty()) {
                return None;
            }
            let wanted = |node: NodeId| kept.contains(&node) || keeping.deferred.contains(&node);
            let wanted: Option<&dyn Fn(NodeId) -> bool> = match (kept, &keeping.deferred[..]) {
                ([], []) => None,
                _ => Some(&wanted),
            };
            let captured = (&**graph, order);
            let matched = match_held(outputs, given, captured, self.visit(), wanted)?;
            let Matched { bindings, held, tensors, kept_leaves } = matched;
            if keeps && held != keeping.held {
                return None;
            }
            device.count_plan(true, graph.len());
            self.recent().follows(i);
            let planned = planned.clone();
            Some(Found::new(planned, bindings, &graph.outputs, keeping, tensors, kept_leaves))
        })
    }

    /// The registered rows.
    pub(super) fn rows(&self) -> Rows {
        lock(&self.rows).clone()
    }

    /// Changes whenever operations may be computed by other rows, or by rows with other values of parameters.
    pub(super) fn generation_of_rows(&self, device: &Device) -> usize {
        match self.rows().len() {
            0 => 0,
            n => n + device.generation_of_values() as usize,
        }
    }

    /// Registers a row: plans made without it are dropped.
    pub(super) fn add_row(&self, row: Row) -> bool {
        let mut rows = lock(&self.rows);
        if rows.iter().any(|known| known.name() == row.name()) {
            return false;
        }
        *rows = rows.iter().cloned().chain([Arc::new(row)]).collect();
        drop(rows);
        self.drop_oldest(usize::MAX, 0);
        true
    }

    /// The number of another visit.
    pub(super) fn visit(&self) -> u64 {
        self.visits.fetch_add(1, Relaxed) + 1
    }

    /// The graph whose arguments are also the places in which slices start elsewhere than in an
    /// earlier graph that is otherwise equal.
    pub(super) fn generalized(
        &self,
        device: &Device,
        graph: Graph,
        bindings: &mut Bindings,
        order: &mut CaptureOrder,
    ) -> Graph {
        lock(&self.places).generalize(graph, bindings, order, device.cache_limit())
    }

    /// From now on the graph of these plans is expected.
    pub(super) fn expect(&self, planned: &Arc<Planned>, order: CaptureOrder, keeping: Keeping) {
        if let Some(graph) = planned.graph.clone() {
            self.recent().add(Played { graph, order, planned: planned.clone(), keeping });
        }
    }

    /// The plans of a graph, found or made.
    #[track_caller]
    pub(super) fn planned(
        &self,
        device: &Device,
        graph: Graph,
        holders: &Holders<'_>,
    ) -> Result<Arc<Planned>> {
        let known = lock(&self.plans).get(&graph).cloned();
        device.count_plan(known.is_some(), graph.len());
        if let Some(planned) = known {
            if let Some(known) = &planned.graph {
                known.origins.compare_all(&graph.origins);
            }
            return Ok(planned);
        }
        refuse_impossible(&graph, "realize")?;
        let _span = device.span("plan", &[("nodes", graph.len())]);
        if graph.len() > MAX_CACHED_NODES {
            let plan = Plan::new(&graph, device, Launches::Joint, Sizes::One, &mut |_| Vec::new())?;
            let variants = Mutex::new(vec![Arc::new(plan)]);
            return Ok(Arc::new(Planned { variants, ..Planned::default() }));
        }
        let mut dying = |slots: &[u32]| holders.dying(slots, slots);
        let sizes = self.sizes(&graph);
        let draft = Draft::new(&graph, device, Launches::Joint, sizes)?;
        let mut plan = draft.plan(&graph, device, &mut dying)?;
        let graph = Arc::new(graph.shrunk());
        *lock(&self.draft) = draft.may_vary().then(|| (graph.clone(), Arc::new(draft)));
        plan.graph = Some(graph.clone());
        let planned = Arc::new(Planned {
            graph: Some(graph),
            sizes,
            candidates: plan.candidates.clone(),
            variants: Mutex::new(vec![Arc::new(plan)]),
            plays: AtomicUsize::new(0),
            used: AtomicU64::new(device.tick()),
        });
        self.keep(device, &planned, 0);
        Ok(planned)
    }

    /// Whether a graph was planned before that is equal but for sizes.
    fn sizes(&self, graph: &Graph) -> Sizes {
        let [structure, own] = graph.hash_of_sizes();
        let mut sizes = lock(&self.sizes);
        if sizes.len() == MAX_STRUCTURES {
            sizes.clear();
        }
        match *sizes.entry(structure).or_insert(own) == own {
            true => Sizes::One,
            false => Sizes::Several,
        }
    }

    /// Schedules a graph. Where an earlier one is equal but for sizes, and its search began alike, by what that found.
    pub(super) fn schedule(&self, graph: &Graph, device: &Device, sizes: Sizes) -> Scheduled {
        if graph.len() > search::VISITS {
            return schedule(graph, device);
        }
        let structure = graph.hash_of_sizes()[0];
        let key = Cell::new(None);
        let (scheduled, chosen) = schedule_by(graph, device, &|rules| {
            key.set(Some([structure, search::about(graph, rules)]));
            let known = || lock(&self.chosen).get(&key.get()?).cloned();
            (sizes == Sizes::Several).then(known).flatten()
        });
        if let (Some(key), Some(chosen), false) = (key.get(), chosen, Watch::here().is_stopped()) {
            let mut all = lock(&self.chosen);
            if all.len() == MAX_CHOSEN {
                all.clear();
            }
            all.insert(key, Arc::new(chosen));
        }
        scheduled
    }

    /// What variants of a graph's plan have in common, if it was planned last.
    fn draft(&self, graph: &Arc<Graph>, device: &Device) -> Option<Arc<Draft>> {
        let (draft, rows) = (lock(&self.draft), self.generation_of_rows(device));
        let fits = |draft: &&(Arc<Graph>, Arc<Draft>)| {
            Arc::ptr_eq(&draft.0, graph) && draft.1.rows == rows
        };
        draft.as_ref().filter(fits).map(|draft| draft.1.clone())
    }

    /// No more variants of this graph's plan are expected.
    fn drop_draft(&self, graph: &Arc<Graph>) {
        lock(&self.draft).take_if(|draft| Arc::ptr_eq(&draft.0, graph));
    }

    /// The plans of a graph take so many bytes more.
    pub(super) fn grow(&self, graph: &Arc<Graph>, bytes: usize) {
        lock(&self.plans).grow(graph, bytes);
    }

    /// Keeps plans, or those that have grown by so many bytes.
    pub(super) fn keep(&self, device: &Device, planned: &Arc<Planned>, more: usize) {
        let Some(graph) = &planned.graph else { return };
        let bytes = planned.bytes();
        let mut plans = lock(&self.plans);
        match plans.get(graph) {
            Some(kept) if Arc::ptr_eq(kept, planned) => plans.grow(graph, more),
            _ => plans.insert(graph.clone(), planned.clone(), bytes),
        }
        drop(plans);
        // A row that was registered or tuned meanwhile has found no plan to drop.
        let rows = self.generation_of_rows(device);
        if planned.variants().iter().any(|plan| plan.rows != rows) {
            planned.forget();
        }
        device.fit_caches();
    }
}

impl Planned {
    fn variants(&self) -> MutexGuard<'_, Vec<Arc<Plan>>> {
        self.variants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn graph_bytes(&self) -> usize {
        self.graph.as_ref().map_or(0, |graph| graph.bytes())
    }

    /// Bytes of memory, roughly.
    fn bytes(&self) -> usize {
        self.graph_bytes() + self.variants().iter().map(|plan| plan.bytes()).sum::<usize>()
    }

    /// Drops the plans.
    fn forget(&self) {
        let variants = std::mem::take(&mut *self.variants());
        self.plays.store(0, Relaxed);
        drop(variants);
    }

    /// Whether it is worth asking which inputs die.
    pub(super) fn may_donate(&self, bindings: &Bindings) -> bool {
        let given = |&slot: &u32| Buffer::may_be_given(&bindings.leaves[slot as usize]);
        self.candidates.iter().any(given)
    }

    /// The plan that takes nothing from inputs.
    pub(super) fn plain(self: &Arc<Self>, device: &Device) -> Result<Arc<Plan>> {
        self.used.store(device.tick(), Relaxed);
        let known = self.variants().iter().find(|plan| plan.donated.is_empty()).cloned();
        known.map_or_else(|| self.make(device, Vec::new()), Ok)
    }

    /// The plan for inputs that die now. Only for a thread that has the device alone.
    pub(super) fn choose(
        self: &Arc<Self>,
        device: &Device,
        holders: &Holders<'_>,
    ) -> Result<Arc<Plan>> {
        self.used.store(device.tick(), Relaxed);
        let plays = self.plays.fetch_add(1, Relaxed);
        let settled = plays >= SETTLED && !plays.is_multiple_of(LOOK_AGAIN);
        if let (SETTLED, Some(graph)) = (plays, &self.graph) {
            device.attachment::<PlanCache>().drop_draft(graph);
        }
        let last = self.variants().first().map(|plan| plan.donated.clone()).unwrap_or_default();
        let enough = if settled { &last } else { &self.candidates };
        let dying = holders.dying(&self.candidates, enough);
        let fits =
            |plan: &&Arc<Plan>| plan.donated.iter().all(|slot| dying.binary_search(slot).is_ok());
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
    fn make(self: &Arc<Self>, device: &Device, dying: Vec<u32>) -> Result<Arc<Plan>> {
        let graph = self.graph.as_ref().expect("invariant: a graph that is not kept has its plan");
        let cache = device.attachment::<PlanCache>();
        let dying = &mut |_: &[u32]| dying.clone();
        let mut plan = match cache.draft(graph, device) {
            Some(draft) => draft.plan(graph, device, dying)?,
            None => Plan::new(graph, device, Launches::Joint, self.sizes, dying)?,
        };
        plan.graph = Some(graph.clone());
        let plan = Arc::new(plan);
        self.variants().insert(0, plan.clone());
        cache.keep(device, self, plan.bytes());
        Ok(plan)
    }
}
