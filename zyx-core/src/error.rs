//! What can go wrong for a caller, as one public enum.
//!
//! Errors name the op, the shapes and dtypes it was given and where it was called. A broken
//! invariant of our own is a panic, never an error.

use crate::dtype::DType;
use crate::hal::{CompileError, DeviceError};
use crate::lang::{LangError, Site};
use crate::origin;
use crate::shape::Shape;
use std::fmt;
use std::panic::Location;

/// The result of a public call that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A mistake of the caller, or a failure of a device.
///
/// `{:?}` prints the sentence, too, so that `fn main() -> zyx::Result<()>` ends with one.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Shapes that do not fit the op.
    #[error("{op}: {reason}{operands}, at {location}")]
    Shape {
        /// The tensor method.
        op: &'static str,
        /// What does not fit, and what would.
        reason: String,
        /// What the method was given.
        operands: Operands,
        /// Where the method was called.
        location: &'static Location<'static>,
    },
    /// Dtypes the op is not defined on.
    #[error("{op}: {reason}{operands}, at {location}")]
    DType {
        /// The tensor method.
        op: &'static str,
        /// What does not fit, and what would.
        reason: String,
        /// What the method was given.
        operands: Operands,
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
    /// A value that checked mode does not let pass; see
    /// [`Device::set_checked`](crate::Device::set_checked).
    #[error("{op}: {reason}, at {place}")]
    Value {
        /// The operation whose result it is, or the method that got it.
        op: &'static str,
        /// The value and its position.
        reason: String,
        /// The line that called the operation.
        place: String,
    },
    /// An index or a class number out of range. Indices that are data are looked at when an operation
    /// gets them; others are found when a value that depends on them is read.
    #[error("{op}: {reason}, at {place}")]
    Index {
        /// The method that got the index.
        op: &'static str,
        /// The index, and which are allowed.
        reason: String,
        /// The line that called the method.
        place: String,
    },
    /// A device that is not there, or operands on different ones.
    #[error("device {spec}: {reason}, at {location}")]
    NoDevice {
        /// What was asked for.
        spec: String,
        /// Why it cannot be had, and what can.
        reason: String,
        /// Where it was asked for.
        location: &'static Location<'static>,
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
        /// The path or stream, or the line of the program that asked.
        what: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The error of a function that the caller passed.
    #[error(transparent)]
    Function(Box<dyn std::error::Error + Send + Sync>),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A user kernel is wrong: at a line of the program.
    #[error(transparent)]
    Kernel(#[from] LangError),
    /// A kernel did not compile: a limit of the device, or a bug of ours.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Dtype and shape of each tensor that a method was given, in its order.
///
/// Both errors about operands hold both: why dtypes do not fit often shows in the shapes, when
/// arguments were swapped, and the other way round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operands(pub Vec<(DType, Shape)>);

impl FromIterator<(DType, Shape)> for Operands {
    fn from_iter<I: IntoIterator<Item = (DType, Shape)>>(items: I) -> Operands {
        Operands(items.into_iter().collect())
    }
}

/// ` (operands f32 [2, 3], i64 [4])`; nothing where there are none.
impl fmt::Display for Operands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(((dtype, shape), rest)) = self.0.split_first() else { return Ok(()) };
        let plural = if rest.is_empty() { "" } else { "s" };
        write!(f, " (operand{plural} {dtype} {shape}")?;
        rest.iter().try_for_each(|(dtype, shape)| write!(f, ", {dtype} {shape}"))?;
        f.write_str(")")
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// For `?` on results of the standard library: [`Error::Io`] with the line of the `?` in place of a path.
///
/// ```
/// fn read(path: &str) -> Result<Vec<u8>, zyx::Error> {
///     Ok(std::fs::read(path)?)
/// }
/// let error = read("no/such/file").unwrap_err();
/// assert!(matches!(error, zyx::Error::Io { .. }));
/// ```
impl From<std::io::Error> for Error {
    #[track_caller]
    fn from(source: std::io::Error) -> Error {
        Error::Io { what: Location::caller().to_string(), source }
    }
}

impl Error {
    /// An error in a user kernel that was called at a line of a file.
    pub(crate) fn of_kernel(kernel: &str, reason: &str, (file, line): (&str, u32)) -> Error {
        let site = Site { file: file.into(), line };
        Error::Kernel(LangError { kernel: kernel.to_owned(), reason: reason.to_owned(), site })
    }

    /// The same mistake at another place: closures cannot see where their function was called, and
    /// layers consist of calls that their users did not write.
    ///
    /// ```
    /// use std::panic::Location;
    /// use zyx::{Error, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let here = Location::caller();
    /// let error = Tensor::new([1, 2], &device)?.reshape([3]).unwrap_err().at(here);
    /// assert!(error.to_string().contains(here.file()));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn at(mut self, here: &'static Location<'static>) -> Error {
        if let Error::Shape { location, .. }
        | Error::DType { location, .. }
        | Error::Argument { location, .. }
        | Error::NoDevice { location, .. } = &mut self
        {
            *location = here;
        }
        self
    }
}

impl Error {
    /// [`Error::at`] if the line that the error names is one of the library, as where a layer is called through a
    /// trait object. This is known in builds with debug assertions or the feature `lines`; in others the error is as it
    /// was.
    ///
    /// ```
    /// use std::panic::Location;
    /// use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let line = line!() + 1;
    /// let error = Tensor::new([1, 2], &device)?.reshape([3]).unwrap_err();
    /// // It is a line of this program already.
    /// let error = error.outside_library(Location::caller());
    /// assert!(error.to_string().contains(&format!(":{line}:")), "{error}");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[must_use]
    pub fn outside_library(self, here: &'static Location<'static>) -> Error {
        let is_inside = match &self {
            Error::Shape { location, .. }
            | Error::DType { location, .. }
            | Error::Argument { location, .. }
            | Error::NoDevice { location, .. } => origin::is_within_library(location.file()),
            _ => false,
        };
        if is_inside { self.at(here) } else { self }
    }

    /// The same mistake, made within a part of a model: the sentence begins with where, as in
    /// ``in `2.linear`: ``.
    ///
    /// ```
    /// use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::zeros([2, 3], DType::F32, &device);
    /// let error = x.matmul(&x).unwrap_err().within("attention").within("2");
    /// assert!(error.to_string().contains("in `2.attention`: "), "{error}");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[must_use]
    pub fn within(mut self, part: &str) -> Error {
        if let Error::Shape { reason, .. }
        | Error::DType { reason, .. }
        | Error::Argument { reason, .. }
        | Error::Value { reason, .. }
        | Error::Index { reason, .. }
        | Error::NoDevice { reason, .. } = &mut self
        {
            // A layer that knows its whole name has been named.
            if !reason.starts_with(LAYER) {
                *reason = match reason.strip_prefix("in `") {
                    Some(rest) => format!("in `{part}.{rest}"),
                    None => format!("in `{part}`: {reason}"),
                };
            }
        }
        self
    }
}

/// How a reason begins that names a layer as it is called in the whole model.
const LAYER: &str = "in layer `";

impl Error {
    /// The same mistake, made within the layer that has this name in the whole model, unless a layer
    /// within that one is named already.
    pub(crate) fn within_layer(mut self, name: &str) -> Error {
        if let Error::Shape { reason, .. }
        | Error::DType { reason, .. }
        | Error::Argument { reason, .. }
        | Error::Value { reason, .. }
        | Error::Index { reason, .. }
        | Error::NoDevice { reason, .. } = &mut self
            && !reason.starts_with(LAYER)
        {
            *reason = format!("{LAYER}{name}`: {reason}");
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
            Err(error) => Err(renamed(error.at(Location::caller()), name)),
        }
    }
}

/// The error with another method as the one that refused.
#[cold]
#[inline(never)]
fn renamed(mut error: Error, name: &'static str) -> Error {
    if let Error::Shape { op, .. } | Error::DType { op, .. } | Error::Argument { op, .. } =
        &mut error
    {
        *op = name;
    }
    if let Error::NoDevice { reason, .. } = &mut error {
        *reason = format!("in {name}: {reason}");
    }
    error
}

#[cfg(test)]
mod tests {
    use super::{Error, Operands};
    use crate::{DType, Runtime, Shape, Tensor};

    /// The fields of an error and the line it names, whatever its variant.
    fn parts(error: &Error) -> (Option<&'static str>, Operands, u32) {
        let none = Operands::default;
        match error {
            Error::Shape { op, operands, location, .. }
            | Error::DType { op, operands, location, .. } => {
                (Some(op), operands.clone(), location.line())
            }
            Error::Argument { op, location, .. } => (Some(op), none(), location.line()),
            Error::NoDevice { location, .. } => (None, none(), location.line()),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn refusals_name_op_dtypes_shapes_and_the_line_of_the_call() {
        let device = Runtime::default().device("reference").unwrap();
        let x = Tensor::zeros([2, 3], DType::F32, &device);
        let y = Tensor::zeros([4], DType::I64, &device);
        let operands =
            |of: &[(DType, &[usize])]| of.iter().map(|&(d, s)| (d, Shape::from(s))).collect();

        // A shape that does not fit says the dtypes too, and a dtype that does not the shapes.
        let (error, line) = (x.add(&y).unwrap_err(), line!());
        let both: Operands = operands(&[(DType::F32, &[2, 3]), (DType::I64, &[4])]);
        assert!(matches!(error, Error::Shape { .. }), "{error}");
        assert_eq!(parts(&error), (Some("add"), both, line));
        let text = error.to_string();
        assert!(text.contains("(operands f32 [2, 3], i64 [4]), at "), "{text}");

        let (error, line) = (x.bitwise_and(&x).unwrap_err(), line!());
        let twice: Operands = operands(&[(DType::F32, &[2, 3]), (DType::F32, &[2, 3])]);
        assert!(matches!(error, Error::DType { .. }), "{error}");
        assert_eq!(parts(&error), (Some("bitwise_and"), twice, line));

        // Methods made of others are named themselves, at the line their caller wrote.
        let (error, line) = (x.matmul(&y).unwrap_err(), line!());
        assert_eq!((parts(&error).0, parts(&error).2), (Some("matmul"), line), "{error}");
    }

    #[test]
    fn errors_of_the_operating_system_name_the_line_that_asked() {
        let read = || -> super::Result<Vec<u8>> { Ok(std::fs::read("no/such/file")?) };
        let line = line!() - 1;
        let text = read().unwrap_err().to_string();
        assert!(text.contains(&format!("{}:{line}:", file!())), "{text}");
    }

    #[test]
    fn missing_devices_name_the_line_that_asked() {
        let runtime = Runtime::default();
        for spec in ["reference:9", "no-such", "reference:x"] {
            let (error, line) = (runtime.device(spec).unwrap_err(), line!());
            assert!(matches!(&error, Error::NoDevice { spec: s, .. } if s == spec), "{error}");
            assert_eq!(parts(&error).2, line);
            assert!(error.to_string().contains(&format!("{}:{line}:", file!())), "{error}");
        }
    }
}
