//! Origins in builds that keep them.

use super::Place;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;
use std::panic::Location;
use std::path::Path;
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

/// Where an operation comes from: the number of an [`Attribution`], so that a pending tensor has two bytes of it. Equal ones
/// have one number; an attribution that comes when all numbers are taken is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin(u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Attribution {
    /// The call that made it, none of what computes a gradient.
    own: Option<Place>,
    /// The line for which it was called, or whose gradient it computes.
    line: Option<Place>,
    /// The elementwise kernel that it is an operation of, or whose gradient it computes.
    kernel: Option<&'static str>,
}

const UNKNOWN: Attribution = Attribution { own: None, line: None, kernel: None };

/// The attributions in the order of their numbers, and the numbers.
struct Attributions {
    list: Vec<Attribution>,
    numbers: FxHashMap<Attribution, u16>,
    /// The names of elementwise kernels.
    kernels: FxHashSet<&'static str>,
}

static ORIGINS: LazyLock<RwLock<Attributions>> = LazyLock::new(|| {
    let (list, numbers) = (vec![UNKNOWN], FxHashMap::from_iter([(UNKNOWN, 0)]));
    RwLock::new(Attributions { list, numbers, kernels: FxHashSet::default() })
});

/// Attributions whose numbers a thread remembers, one for each remainder of their addresses.
const REMEMBERED: usize = 64;

/// For whom calls are made.
#[derive(Clone, Copy, Debug, Default)]
struct Scope {
    line: Option<Place>,
    kernel: Option<&'static str>,
    /// Whether they compute the gradient of what was called there.
    gradient: bool,
}

thread_local! {
    static SCOPE: Cell<Scope> =
        const { Cell::new(Scope { line: None, kernel: None, gradient: false }) };
    static NUMBERS: [Cell<(Attribution, u16)>; REMEMBERED] =
        const { [const { Cell::new((UNKNOWN, 0)) }; REMEMBERED] };
}

/// The address of a place. A call that was compiled several times has several.
fn address(place: Option<Place>) -> usize {
    place.map_or(0, |place| std::ptr::from_ref(place).addr())
}

impl Origin {
    pub(crate) const KEPT: bool = true;
    pub(crate) const UNKNOWN: Origin = Origin(0);

    /// The present call.
    #[inline]
    #[track_caller]
    pub(crate) fn here() -> Origin {
        let (own, Scope { line, kernel, gradient }) = (Location::caller(), SCOPE.get());
        Origin::of(Attribution { own: if gradient { None } else { Some(own) }, line, kernel })
    }

    fn of(attribution: Attribution) -> Origin {
        let addresses = |of: &Attribution| {
            [address(of.own), address(of.line), of.kernel.map_or(0, |name| name.as_ptr().addr())]
        };
        let [own, line, kernel] = addresses(&attribution);
        // Places are some words apart.
        let slot = ((own / 8) ^ (line / 64)) % REMEMBERED;
        NUMBERS.with(|numbers| {
            let (known, number) = numbers[slot].get();
            if addresses(&known) == [own, line, kernel] {
                return Origin(number);
            }
            let number = Origin::numbered(attribution);
            numbers[slot].set((attribution, number));
            Origin(number)
        })
    }

    #[cold]
    fn numbered(attribution: Attribution) -> u16 {
        let mut known = ORIGINS.write().unwrap_or_else(PoisonError::into_inner);
        let Attributions { list, numbers, .. } = &mut *known;
        match (numbers.get(&attribution), u16::try_from(list.len())) {
            (Some(&number), _) => number,
            (None, Ok(next)) => {
                list.push(attribution);
                numbers.insert(attribution, next);
                next
            }
            (None, Err(_)) => Origin::UNKNOWN.0,
        }
    }

    fn attribution(self) -> Attribution {
        ORIGINS.read().unwrap_or_else(PoisonError::into_inner).list[usize::from(self.0)]
    }

    /// The line of the program, and whether the operation computes a gradient of what was called there.
    pub(crate) fn line(self) -> Option<(Place, bool)> {
        let Attribution { own, line, .. } = self.attribution();
        let place = own.filter(|place| !is_within_library(place.file()));
        place.or(line).map(|line| (line, own.is_none()))
    }

    /// The name of the elementwise kernel that it is an operation of, or whose gradient it computes.
    pub(crate) fn kernel(self) -> Option<&'static str> {
        self.attribution().kernel
    }
}

/// A name that is kept until the program ends; `None` if there are as many names as numbers of origins.
fn kept_name(name: &str) -> Option<&'static str> {
    let known = ORIGINS.read().unwrap_or_else(PoisonError::into_inner).kernels.get(name).copied();
    if known.is_some() {
        return known;
    }
    let kernels = &mut ORIGINS.write().unwrap_or_else(PoisonError::into_inner).kernels;
    if !kernels.contains(name) && kernels.len() < usize::from(u16::MAX) {
        kernels.insert(Box::leak(name.into()));
    }
    kernels.get(name).copied()
}

/// While it lives, operations belong to a line; then to what they belonged to before, also after a panic.
#[must_use]
pub(crate) struct Attributed {
    before: Scope,
}

impl Drop for Attributed {
    fn drop(&mut self) {
        SCOPE.set(self.before);
    }
}

impl Attributed {
    /// Operations belong to this line. A library that works for another one works for the caller of that one.
    pub(crate) fn to(line: Place) -> Attributed {
        let before = SCOPE.get();
        let keeps = before.gradient || is_within_library(line.file());
        let line = if keeps { before.line } else { Some(line) };
        SCOPE.set(Scope { line, ..before });
        Attributed { before }
    }

    /// Operations are those of an elementwise kernel, called by the caller of this; within a gradient, they belong to what
    /// they belonged to before.
    #[track_caller]
    pub(crate) fn to_kernel(name: &str) -> Attributed {
        let attributed = Attributed::to(Location::caller());
        let scope = SCOPE.get();
        if !scope.gradient {
            SCOPE.set(Scope { kernel: kept_name(name), ..scope });
        }
        attributed
    }

    /// Operations compute the gradient of another one; of data, they belong to what they belonged to before.
    pub(crate) fn to_gradient(of: Origin) -> Attributed {
        let before = SCOPE.get();
        let (line, kernel) = match of.line() {
            Some((line, _)) => (Some(line), of.kernel()),
            None => (before.line, before.kernel),
        };
        SCOPE.set(Scope { line, kernel, gradient: true });
        Attributed { before }
    }
}

/// The crates of the library, as their folders are called.
const CRATES: &[&str] = &[
    "zyx-core",
    "zyx-ir",
    "zyx-kernels",
    "zyx-nn",
    "zyx-optim",
    "zyx-data",
    "zyx-io",
    "nn",
    "optim",
    "data",
    "zyx",
];

/// Whether a source file is one of the library: it is in the folder of one of its crates, beside that of this
/// one. A folder has the version behind its name if the crate comes from a registry.
pub(crate) fn is_within_library(file: &str) -> bool {
    // Closures that are called by functions of the standard library.
    if file.starts_with("/rustc/") || file.contains("/rustlib/src/rust/library/") {
        return true;
    }
    static BESIDE: OnceLock<&'static str> = OnceLock::new();
    let beside = BESIDE.get_or_init(|| {
        let own = Path::new(file!()).ancestors().nth(4).and_then(Path::to_str);
        own.unwrap_or_default()
    });
    let rest = file.strip_prefix(beside).map(|rest| rest.trim_start_matches(['/', '\\']));
    let Some((folder, rest)) = rest.and_then(|rest| rest.split_once(['/', '\\'])) else {
        return false;
    };
    let is_of = |name: &str| {
        let version = folder.strip_prefix(name);
        version.is_some_and(|v| v.is_empty() || v.starts_with("-0") || v.starts_with("-1"))
    };
    let sources = rest.starts_with("src/") || rest.starts_with("src\\");
    sources && CRATES.iter().any(|name| is_of(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_the_lines_of_calls() {
        let here = || Origin::here();
        let (first, other) = (here(), Origin::here());
        assert_eq!(first, here(), "one call");
        assert_ne!(first, other);
        let own = |origin: Origin| origin.attribution().own.unwrap();
        assert_eq!((own(first).file(), own(first).line() + 1), (file!(), own(other).line()));
        let gradient = {
            let _here = Attributed::to_gradient(first);
            Origin::here()
        };
        assert_ne!(gradient, first);
        let of_kernel = {
            let _of = Attributed::to_kernel("square");
            Origin::here()
        };
        assert_eq!((of_kernel.kernel(), first.kernel()), (Some("square"), None));
        assert_eq!(Origin::UNKNOWN.line(), None);
    }

    #[test]
    fn files_of_the_library_are_known() {
        assert!(is_within_library(file!()));
        let nn = file!().replace("zyx-core", "nn");
        assert!(is_within_library(&nn), "{nn}");
        for other in ["src/main.rs", "/home/me/net/src/main.rs", "tests/tests/explain.rs"] {
            assert!(!is_within_library(other), "{other}");
        }
        assert!(!is_within_library(&file!().replace("zyx-core", "examples")));
    }
}
