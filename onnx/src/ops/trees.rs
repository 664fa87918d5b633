//! Ensembles of decision trees.
//!
//! All trees are one table of nodes, of which a leaf leads to itself. Each example walks all trees at once, one level
//! at a time: so an ensemble is a graph of tensors like any other operator, whose size is the depth of its trees.

use super::classical::{Labels, rows, transformed};
use super::one;
use crate::attribute::Attribute;
use crate::budget::Budget;
use crate::run::Call;
use crate::value::Value;
use std::collections::HashMap;
use zyx_core::{DType, Result, Tensor};

type Values = Result<Vec<Value>>;

/// How a feature `x` is compared with a split.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Le,
    Lt,
    Ge,
    Gt,
    Eq,
    Ne,
}

const MODES: [(&str, Mode); 6] = [
    ("BRANCH_LEQ", Mode::Le),
    ("BRANCH_LT", Mode::Lt),
    ("BRANCH_GTE", Mode::Ge),
    ("BRANCH_GT", Mode::Gt),
    ("BRANCH_EQ", Mode::Eq),
    ("BRANCH_NEQ", Mode::Ne),
];

#[derive(Clone, Debug)]
struct Node {
    feature: i64,
    mode: Mode,
    split: f64,
    /// Where to go if the comparison holds, and if not: to itself from a leaf.
    next: [usize; 2],
    /// Whether a feature that is missing, a NaN, goes the first way.
    missing: bool,
    /// What a leaf adds to targets.
    votes: Vec<(i64, f64)>,
}

impl Node {
    fn leaf(at: usize, votes: Vec<(i64, f64)>) -> Node {
        Node { feature: 0, mode: Mode::Le, split: 0.0, next: [at, at], missing: false, votes }
    }
}

#[derive(Debug)]
struct Trees {
    nodes: Vec<Node>,
    roots: Vec<usize>,
}

/// How the votes for a target become one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aggregate {
    Average,
    Sum,
    Min,
    Max,
}

const AGGREGATES: [(&str, Aggregate); 4] = [
    ("AVERAGE", Aggregate::Average),
    ("SUM", Aggregate::Sum),
    ("MIN", Aggregate::Min),
    ("MAX", Aggregate::Max),
];

const TRANSFORMS: [&str; 5] = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"];

impl Trees {
    /// The targets' values `[examples, targets]` for features `[examples, features]`, in `f64` if the features are. What
    /// `base_values` says is added; the least and the largest of no votes are zero.
    fn run(&self, call: &Call<'_>, x: &Tensor, targets: usize, how: Aggregate) -> Result<Tensor> {
        let device = call.device();
        let dtype = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let (examples, width) = (x.shape()[0], x.shape()[1]);
        let depth = self.depth(call)?;
        call.budget().trace(depth.saturating_mul(16))?;
        let is_inner = |node: &&Node| node.votes.is_empty();
        let widest = self.nodes.iter().filter(is_inner).map(|node| node.feature).max();
        if widest.is_some_and(|feature| feature >= width as i64) && depth > 0 {
            let reason = format!("it compares feature {}, of {width}", widest.unwrap_or(0));
            return Err(call.error(reason));
        }
        let ints = |of: &dyn Fn(&Node) -> i64| -> Result<Tensor> {
            let all: Vec<i64> = self.nodes.iter().map(of).collect();
            Tensor::from_slice(&all, [all.len()], device)
        };
        let floats = |all: &[f64]| -> Result<Tensor> {
            Ok(Tensor::from_slice(all, [all.len()], device)?.cast(dtype))
        };
        let feature = ints(&|node| node.feature)?;
        let ways = [ints(&|node| node.next[0] as i64)?, ints(&|node| node.next[1] as i64)?];
        let missing = ints(&|node| i64::from(node.missing))?;
        let mode = ints(&|node| node.mode as i64)?;
        let splits: Vec<f64> = self.nodes.iter().map(|node| node.split).collect();
        let split = floats(&splits)?;
        let used = MODES.iter().map(|row| row.1);
        let used: Vec<Mode> = used
            .filter(|mode| self.nodes.iter().any(|n| n.votes.is_empty() && n.mode == *mode))
            .collect();
        let x = x.cast(dtype);
        let roots: Vec<i64> = self.roots.iter().map(|&root| root as i64).collect();
        let trees = roots.len();
        let mut at =
            Tensor::from_slice(&roots, [1, trees], device)?.broadcast_to([examples, trees])?;
        for _ in 0..depth {
            let x = x.gather(1, &feature.take(&at)?.unchecked_indices())?;
            let s = split.take(&at)?;
            let mut holds: Option<Tensor> = None;
            for &kind in &used {
                let compared = match kind {
                    Mode::Le => x.le(&s)?,
                    Mode::Lt => x.lt(&s)?,
                    Mode::Ge => x.ge(&s)?,
                    Mode::Gt => x.gt(&s)?,
                    Mode::Eq => x.eq(&s)?,
                    Mode::Ne => x.ne(&s)?,
                };
                holds = Some(match holds {
                    None => compared,
                    Some(holds) => mode.take(&at)?.eq(kind as i64)?.where_(&compared, &holds)?,
                });
            }
            let Some(mut holds) = holds else { break };
            if self.nodes.iter().any(|node| node.missing) {
                let follows = missing.take(&at)?.ne(0)?;
                holds = holds.logical_or(&x.is_nan().logical_and(&follows)?)?;
            }
            // Kept, as the next level asks for it several times.
            at = holds.where_(&ways[0].take(&at)?, &ways[1].take(&at)?)?.contiguous();
            at = at.unchecked_indices();
        }
        let most = self.nodes.iter().map(|node| node.votes.len()).max().unwrap_or(0).max(1);
        let vote = |node: &Node, k: usize| node.votes.get(k).copied().unwrap_or((-1, 0.0));
        call.budget()
            .ask_for(most.saturating_mul(self.nodes.len()), 4 * size_of::<(i64, f64)>())?;
        let votes: Vec<(i64, f64)> =
            self.nodes.iter().flat_map(|node| (0..most).map(|k| vote(node, k))).collect();
        let (to, weights): (Vec<i64>, Vec<f64>) = votes.into_iter().unzip();
        let (to, weights) = (Tensor::from_slice(&to, [to.len()], device)?, floats(&weights)?);
        let at = at.unsqueeze(2)?.mul(most as i64)?;
        let at = at.add(Tensor::iota(most, DType::I64, device))?;
        let at = at.reshape([examples, trees * most, 1])?.unchecked_indices();
        let hit = to.take(&at)?.eq(Tensor::iota(targets, DType::I64, device))?;
        let weights = weights.take(&at)?;
        let picked = |fill: f64| hit.where_(&weights, fill);
        let votes = match how {
            Aggregate::Sum => picked(0.0)?.sum(1)?,
            Aggregate::Average => picked(0.0)?.sum(1)?.div(trees as f64)?,
            Aggregate::Min => picked(f64::INFINITY)?.min(1)?,
            Aggregate::Max => picked(f64::NEG_INFINITY)?.max(1)?,
        };
        let votes = match how {
            Aggregate::Sum | Aggregate::Average => votes,
            Aggregate::Min | Aggregate::Max => hit.any(1)?.where_(&votes, 0.0)?,
        };
        match self::floats(call, "base_values")? {
            Some(base) => votes.add(floats(&base)?),
            None => Ok(votes),
        }
    }

    /// The most comparisons on a way from a root to a leaf.
    fn depth(&self, call: &Call<'_>) -> Result<usize> {
        let mut level = self.roots.clone();
        for depth in 0..=self.nodes.len() {
            Budget::check_interrupt()?;
            let mut below: Vec<usize> = level
                .iter()
                .flat_map(|&at| self.nodes[at].next.into_iter().filter(move |&next| next != at))
                .collect();
            below.sort_unstable();
            below.dedup();
            if below.is_empty() {
                return Ok(depth);
            }
            level = below;
        }
        Err(call.error("a node of a tree is below itself"))
    }

    /// Checked: each node leads to nodes.
    fn new(call: &Call<'_>, nodes: Vec<Node>, roots: Vec<usize>) -> Result<Trees> {
        let n = nodes.len();
        let places = nodes.iter().flat_map(|node| node.next).chain(roots.iter().copied());
        if let Some(at) = places.into_iter().find(|&at| at >= n) {
            return Err(call.error(format!("a tree leads to node {at}, of {n}")));
        }
        match nodes.iter().find(|node| node.feature < 0) {
            Some(node) => Err(call.error(format!("it compares feature {}", node.feature))),
            None => Ok(Trees { nodes, roots }),
        }
    }
}

/// Numbers of an attribute that is a list of floats, or of another that is a tensor.
fn floats(call: &Call<'_>, name: &str) -> Result<Option<Vec<f64>>> {
    for name in [name.to_owned(), format!("{name}_as_tensor")] {
        match call.attribute(&name) {
            None => {}
            Some(Attribute::Floats(all)) if all.is_empty() => {}
            Some(Attribute::Floats(all)) => {
                return Ok(Some(all.iter().map(|&x| f64::from(x)).collect()));
            }
            Some(Attribute::Tensor(value)) => return Ok(Some(call.read(value)?.floats())),
            Some(other) => {
                return Err(call.error(format!("attribute `{name}` is {}", other.kind())));
            }
        }
    }
    Ok(None)
}

/// A list of an attribute with as many entries as there are nodes.
fn listed(call: &Call<'_>, name: &str, n: usize) -> Result<Vec<i64>> {
    let all = call.ints_attribute(name)?.unwrap_or_default();
    match all.len() == n {
        true => Ok(all),
        false => Err(call.error(format!("`{name}` has {} entries, not {n}", all.len()))),
    }
}

fn row<T: Copy>(call: &Call<'_>, rows: &[(&str, T)], name: &str) -> Result<T> {
    let found = rows.iter().find(|row| row.0 == name);
    found.map(|row| row.1).ok_or_else(|| call.error(format!("`{name}` is not supported")))
}

/// Trees as of version 1 of the operators: nodes by tree and number, leaves among them. `votes` begins the names of the
/// attributes with the leaves' votes.
fn numbered(call: &Call<'_>, votes: &str) -> Result<Trees> {
    let modes = call.strings_attribute("nodes_modes")?.unwrap_or_default();
    let n = modes.len();
    let (trees, ids) = (listed(call, "nodes_treeids", n)?, listed(call, "nodes_nodeids", n)?);
    let features = listed(call, "nodes_featureids", n)?;
    let yes = listed(call, "nodes_truenodeids", n)?;
    let no = listed(call, "nodes_falsenodeids", n)?;
    let splits = floats(call, "nodes_values")?.unwrap_or_default();
    let missing = call.ints_attribute("nodes_missing_value_tracks_true")?.unwrap_or_default();
    if splits.len() != n || ![0, n].contains(&missing.len()) {
        let (splits, missing) = (splits.len(), missing.len());
        return Err(call.error(format!("{n} nodes have {splits} splits and {missing} flags")));
    }
    let places: HashMap<(i64, i64), usize> =
        trees.iter().copied().zip(ids.iter().copied()).zip(0..).collect();
    let place = |tree: i64, id: i64| {
        let missing = || call.error(format!("tree {tree} has no node {id}"));
        places.get(&(tree, id)).copied().ok_or_else(missing)
    };
    let mut nodes = Vec::with_capacity(n);
    let mut is_below = vec![false; n];
    for at in 0..n {
        if modes[at] == "LEAF" {
            nodes.push(Node::leaf(at, Vec::new()));
            continue;
        }
        let next = [place(trees[at], yes[at])?, place(trees[at], no[at])?];
        next.iter().for_each(|&next| is_below[next] = true);
        nodes.push(Node {
            feature: features[at],
            mode: row(call, &MODES, &modes[at])?,
            split: splits[at],
            next,
            missing: missing.get(at).is_some_and(|&flag| flag != 0),
            votes: Vec::new(),
        });
    }
    let weights = floats(call, &format!("{votes}_weights"))?.unwrap_or_default();
    let targets = listed(call, &format!("{votes}_ids"), weights.len())?;
    let of = listed(call, &format!("{votes}_treeids"), weights.len())?;
    let at = listed(call, &format!("{votes}_nodeids"), weights.len())?;
    for (i, weight) in weights.into_iter().enumerate() {
        let leaf = &mut nodes[place(of[i], at[i])?];
        let is_leaf = leaf.next[0] == leaf.next[1];
        if is_leaf {
            leaf.votes.push((targets[i], weight));
        }
    }
    // A leaf without votes is a leaf, too.
    let unvoted =
        nodes.iter_mut().enumerate().filter(|(at, n)| n.next == [*at; 2] && n.votes.is_empty());
    unvoted.for_each(|(_, node)| node.votes.push((-1, 0.0)));
    let roots = (0..n).filter(|&at| !is_below[at]).collect();
    Trees::new(call, nodes, roots)
}

/// Trees as of version 5: nodes and leaves apart, by position.
fn positioned(call: &Call<'_>) -> Result<Trees> {
    let tensor = |name: &str| match call.attribute(name) {
        Some(Attribute::Tensor(value)) => call.read(value).map(Some),
        _ => Ok(None),
    };
    let modes = tensor("nodes_modes")?.map(|modes| modes.ints()).unwrap_or_default();
    let splits = tensor("nodes_splits")?.map(|splits| splits.floats()).unwrap_or_default();
    let n = modes.len();
    let features = listed(call, "nodes_featureids", n)?;
    let ids = [listed(call, "nodes_truenodeids", n)?, listed(call, "nodes_falsenodeids", n)?];
    let leafs = [listed(call, "nodes_trueleafs", n)?, listed(call, "nodes_falseleafs", n)?];
    let missing = call.ints_attribute("nodes_missing_value_tracks_true")?.unwrap_or_default();
    let weights = tensor("leaf_weights")?.map(|weights| weights.floats()).unwrap_or_default();
    let targets = listed(call, "leaf_targetids", weights.len())?;
    if splits.len() != n || ![0, n].contains(&missing.len()) {
        let (splits, missing) = (splits.len(), missing.len());
        return Err(call.error(format!("{n} nodes have {splits} splits and {missing} flags")));
    }
    let members = tensor("membership_values")?.map(|members| members.floats()).unwrap_or_default();
    let mut members = members.split(|x| x.is_nan());
    let place = |way: usize, at: usize| {
        let is_leaf = leafs[way][at] != 0;
        let id = usize::try_from(ids[way][at]).unwrap_or(usize::MAX);
        let most = if is_leaf { weights.len() } else { n };
        match id < most {
            true => Ok(if is_leaf { n + id } else { id }),
            false => Err(call.error(format!("node {at} leads to {}, of {most}", ids[way][at]))),
        }
    };
    let mut nodes = Vec::with_capacity(n + weights.len());
    let mut chains = Vec::new();
    for at in 0..n {
        let (mode, set) = match usize::try_from(modes[at]).unwrap_or(usize::MAX) {
            6 => (Mode::Eq, Some(members.next().unwrap_or_default())),
            mode => {
                let unknown = || call.error(format!("mode {} of node {at}", modes[at]));
                (MODES.get(mode).ok_or_else(unknown)?.1, None)
            }
        };
        let next = [place(0, at)?, place(1, at)?];
        let missing = missing.get(at).is_some_and(|&flag| flag != 0);
        let mut node = Node {
            feature: features[at],
            mode,
            split: splits[at],
            next,
            missing,
            votes: Vec::new(),
        };
        if let Some(set) = set {
            node.split = set.first().copied().unwrap_or(f64::NAN);
            chains.push((at, set.get(1..).unwrap_or_default()));
        }
        nodes.push(node);
    }
    for (i, weight) in weights.iter().enumerate() {
        nodes.push(Node::leaf(n + i, vec![(targets[i], *weight)]));
    }
    // Whether a feature is in a set is asked of one member behind another.
    for (at, set) in chains {
        let mut before = at;
        for &member in set {
            let further = Node { split: member, ..nodes[before].clone() };
            nodes[before].next[1] = nodes.len();
            before = nodes.len();
            nodes.push(further);
        }
    }
    let roots = call.ints_attribute("tree_roots")?.unwrap_or_default();
    let roots = roots.iter().map(|&root| usize::try_from(root).unwrap_or(usize::MAX)).collect();
    Trees::new(call, nodes, roots)
}

pub(super) fn ensemble(call: &Call<'_>) -> Values {
    let x = rows(call)?;
    let targets = call.sizes(&[call.int_or("n_targets", 1)?])?[0];
    let numbered = |name: &str, default: i64| -> Result<usize> {
        Ok(usize::try_from(call.int_or(name, default)?).unwrap_or(usize::MAX))
    };
    let unknown = |name: &str| call.error(format!("`{name}` is not supported"));
    let how = AGGREGATES.get(numbered("aggregate_function", 1)?);
    let how = how.ok_or_else(|| unknown("aggregate_function"))?.1;
    let transform = TRANSFORMS.get(numbered("post_transform", 0)?);
    let transform = transform.ok_or_else(|| unknown("post_transform"))?;
    let y = positioned(call)?.run(call, &x, targets, how)?;
    one(transformed(call, &y, transform)?.cast(x.dtype()))
}

pub(super) fn regressor(call: &Call<'_>) -> Values {
    let x = rows(call)?;
    let targets = call.sizes(&[call.int_or("n_targets", 1)?])?[0];
    let how = row(call, &AGGREGATES, call.string_or("aggregate_function", "SUM")?)?;
    let y = numbered(call, "target")?.run(call, &x, targets, how)?;
    one(transformed(call, &y, call.string_or("post_transform", "NONE")?)?.cast(DType::F32))
}

pub(super) fn classifier(call: &Call<'_>) -> Values {
    let x = rows(call)?;
    let names = Labels::of(call, "classlabels_int64s")?;
    let classes = names.len();
    let ids = call.ints_attribute("class_ids")?.unwrap_or_default();
    let transform = call.string_or("post_transform", "NONE")?;
    if classes < 2 {
        return Err(call.error(format!("{classes} classes are not supported; there must be two")));
    }
    let trees = numbered(call, "class")?;
    let (y, labels) = if classes == 2 && ids.iter().all(|&id| id == 0) {
        // One score says which of two classes it is: a probability of the second, or a number of either sign.
        let score = trees.run(call, &x, 1, Aggregate::Sum)?;
        let weights = floats(call, "class_weights")?.unwrap_or_default();
        let is_probability = weights.iter().all(|&weight| weight >= 0.0);
        let is_second = score.gt(if is_probability { 0.5 } else { 0.0 })?;
        let other = |sum: f64| Tensor::cat(&[&score.neg().add(sum)?, &score], 1);
        let y = match transform {
            "NONE" => other(if is_probability { 1.0 } else { 0.0 })?,
            "LOGISTIC" => other(0.0)?.sigmoid(),
            _ => {
                let reason = format!("`post_transform` {transform} of one score is not supported");
                return Err(call.error(reason));
            }
        };
        (y, is_second.cast(DType::I64).flatten())
    } else {
        let y = trees.run(call, &x, classes, Aggregate::Sum)?;
        let labels = y.argmax(1)?;
        (transformed(call, &y, transform)?, labels)
    };
    Ok(vec![names.pick(call, &labels)?, y.cast(DType::F32).into()])
}
