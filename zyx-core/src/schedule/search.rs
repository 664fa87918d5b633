//! The search for the partition of least cost.
//!
//! The partitioner has a rule for every node that could as well be stored as computed by its
//! users; it lists those nodes, and takes other decisions for any of them ([`Choices`]). Of a graph
//! of few nodes all combinations are tried, so what comes out is the least there is. Of a larger
//! one decisions are changed one kind of node at a time, the largest first, where the whole gets
//! cheaper, and only as often as keeps planning linear in the graph: never worse than the rules
//! alone. What partitions cost is counted by the partitioner in the units of
//! [`cost`](super::cost), with the whole of a kernel's work, each buffer it reads or writes once,
//! and a price for the launch.

use super::cost;
use super::partition::Partition;
use crate::graph::{Graph, NodeId};
use crate::hal::Watch;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// Whether nodes are stored, where that is not left to the rules.
pub(crate) type Choices = FxHashMap<NodeId, bool>;

/// A node that may be stored or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) node: NodeId,
    /// What was decided.
    pub(crate) stored: bool,
    /// Whether its value is needed more than once, or it reduces. Storing anything else costs
    /// transfers and saves nothing.
    pub(crate) matters: bool,
    /// What moving all of it costs.
    pub(crate) weight: f64,
    /// Equal for nodes that do the same to values of the same shape for as many users, as those of
    /// equal layers.
    pub(crate) class: u64,
}

/// Graphs of so many nodes are searched completely.
pub(crate) const COMPLETE: usize = 12;
/// Nodes looked at in the search of a larger graph, in all its partitions together.
pub(super) const VISITS: usize = 1 << 12;
/// Part of the cost that a change must leave at most: smaller gains are within what the count does
/// not see.
const WORTHWHILE: f64 = 0.99;
/// Most decisions changed in such a graph.
const MAX_TRIED: usize = 24;

/// The cheapest partition found, from that of the rules on. `attempt` makes others.
pub(super) fn cheapest(
    nodes: usize,
    rules: Partition,
    attempt: &mut dyn FnMut(&Choices) -> Partition,
) -> Partition {
    if !rules.open.iter().any(|open| open.matters) {
        return rules;
    }
    let before = rules.cost;
    let best = if nodes <= COMPLETE {
        all(rules, |open| open.matters, attempt)
    } else {
        some(nodes, rules, attempt)
    };
    if best.cost < before {
        let (now, kernels) = (best.cost, best.groups.len());
        log::debug!(
            target: "zyx::schedule",
            "{nodes} nodes: {kernels} kernels cost {now:.3e} instead of {before:.3e}"
        );
    }
    best
}

/// Equal for graphs of one structure whose searches begin alike: at sizes that are about the same, with the same
/// decisions by the rules.
pub(super) fn about(graph: &Graph, rules: &Partition) -> u64 {
    let mut hash = FxHasher::default();
    let size = |id: NodeId| cost::about(graph.shape(id).numel()).to_bits();
    graph.ids().for_each(|id| size(id).hash(&mut hash));
    let decided = |open: &Open| (open.node, open.stored, open.matters).hash(&mut hash);
    rules.open.iter().for_each(decided);
    hash.finish()
}

/// What a partition decided.
pub(super) fn decided(partition: &Partition) -> Choices {
    partition.open.iter().map(|open| (open.node, open.stored)).collect()
}

/// What has to be chosen for a partition that was found, if it is not what the `rules` decide.
pub(super) fn changes(rules: Choices, found: &Partition) -> Choices {
    let chosen = decided(found);
    if chosen == rules { Choices::default() } else { chosen }
}

/// The cheapest of all combinations of decisions about nodes that count.
pub(super) fn all(
    rules: Partition,
    counts: impl Fn(&Open) -> bool,
    attempt: &mut dyn FnMut(&Choices) -> Partition,
) -> Partition {
    let mut stack = vec![(Choices::default(), rules.open.clone())];
    let mut best = rules;
    let watch = Watch::here();
    while let Some((mut choices, list)) = stack.pop().filter(|_| !watch.is_stopped()) {
        let undecided = |open: &&Open| counts(open) && !choices.contains_key(&open.node);
        let Some(&open) = list.iter().find(undecided) else { continue };
        let mut other = choices.clone();
        other.insert(open.node, !open.stored);
        let partition = attempt(&other);
        stack.push((other, partition.open.clone()));
        // Left as it is, the partition is the one that gave the list.
        choices.insert(open.node, open.stored);
        stack.push((choices, list));
        if partition.cost < best.cost {
            best = partition;
        }
    }
    best
}

/// The cheapest on a way of changes, each of all nodes of a kind.
fn some(
    nodes: usize,
    rules: Partition,
    attempt: &mut dyn FnMut(&Choices) -> Partition,
) -> Partition {
    let mut left = (VISITS / nodes).min(MAX_TRIED);
    let mut choices = Choices::default();
    let mut list: Vec<Open> = rules.open.iter().copied().filter(|open| open.matters).collect();
    let key = |open: &Open| (open.class, open.stored);
    list.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(key(a).cmp(&key(b))));
    let mut best = rules;
    let watch = Watch::here();
    for kind in list.chunk_by(|a, b| key(a) == key(b)) {
        if left == 0 || watch.is_stopped() {
            break;
        }
        left -= 1;
        let mut changed = choices.clone();
        changed.extend(kind.iter().map(|open| (open.node, !open.stored)));
        let partition = attempt(&changed);
        if partition.cost < WORTHWHILE * best.cost {
            (best, choices) = (partition, changed);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::item::storage;
    use super::super::partition::partition_by;
    use super::*;
    use crate::graph::{Node, capture};
    use crate::runtime::{Device, Runtime};
    use crate::tensor::Tensor;
    use zyx_ir::testing::Rng;

    /// A random computation of so many steps on matrices, with rows and columns reduced and
    /// broadcast again; one or two results.
    fn random(rng: &mut Rng, steps: usize, device: &Device) -> Graph {
        let dims = [[4, 8], [64, 128], [128, 96], [300, 40]][rng.below(4)];
        random_of(rng, steps, dims, device)
    }

    fn random_of(rng: &mut Rng, steps: usize, dims: [usize; 2], device: &Device) -> Graph {
        let leaf = || {
            let data = vec![0.5f32; dims[0] * dims[1]];
            Tensor::from_slice(&data, dims, device).unwrap()
        };
        let mut pool = vec![leaf(), leaf()];
        for _ in 0..steps {
            let pick = |rng: &mut Rng| {
                // Mostly recent ones, so that what is made is used.
                let n = pool.len();
                pool[n - 1 - rng.below(n).min(rng.below(n))].clone()
            };
            let (a, b) = (pick(rng), pick(rng));
            let next = match rng.below(9) {
                0 => a.exp(),
                1 => a.tanh(),
                2 => (&a + &b).sqrt(),
                3 => &a * &b,
                4 => a.sum_keepdim(-1).unwrap() * &b,
                5 => &a - a.max_keepdim(-1).unwrap(),
                6 => a.sum_keepdim(0).unwrap().exp() + &b,
                7 => a.flip(0).unwrap() + &b,
                _ => a.pad([(1, 0), (0, 0)]).unwrap().shrink([(0, dims[0]), (0, dims[1])]).unwrap(),
            };
            pool.push(next);
        }
        let last = pool.len() - 1;
        let mut results = vec![&pool[last]];
        if rng.below(2) == 0 && pool[last - 1].shape() == pool[last].shape() {
            results.push(&pool[last - 1]);
        }
        capture(&results, 0).0
    }

    fn attempt(graph: &Graph, device: &Device, choices: &Choices) -> Partition {
        let outputs = graph.outputs.iter().map(|&output| storage(graph, output));
        let leaf = |id: &NodeId| matches!(graph.node(*id), Node::Leaf { .. });
        let roots: Vec<NodeId> = outputs.filter(|id| !leaf(id)).collect();
        partition_by(graph, &roots, &|_| true, device.caps(), choices)
    }

    /// The least cost of all partitions there are, by trying both decisions for every node.
    fn least(graph: &Graph, device: &Device, choices: &Choices, count: &mut usize) -> f64 {
        let partition = attempt(graph, device, choices);
        *count += 1;
        let open = partition.open.iter().find(|open| !choices.contains_key(&open.node));
        let Some(open) = open.copied() else { return partition.cost };
        let with = |stored, count: &mut usize| {
            let mut choices = choices.clone();
            choices.insert(open.node, stored);
            least(graph, device, &choices, count)
        };
        with(false, count).min(with(true, count))
    }

    #[test]
    fn small_graphs_get_the_cheapest_partition_there_is() {
        let device = Runtime::default().device("reference").unwrap();
        let (mut graphs, mut tried, mut gains) = (0, 0, 0);
        for seed in 0..400 {
            let mut rng = Rng(seed);
            let steps = 2 + rng.below(5);
            let graph = random(&mut rng, steps, &device);
            if graph.len() > COMPLETE {
                continue;
            }
            graphs += 1;
            let rules = attempt(&graph, &device, &Choices::default()).cost;
            let mut by = |choices: &Choices| attempt(&graph, &device, choices);
            let found = cheapest(graph.len(), by(&Choices::default()), &mut by).cost;
            let least = least(&graph, &device, &Choices::default(), &mut tried);
            gains += usize::from(found < rules);
            assert!(found <= least * (1.0 + 1e-9), "seed {seed}: {found}, not {least}\n{graph:?}");
        }
        println!("{graphs} graphs, {tried} partitions, {gains} cheaper than by the rules");
        assert!(graphs > 100 && tried > 1000, "{graphs} {tried}");
    }

    /// Plans of sizes that are about the same share what a search chose.
    #[test]
    fn sizes_that_are_about_the_same_choose_alike() {
        let device = Runtime::default().device("reference").unwrap();
        let [mut same, mut changed, mut differ] = [0; 3];
        for seed in 0..300 {
            let search = |rows: usize| {
                let mut rng = Rng(seed);
                let steps = 3 + rng.below(40);
                let graph = random_of(&mut rng, steps, [rows, 128], &device);
                let mut by = |choices: &Choices| attempt(&graph, &device, choices);
                let rules = by(&Choices::default());
                let start = about(&graph, &rules);
                let found = cheapest(graph.len(), by(&Choices::default()), &mut by);
                let decided = changes(decided(&rules), &found);
                let again = if decided.is_empty() { rules } else { by(&decided) };
                let stored = |p: &Partition| p.producer.iter().map(Option::is_some).collect();
                let [again, found]: [Vec<bool>; 2] = [&again, &found].map(stored);
                assert_eq!(again, found, "seed {seed}: the same by what was decided");
                (start, found, decided.len())
            };
            let (one, other) = (search(257), search(319));
            if one.0 == other.0 {
                same += 1;
                changed += usize::from(one.2 > 0);
                differ += usize::from(one.1 != other.1);
            }
        }
        println!(
            "of 300 graphs {same} begin alike, {changed} of them are changed, {differ} end otherwise"
        );
        // On the way the rules may decide otherwise about what costs about as much either way.
        assert!(same > 80 && changed > 10 && 20 * differ < same, "{same} {changed} {differ}");
    }

    #[test]
    fn larger_graphs_are_never_worse_than_by_the_rules() {
        let device = Runtime::default().device("reference").unwrap();
        let mut gains = 0;
        for seed in 0..200 {
            let mut rng = Rng(seed);
            let steps = 8 + rng.below(40);
            let graph = random(&mut rng, steps, &device);
            let rules = attempt(&graph, &device, &Choices::default()).cost;
            let mut attempts = 0;
            let mut by = |choices: &Choices| {
                attempts += 1;
                attempt(&graph, &device, choices)
            };
            let found = cheapest(graph.len(), by(&Choices::default()), &mut by);
            let most = if graph.len() <= COMPLETE { 1 << COMPLETE } else { MAX_TRIED + 1 };
            assert!(attempts <= most);
            assert!(found.cost <= rules, "seed {seed}: {} after {rules}", found.cost);
            gains += usize::from(found.cost < rules);
        }
        println!("{gains} of 200 cheaper than by the rules");
        // The search keeps what it starts from; only what it finds shows that it searches.
        assert!(gains > 40, "only {gains} of 200 are cheaper than by the rules");
    }
}
