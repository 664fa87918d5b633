//! Lists of launches that are run again and again, and what a device keeps to run them faster.
//!
//! A training step plays the same plan thousands of times: the same programs in the same order,
//! with other scalars and now and then other buffers. Most drivers can be told such a list once
//! (a CUDA graph, a Vulkan command buffer) and then submit it for the price of one launch.
//!
//! The core gives every list a [`Recording`] and passes both to
//! [`Device::replay`](super::Device::replay). What is in it is the backend's own business:
//!
//! * on the first call the slot is empty, and most lists run only once: launch step by step and
//!   note in the slot that the list was seen;
//! * on the second, record: translate the commands, keep the addresses and scalars they were
//!   given in the slot beside the driver's object;
//! * afterwards compare, update what differs (or keep one object for each set of buffers; pools
//!   hand them out in a short cycle), and submit.
//!
//! Scalars such as a step count differ at every call, so they should be cheap to update: graph
//! node parameters, or a block of uniforms that is written before the submission.

use super::Arg;
use std::any::Any;

/// One launch of a list: what [`Device::launch`](super::Device::launch) takes, and its
/// dependencies.
#[derive(Debug)]
pub struct Command<'a, P, B> {
    /// What to run.
    pub program: &'a P,
    /// Its arguments.
    pub args: &'a [Arg<'a, B>],
    /// The commands of the list, all earlier ones, that must be done before this one. Any
    /// execution that keeps to this and to the order of the stream around the list is right;
    /// running the list in order always is.
    pub after: &'a [u32],
}

impl<P, B> Clone for Command<'_, P, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, B> Copy for Command<'_, P, B> {}

/// What a device keeps for one list of commands; empty at first. Dropped with the list, maybe
/// while a submission of it still runs: what the driver needs until then is the backend's to keep.
#[derive(Default)]
pub struct Recording(Option<Box<dyn Any + Send>>);

impl Recording {
    /// What is kept, made by `T::default` at the first call. A device always asks for the same
    /// type; if it asks for another, it starts over.
    pub fn get<T: Any + Send + Default>(&mut self) -> &mut T {
        if !self.0.as_deref().is_some_and(<dyn Any + Send>::is::<T>) {
            self.0 = Some(Box::<T>::default());
        }
        let kept = self.0.as_deref_mut().and_then(<dyn Any + Send>::downcast_mut);
        kept.expect("invariant: the slot holds a T, as was just seen to")
    }

    /// Forgets what is kept.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Recording(..)" } else { "Recording(empty)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_keeps_one_thing() {
        let mut recording = Recording::default();
        *recording.get::<u32>() += 1;
        *recording.get::<u32>() += 1;
        assert_eq!(*recording.get::<u32>(), 2);
        assert_eq!(*recording.get::<u64>(), 0);
        recording.clear();
        assert_eq!(*recording.get::<u32>(), 0);
    }
}
