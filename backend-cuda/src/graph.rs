//! CUDA graphs behind safe handles; see `driver` for what makes calls sound. Only reached where
//! `driver::has_graphs`.

use crate::driver::{Context, Function, Grid, Result, Stream, check, get};
use crate::sys::cuda;
use cudarc::driver::sys::{
    CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, CUDA_KERNEL_NODE_PARAMS, CUgraph,
    CUgraphDependencyType, CUgraphEdgeData, CUgraphExec, CUgraphNode, CUgraphNodeType,
    CUstreamCaptureMode,
};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

/// Commands and what each of them waits for.
#[derive(Debug)]
pub(crate) struct Graph {
    raw: CUgraph,
    context: Arc<Context>,
}

/// A command of a graph; laid out as the driver's own handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Node(CUgraphNode);

// SAFETY: graphs belong to the process; they are used by one thread at a time.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Send for Node {}

/// A launch as the driver takes it; `params` are pointers to the values of the parameters.
fn launch(function: Function, grid: Grid, params: &mut [*mut c_void]) -> CUDA_KERNEL_NODE_PARAMS {
    let ([gx, gy, gz], [lx, ly, lz]) = (grid.groups, grid.local);
    CUDA_KERNEL_NODE_PARAMS {
        func: function.raw,
        gridDimX: gx,
        gridDimY: gy,
        gridDimZ: gz,
        blockDimX: lx,
        blockDimY: ly,
        blockDimZ: lz,
        sharedMemBytes: function.shared,
        kernelParams: params.as_mut_ptr(),
        extra: ptr::null_mut(),
        kern: ptr::null_mut(),
        ctx: ptr::null_mut(),
    }
}

impl Graph {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Graph> {
        context.bind()?;
        // SAFETY: the place is for the result; there are no flags.
        let raw = get(|g| unsafe { cuda!(cuGraphCreate(g, 0)) })?;
        Ok(Graph { raw, context: Arc::clone(context) })
    }

    /// What `queue` queues on a stream, as a graph instead of being run.
    pub(crate) fn capture(
        stream: &Stream,
        queue: impl FnOnce() -> Result<(), String>,
    ) -> Result<Graph, String> {
        // Other threads may call the driver meanwhile.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: a valid handle of a stream that nobody else uses.
        check(unsafe { cuda!(cuStreamBeginCapture_v2(stream.raw, mode)) })
            .map_err(|code| code.to_string())?;
        let queued = queue();
        // SAFETY: a valid handle; the place is for the result.
        let raw = get(|g| unsafe { cuda!(cuStreamEndCapture(stream.raw, g)) });
        let raw = raw.map_err(|code| code.to_string())?;
        let graph = Graph { raw, context: Arc::clone(stream.context()) };
        queued.map(|()| graph)
    }

    /// Adds a launch after the nodes in `after`.
    ///
    /// # Safety
    /// As for `Stream::launch`; values of parameters are copied, memory has to stay as long as
    /// anything instantiated from the graph runs with these parameters.
    pub(crate) unsafe fn add_launch(
        &self,
        function: Function,
        grid: Grid,
        params: &mut [*mut c_void],
        after: &[Node],
    ) -> Result<Node> {
        let params = launch(function, grid, params);
        let deps = after.as_ptr().cast::<CUgraphNode>();
        // SAFETY: valid handles; a list of nodes is a list of handles.
        get(|n| unsafe { cuda!(cuGraphAddKernelNode_v2(n, self.raw, deps, after.len(), &params)) })
            .map(Node)
    }

    /// Lets a launch start when the groups of `before` are through: it waits in its first
    /// instruction for what they stored.
    ///
    /// # Safety
    /// Both are launches of this graph, and that of `after` waits for earlier launches before it
    /// touches memory.
    pub(crate) unsafe fn overlap(&self, before: Node, after: Node) -> Result {
        let edge = CUgraphEdgeData {
            from_port: CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC as u8,
            to_port: 0,
            type_: CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC as u8,
            reserved: [0; 5],
        };
        // SAFETY: valid handles of nodes; each list has one element.
        check(unsafe { cuda!(cuGraphAddDependencies_v2(self.raw, &before.0, &after.0, &edge, 1)) })
    }

    /// The kernels that it is one after the other; none if it is anything else.
    fn kernels(&self) -> Result<Option<Vec<CUgraphNode>>> {
        let (mut n, mut edges) = (0, 0);
        let none = ptr::null_mut;
        // SAFETY: a valid handle; places for counts.
        check(unsafe { cuda!(cuGraphGetNodes(self.raw, none(), &mut n)) })?;
        // SAFETY: as above.
        let counted =
            check(unsafe { cuda!(cuGraphGetEdges(self.raw, none(), none(), &mut edges)) });
        let mut nodes: Vec<CUgraphNode> = vec![ptr::null_mut(); n];
        // SAFETY: a valid handle; room for the nodes there are.
        check(unsafe { cuda!(cuGraphGetNodes(self.raw, nodes.as_mut_ptr(), &mut n)) })?;
        for &node in &nodes {
            // SAFETY: a node of this graph; a type that is not listed is only compared as a number.
            let kind = get(|k: *mut u32| unsafe { cuda!(cuGraphNodeGetType(node, k.cast())) })?;
            if kind != CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL as u32 {
                return Ok(None);
            }
        }
        // An edge that is more than an order is an error here.
        if n == 0 || edges + 1 != n || counted.is_err() {
            return Ok(None);
        }
        let (mut from, mut to) = (vec![ptr::null_mut(); edges], vec![ptr::null_mut(); edges]);
        let (first, second) = (from.as_mut_ptr(), to.as_mut_ptr());
        // SAFETY: a valid handle; room for the edges there are.
        if check(unsafe { cuda!(cuGraphGetEdges(self.raw, first, second, &mut edges)) }).is_err() {
            return Ok(None);
        }
        let mut order: Vec<CUgraphNode> =
            nodes.iter().copied().filter(|node| !to.contains(node)).collect();
        while let Some(last) = order.last()
            && let Some(edge) = from.iter().position(|node| node == last)
            && order.len() < n
        {
            order.push(to[edge]);
        }
        Ok((order.len() == n).then_some(order))
    }

    /// Adds the kernels of another graph after the nodes in `after`; none if it is more than kernels one
    /// after the other. They take less of the host at each launch than a graph within a graph.
    pub(crate) fn add_kernels(&self, graph: &Graph, after: &[Node]) -> Result<Option<Vec<Node>>> {
        let Some(kernels) = graph.kernels()? else { return Ok(None) };
        let mut nodes: Vec<Node> = Vec::with_capacity(kernels.len());
        for kernel in kernels {
            let params = parameters(kernel)?;
            let after = nodes.last().map_or(after, std::slice::from_ref);
            let deps = after.as_ptr().cast::<CUgraphNode>();
            // SAFETY: valid handles; see `add_launch` for the list. The driver wrote the parameters, which lie
            // in `graph` and are copied.
            let node = get(|n| unsafe {
                cuda!(cuGraphAddKernelNode_v2(n, self.raw, deps, after.len(), params.as_ptr()))
            })?;
            // SAFETY: both are kernels.
            check(unsafe { cuda!(cuGraphKernelNodeCopyAttributes(node, kernel)) })?;
            nodes.push(Node(node));
        }
        Ok(Some(nodes))
    }

    /// Adds a copy of another graph after the nodes in `after`.
    pub(crate) fn add_graph(&self, graph: &Graph, after: &[Node]) -> Result<Node> {
        let deps = after.as_ptr().cast::<CUgraphNode>();
        // SAFETY: valid handles; see `add_launch` for the list.
        get(|n| unsafe {
            cuda!(cuGraphAddChildGraphNode(n, self.raw, deps, after.len(), graph.raw))
        })
        .map(Node)
    }

    /// The graph in a form that can be launched. Its nodes stay those of this graph.
    pub(crate) fn instantiate(&self) -> Result<Executable> {
        // SAFETY: a valid handle; the place is for the result.
        let raw = get(|e| unsafe { cuda!(cuGraphInstantiateWithFlags(e, self.raw, 0)) })?;
        Ok(Executable { raw, context: Arc::clone(&self.context) })
    }
}

/// What a kernel of a graph is launched with, which lies in that graph.
fn parameters(kernel: CUgraphNode) -> Result<MaybeUninit<CUDA_KERNEL_NODE_PARAMS>> {
    let mut params = MaybeUninit::zeroed();
    // SAFETY: a kernel; the place is for the result.
    check(unsafe { cuda!(cuGraphKernelNodeGetParams_v2(kernel, params.as_mut_ptr())) })?;
    Ok(params)
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: a valid handle, released once; executables are independent of it.
            let _ = unsafe { cuda!(cuGraphDestroy(self.raw)) };
        }
    }
}

/// A graph that can be launched. Changing it leaves launches under way as they are.
#[derive(Debug)]
pub(crate) struct Executable {
    raw: CUgraphExec,
    context: Arc<Context>,
}

// SAFETY: as for graphs.
unsafe impl Send for Executable {}

impl Executable {
    /// Changes a launch.
    ///
    /// # Safety
    /// As for `Graph::add_launch`; the node is one of the graph this was instantiated from.
    pub(crate) unsafe fn set_launch(
        &self,
        node: Node,
        function: Function,
        grid: Grid,
        params: &mut [*mut c_void],
    ) -> Result {
        let params = launch(function, grid, params);
        // SAFETY: valid handles; the rest is the caller's promise.
        check(unsafe { cuda!(cuGraphExecKernelNodeSetParams_v2(self.raw, node.0, &params)) })
    }

    /// Changes kernels to those of another graph; `false` if it has others.
    ///
    /// # Safety
    /// The nodes were added as the kernels of a graph of the same call to the graph this was instantiated
    /// from.
    pub(crate) unsafe fn set_kernels(&self, nodes: &[Node], graph: &Graph) -> Result<bool> {
        let kernels = graph.kernels()?.unwrap_or_default();
        if kernels.len() != nodes.len() {
            return Ok(false);
        }
        for (node, kernel) in nodes.iter().zip(kernels) {
            let params = parameters(kernel)?;
            // SAFETY: valid handles; the driver wrote the parameters and copies them.
            check(unsafe {
                cuda!(cuGraphExecKernelNodeSetParams_v2(self.raw, node.0, params.as_ptr()))
            })?;
        }
        Ok(true)
    }

    /// Changes a graph within to one of the same nodes with other parameters.
    ///
    /// # Safety
    /// The node is one of the graph this was instantiated from.
    pub(crate) unsafe fn set_graph(&self, node: Node, graph: &Graph) -> Result {
        // SAFETY: valid handles; the rest is the caller's promise.
        check(unsafe { cuda!(cuGraphExecChildGraphNodeSetParams(self.raw, node.0, graph.raw)) })
    }

    /// Queues the whole.
    pub(crate) fn launch(&self, stream: &Stream) -> Result {
        stream.traffic.submitted();
        // SAFETY: valid handles. What kernels need is what adding them promised.
        check(unsafe { cuda!(cuGraphLaunch(self.raw, stream.raw)) })
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: a valid handle, released once; the driver frees it when it is not running.
            let _ = unsafe { cuda!(cuGraphExecDestroy(self.raw)) };
        }
    }
}
