use zyx::DType::{I32, I64};
use zyx::kernel::{BinaryOp::Max, BinaryOp::Min, Kernel, Lang, Val};
use zyx::{Result, Tensor};

/// The distance of a node that no path leads to.
pub const FAR: i32 = i32::MAX;

/// Groups that take nodes from the queue: as many as a large GPU runs at a time, or a CPU has cores.
const GROUPS: usize = 1024;
const FEW_GROUPS: usize = 8;

/// Shortens distances along edges until the queue is empty; tells whether it shortened one.
pub fn shorten() -> Kernel {
    Kernel::new("bfs", |k: &Lang| {
        let [nodes, edges] = k.sizes(["nodes", "edges"]);
        let (starts, targets) = (k.input("starts", [nodes + 1]), k.input("targets", [edges]));
        let distances = k.output_from("distances", &k.input("before", [nodes]));
        let shortened = k.output_filled("shortened", [1], I32, 0);
        let queue = k.queue("queue", nodes * 2);
        let groups = if k.caps().has_few_threads() { FEW_GROUPS } else { GROUPS };
        let follow = |edge: Val, distance: Val| {
            let target = targets.at(edge);
            k.when(distances.at_atomic(target).gt(distance), || {
                k.when(distances.fetch(Min, target, distance).gt(distance), || {
                    shortened.atomic(Max, 0, 1);
                    queue.push(target);
                });
            });
        };
        k.groups([groups], 64, |g, [group]| {
            let part = nodes.div_ceil(groups);
            g.each(part, |i| {
                let node = group * part + i;
                k.when(node.lt(nodes), || {
                    let distance = distances.at_atomic(node);
                    k.when(distance.lt(FAR), || {
                        let edges = starts.at(node)..starts.at(node + 1);
                        k.for_each(edges, |edge| follow(edge, distance + 1));
                    });
                });
            });
            queue.drain(g, |node| {
                // It changes nothing, but gets the distance that the node was pushed with, or a shorter one.
                let distance = distances.fetch(Min, node, FAR);
                let [first, end] = [node, node + 1].map(|at| starts.at(at).cast(I64));
                g.each(end - first, |i| follow(first + i, distance + 1));
            });
        });
    })
}

/// Distances in edges from a node to each, by breadth-first search in a graph in CSR form: the edges of node `i` lead to `targets` from
/// `starts[i]` to `starts[i + 1]`, all `i32`.
///
/// Groups take nodes from a queue. A node may be taken too early, and is pushed again when its distance shrinks; nodes for which
/// the queue has no room are found by the next launch, which looks at all edges. The last launch finds that no edge shortens
/// a distance, so distances are exact, in whatever order groups ran.
pub fn bfs(starts: &Tensor, targets: &Tensor, source: usize) -> Result<Tensor> {
    let (kernel, nodes) = (shorten(), starts.numel() - 1);
    let distances: Vec<i32> = (0..nodes).map(|i| if i == source { 0 } else { FAR }).collect();
    let mut distances = Tensor::from_slice(&distances, [nodes], starts.device())?;
    loop {
        let [after, shortened] = &kernel.call_all(&[starts, targets, &distances])?[..] else {
            unreachable!("the kernel has two outputs")
        };
        distances = after.clone();
        if shortened.item::<i32>()? == 0 {
            return Ok(distances);
        }
    }
}
