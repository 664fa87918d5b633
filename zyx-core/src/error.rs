//! What can go wrong for a caller, as one public enum.
//!
//! Errors name the op, the shapes and dtypes it was given and where it was called. A broken
//! invariant of our own is a panic, never an error.

use crate::dtype::DType;
use crate::hal::{CompileError, DeviceError};
use crate::shape::Shape;
use std::panic::Location;

/// The result of a public call that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A mistake of the caller, or a failure of a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Shapes that do not fit the op.
    #[error("{op}: {reason} (shapes {}), at {location}", list(shapes))]
    Shape {
        /// The tensor method.
        op: &'static str,
        /// What does not fit, and what would.
        reason: String,
        /// The shapes of the operands.
        shapes: Vec<Shape>,
        /// Where the method was called.
        location: &'static Location<'static>,
    },
    /// Dtypes the op is not defined on.
    #[error("{op}: {reason} (dtypes {}), at {location}", list(dtypes))]
    DType {
        /// The tensor method.
        op: &'static str,
        /// What does not fit, and what would.
        reason: String,
        /// The dtypes of the operands.
        dtypes: Vec<DType>,
        /// Where the method was called.
        location: &'static Location<'static>,
    },
    /// An argument outside its range.
    #[error("{op}: {reason}, at {location}")]
    Argument {
        /// The method.
        op: &'static str,
        /// What is wrong and what is allowed.
        reason: String,
        /// Where the method was called.
        location: &'static Location<'static>,
    },
    /// A device that is not there, or operands on different ones.
    #[error("device {spec}: {reason}")]
    NoDevice {
        /// What was asked for.
        spec: String,
        /// Why it cannot be had, and what can.
        reason: String,
    },
    /// A file or byte stream that is not what it should be.
    #[error("{what}: {reason}")]
    Format {
        /// The file or format.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// The path or stream.
        what: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A kernel did not compile: a limit of the device, or a bug of ours.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

impl Error {
    /// The same mistake at another place: closures cannot see where their function was called, and
    /// layers consist of calls that their users did not write.
    ///
    /// ```
    /// use std::panic::Location;
    /// use zyx_core::{Error, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let here = Location::caller();
    /// let error = Tensor::new([1, 2], &device)?.reshape([3]).unwrap_err().at(here);
    /// assert!(error.to_string().contains(here.file()));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn at(mut self, here: &'static Location<'static>) -> Error {
        if let Error::Shape { location, .. }
        | Error::DType { location, .. }
        | Error::Argument { location, .. } = &mut self
        {
            *location = here;
        }
        self
    }
}

/// Errors of the methods that a method consists of, named as its caller knows it.
pub(crate) trait Named {
    /// With `op` as the method that refused, at the caller.
    #[track_caller]
    fn named(self, op: &'static str) -> Self;
}

impl<T> Named for Result<T> {
    #[track_caller]
    fn named(self, name: &'static str) -> Result<T> {
        match self {
            Ok(x) => Ok(x),
            Err(error) => {
                let mut error = error.at(Location::caller());
                if let Error::Shape { op, .. }
                | Error::DType { op, .. }
                | Error::Argument { op, .. } = &mut error
                {
                    *op = name;
                }
                if let Error::NoDevice { reason, .. } = &mut error {
                    *reason = format!("in {name}: {reason}");
                }
                Err(error)
            }
        }
    }
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}
