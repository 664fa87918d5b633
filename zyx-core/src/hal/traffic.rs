//! What reached a driver, counted where it is handed over.
//!
//! The core hands a device lists of launches; whether those become one submission or hundreds is
//! the backend's doing, so only the backend can count them. Promises such as "a training step is
//! one submission" are tested against these counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the driver of a device has received since the device was opened.
///
/// A submission is the call by which a driver gets work: `vkQueueSubmit` (Vulkan), `queue.submit`
/// (wgpu), each `clEnqueue..` of a kernel or a copy (OpenCL, which has no call that hands over
/// several), each graph, kernel, library product or asynchronous copy on a stream (CUDA). The
/// CPU has no driver: there it is a job for the threads of the pool, those that the calling thread
/// does alone included. Commands that a stream has gathered and not handed over are not counted
/// yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Submissions.
    pub submits: u64,
    /// Barriers between the commands of submissions: `vkCmdPipelineBarrier` (Vulkan),
    /// `clEnqueueBarrierWithWaitList` (OpenCL). None where streams or the driver order commands.
    pub barriers: u64,
}

/// Counts [`Traffic`] of a device that several threads use.
#[derive(Debug, Default)]
pub struct TrafficCounter {
    submits: AtomicU64,
    barriers: AtomicU64,
}

impl TrafficCounter {
    /// Counts a submission.
    pub fn submitted(&self) {
        self.submits.fetch_add(1, Relaxed);
    }

    /// Counts barriers that the driver received.
    pub fn ordered(&self, barriers: u64) {
        self.barriers.fetch_add(barriers, Relaxed);
    }

    /// The counts so far.
    pub fn get(&self) -> Traffic {
        Traffic { submits: self.submits.load(Relaxed), barriers: self.barriers.load(Relaxed) }
    }
}
