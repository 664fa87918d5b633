//! What a device notes of tensors in checked mode: where each was made, and what indices may be.
//!
//! Notes are kept once each, and a tensor has the number of its own; so a tensor costs nothing more
//! in checked mode, and nobody has to take notes back when it goes.

use super::device::Device;
use crate::hal::lock;
use rustc_hash::FxHashMap;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

/// What is noted of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Note {
    /// The call that made it.
    pub(crate) place: Place,
    pub(crate) bound: Option<Bound>,
    /// The user kernel whose result it is.
    pub(crate) kernel: Option<Arc<str>>,
}

/// A line of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Rust(&'static Location<'static>),
    /// Of a program in another language.
    Other(Arc<str>),
}

impl Place {
    /// The file and the line.
    pub(crate) fn line(&self) -> (&str, u32) {
        let of_text = |text| -> (&str, u32) {
            let line = str::rsplit_once(text, ':');
            line.and_then(|(file, line)| Some((file, line.parse().ok()?))).unwrap_or((text, 0))
        };
        match self {
            Place::Rust(location) => (location.file(), location.line()),
            Place::Other(text) => of_text(text),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Rust(location) => location.fmt(f),
            Place::Other(text) => f.write_str(text),
        }
    }
}

/// What the elements of an index may be for a method: from `low` to below `high`, or `except`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    pub(crate) op: &'static str,
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) except: Option<i64>,
}

/// Says which line of a program in another language is running.
pub type CallSite = fn() -> Option<String>;

/// The notes of a device.
#[derive(Default)]
pub(super) struct Checked {
    on: AtomicBool,
    call_site: OnceLock<CallSite>,
    notes: Mutex<(FxHashMap<Note, u32>, Vec<Note>)>,
}

/// The bit that tells the number of a note from what else a tensor may be marked with.
const NOTED: u64 = 1 << 63;

impl Device {
    /// Turns checked mode on or off. While it is on, operations whose operands are finite and whose
    /// result is not, indices and class numbers out of range are errors when a value is asked for.
    /// They name the operation, the position, the value, the line that called the operation and the
    /// one that asked. Of operations that were called before it was on, results are checked too, but
    /// neither indices nor lines are known.
    ///
    /// Values are computed operation by operation on copies of the inputs and looked at on the host, then by
    /// the plan that would run without checked mode: the same fusion, memory of inputs reused, launches
    /// replayed. A result of the plan that differs by more than rounding explains is an error that names
    /// the operation. All of it takes a multiple of the time and of the memory. Infinities that are constants
    /// or data, as in a mask, those that `where` leaves out, and results that are only tested
    /// ([`Tensor::is_inf`](crate::Tensor::is_inf), [`Tensor::is_nan`](crate::Tensor::is_nan),
    /// [`Tensor::nan_to_num`](crate::Tensor::nan_to_num), comparisons with infinity) are no errors. While it is off, nothing is spent on it.
    ///
    /// A device opened while the environment variable `ZYX_CHECKED` is `1` starts in checked mode.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// device.set_checked(true);
    /// let x = Tensor::new([4f32, 0.0, 1.0], &device)?;
    /// let y = x.log();
    /// let error = y.add(1.0)?.sum(..)?.realize().unwrap_err().to_string();
    /// assert!(error.starts_with("log: the result is -inf at [1], where the operand is 0.0, at "), "{error}");
    /// let error = x.gather(0, &Tensor::new([0i64, 3], &device)?)?.realize().unwrap_err().to_string();
    /// assert!(error.starts_with("gather: the index is 3 at [1], out of range 0 to 2, at "), "{error}");
    /// device.set_checked(false);
    /// assert_eq!(y.to_vec::<f32>()?[1], f32::NEG_INFINITY);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn set_checked(&self, on: bool) {
        self.checked().on.store(on, Relaxed);
    }

    /// Whether checked mode is on.
    ///
    /// ```
    /// # let device = zyx::runtime().device("reference")?;
    /// assert!(!device.is_checked());
    /// device.set_checked(true);
    /// assert!(device.is_checked());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[inline]
    pub fn is_checked(&self) -> bool {
        self.checked().on.load(Relaxed)
    }

    /// For bindings to another language: errors of checked mode name the line that this says is
    /// running, instead of a line of the bindings. The first call counts.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// device.set_call_site(|| Some("script.py:3".to_owned()));
    /// device.set_checked(true);
    /// let error = Tensor::new(0f32, &device)?.log().realize().unwrap_err().to_string();
    /// assert!(error.ends_with("at script.py:3"), "{error}");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn set_call_site(&self, call_site: CallSite) {
        let _ = self.checked().call_site.set(call_site);
    }

    /// The number of a note about a tensor that is made there.
    #[cold]
    pub(crate) fn note(&self, location: &'static Location<'static>, bound: Option<Bound>) -> u64 {
        let note = self.note_of(location, bound);
        let (numbers, notes) = &mut *lock(&self.checked().notes);
        let number = *numbers.entry(note.clone()).or_insert(notes.len() as u32);
        if number as usize == notes.len() {
            notes.push(note);
        }
        NOTED | u64::from(number)
    }

    /// A note of the line that makes a tensor, and of the bound of an index. The line is the binding's, if
    /// [`Device::set_call_site`] gives one, else `location`.
    pub(crate) fn note_of(
        &self,
        location: &'static Location<'static>,
        bound: Option<Bound>,
    ) -> Note {
        let other = self.checked().call_site.get().and_then(|call_site| call_site());
        let place = other.map_or(Place::Rust(location), |text| Place::Other(text.into()));
        Note { place, bound, kernel: None }
    }

    /// What was noted, if this is the number of a note.
    pub(crate) fn noted(&self, number: u64) -> Option<Note> {
        let number = (number & NOTED != 0).then_some(number as u32)?;
        lock(&self.checked().notes).1.get(number as usize).cloned()
    }
}
