//! `zyx.lang.LookBack` and `Queue`: how groups use each other's results without waiting for one another.

use super::body::{Kind, PyBody};
use super::group::PyGroup;
use super::recording::{Recording, Step};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use zyx::DType;
use zyx::kernel::{LookBack, LookBackHandle, Queue, QueueHandle};

type Any<'a, 'py> = &'a Bound<'py, PyAny>;
type Object = PyResult<Py<PyAny>>;

/// Combinations of tiles that groups publish for one another; see `Lang.look_back`.
///
/// A scan in one launch:
///
///     @zyx.kernel
///     def running_sum(k):
///         n = k.size("n")
///         x = k.input("x", [n])
///         y = k.output("y", [n], x.dtype)
///         sums = k.look_back("sums", "add", x.dtype, n.div_ceil(1024))
///
///         @k.groups([n.div_ceil(1024)])
///         def _(g, _):
///             tile = sums.ticket(g)
///
///             def total(tile):
///                 return g.reduce("add", 1024, lambda i: x.at_or(tile * 1024 + i, 0))
///
///             before = sums.prefix(g, tile, total(tile), total)
///
///             def emit(i, _, sum):
///                 y.set_if(tile * 1024 + i < n, tile * 1024 + i, before + sum)
///
///             g.scan("add", 1024, x.dtype, lambda i: x.at_or(tile * 1024 + i, 0), emit)
///
///     assert running_sum(zyx.ones(5000))[-1].item() == 5000
#[pyclass(name = "LookBack", module = "zyx.lang", frozen)]
#[derive(Debug)]
pub(crate) struct PyLookBack {
    recording: Recording,
    handle: LookBackHandle,
}

/// A queue of work that groups share, none of which waits for another; see `Lang.queue`.
///
/// The nodes that paths from node 0 lead to:
///
///     @zyx.kernel
///     def reached(k):
///         n = k.size("n")
///         children = k.input("children", [n, 2])
///         visits = k.output_filled("visits", [n], "int32")
///         queue = k.queue("queue", n)
///
///         @k.groups([4], threads=32)
///         def _(g, group):
///             k.when(group == 0)(lambda: queue.push(0))
///
///             @queue.drain(g)
///             def _(node):
///                 visits.atomic("add", node, 1)
///
///                 @g.each(2)
///                 def _(i):
///                     child = children[node, i]
///                     k.when(child >= 0)(lambda: queue.push(child))
///
///     tree = zyx.tensor([[2, 3], [-1, -1], [-1, -1], [4, -1], [-1, -1]])
///     assert reached(tree).tolist() == [1, 0, 1, 1, 1]
#[pyclass(name = "Queue", module = "zyx.lang", frozen)]
#[derive(Clone, Debug)]
pub(crate) struct PyQueue {
    recording: Recording,
    handle: QueueHandle,
}

impl PyLookBack {
    pub(super) fn give(step: &Step<'_, '_>, sums: &LookBack<'_>) -> Object {
        PyLookBack { recording: step.recording, handle: sums.handle() }.into_py_any(step.py)
    }
}

#[pymethods]
impl PyLookBack {
    /// The number of the tile that the group works on, `int64`. Tickets are given in order: the groups of all tiles before it have
    /// started.
    fn ticket(&self, py: Python<'_>, group: &PyGroup) -> Object {
        self.recording.record(py, &mut |step| {
            step.object(step.k.look_back_of(&self.handle).ticket(group.in_step(step)?))
        })
    }

    /// Publishes the combination of a tile, and gives that of all tiles before it. `recompute(tile)` gives the combination of
    /// another tile, which its group did not publish in time. All of them are of the dtype of `Lang.look_back`.
    fn prefix(
        &self,
        group: &PyGroup,
        tile: Any<'_, '_>,
        sum: Any<'_, '_>,
        recompute: Any<'_, '_>,
    ) -> Object {
        self.recording.record(tile.py(), &mut |step| {
            let (group, sums) = (group.in_step(step)?, step.k.look_back_of(&self.handle));
            let (tile, sum) = (step.value(tile, Some(DType::I64))?, step.value(sum, None)?);
            let recompute = |tile| step.found(recompute, &[tile], Some(sum.dtype()));
            step.object(sums.prefix(group, tile, sum, recompute))
        })
    }
}

impl PyQueue {
    pub(super) fn give(step: &Step<'_, '_>, queue: &Queue<'_>) -> Object {
        PyQueue { recording: step.recording, handle: queue.handle() }.into_py_any(step.py)
    }

    /// Runs a function for each item.
    pub(super) fn drain_in(
        &self,
        step: &Step<'_, '_>,
        group: PyGroup,
        f: Any<'_, '_>,
    ) -> PyResult<()> {
        let group = group.in_step(step)?;
        step.k.queue_of(&self.handle).drain(group, |item| step.run(f, &[item]));
        Ok(())
    }
}

#[pymethods]
impl PyQueue {
    /// Puts an item, an integer, in the queue; gives a `bool`: false where all slots were used, and for items that are not from 0 to
    /// 2^30 - 1.
    ///
    /// A group has to call `drain` afterwards, or the item may stay in the queue. Where a group does something together,
    /// one of its threads pushes.
    fn push(&self, item: Any<'_, '_>) -> Object {
        let operand = self.recording.operand(item)?;
        self.recording
            .record(item.py(), &mut |step| step.object(step.k.queue_of(&self.handle).push(operand)))
    }

    /// Takes an item, `int64`; gives -1 if there is none. All threads of the group get it.
    fn pop(&self, py: Python<'_>, group: &PyGroup) -> Object {
        self.recording.record(py, &mut |step| {
            step.object(step.k.queue_of(&self.handle).pop(group.in_step(step)?))
        })
    }

    /// Takes items until there are none, and runs the function for each by the whole group. The function may push further ones.
    fn drain(&self, py: Python<'_>, group: &PyGroup) -> PyResult<PyBody> {
        PyBody::new(py, self.recording, Kind::Items(self.clone(), *group))
    }
}
