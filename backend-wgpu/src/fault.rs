//! wgpu's errors as values.
//!
//! wgpu reports errors of allocation and compilation to a scope, errors of commands to a handler,
//! whenever it notices them, and the loss of a device to another. [`Faults`] keeps the last two
//! until somebody asks; the work a stream does next, at the latest its next wait, returns them. Calls
//! whose errors belong to somebody are [`scoped`].

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use zyx_core::hal::DeviceError;

/// The result of a future that is ready. wgpu's are, but in a browser, where a thread cannot wait.
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// What went wrong on a device and was not reported yet.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The first error since one was last returned, and whether memory was short.
    pending: Option<(bool, String)>,
    lost: Option<String>,
}

impl Faults {
    /// Keeps what happens to a device from now on.
    pub(crate) fn watch(device: &wgpu::Device) -> Arc<Faults> {
        let faults = Arc::new(Faults::default());
        let handler = Arc::clone(&faults);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let memory = matches!(error, wgpu::Error::OutOfMemory { .. });
            handler.lock().pending.get_or_insert((memory, error.to_string()));
        }));
        let handler = Arc::clone(&faults);
        device.set_device_lost_callback(move |reason, message| {
            if reason != wgpu::DeviceLostReason::Destroyed {
                handler.lock().lost.get_or_insert(message);
            }
        });
        faults
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the device up: values that callers count on will never be there.
    pub(crate) fn lose(&self, reason: String) {
        self.lock().lost.get_or_insert(reason);
    }

    /// Returns what is pending, once; the loss of a device every time.
    pub(crate) fn check(&self, device: &str, context: &str) -> Result<(), DeviceError> {
        let mut state = self.lock();
        if let Some(reason) = &state.lost {
            return Err(DeviceError::Lost { device: device.to_owned(), reason: reason.clone() });
        }
        match state.pending.take() {
            None => Ok(()),
            Some((true, _)) => Err(DeviceError::OutOfMemory {
                device: device.to_owned(),
                requested: 0,
                in_use: 0,
                live: Vec::new(),
            }),
            Some((false, reason)) => {
                Err(DeviceError::Driver { context: format!("{context} on {device}"), reason })
            }
        }
    }
}

/// Whether a test lets this call fail.
pub(crate) fn is_injected(call: &'static str) -> bool {
    #[cfg(test)]
    return crate::tests::DRIVER.fails(call);
    #[cfg(not(test))]
    return call.is_empty();
}

/// Runs `f`; gives its result unless wgpu reports an error meanwhile.
pub(crate) fn scoped<T>(
    device: &wgpu::Device,
    call: &'static str,
    f: impl FnOnce() -> T,
) -> Result<T, wgpu::Error> {
    if is_injected(call) {
        let description = format!("{call} failed");
        return Err(wgpu::Error::Internal { source: description.clone().into(), description });
    }
    if cfg!(target_arch = "wasm32") {
        // What a scope found is not there before this returns; without one the handler of errors hears of it.
        return Ok(f());
    }
    let filters = [
        wgpu::ErrorFilter::OutOfMemory,
        wgpu::ErrorFilter::Internal,
        wgpu::ErrorFilter::Validation,
    ];
    let mut scopes: Vec<_> = filters.map(|filter| device.push_error_scope(filter)).into();
    let value = f();
    let mut first = None;
    while let Some(scope) = scopes.pop() {
        first = ready(scope.pop()).flatten().or(first);
    }
    first.map_or(Ok(value), Err)
}
