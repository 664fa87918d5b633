//! Origins in builds that keep them.

use super::Place;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::panic::Location;
use std::path::Path;
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

/// Where an operation comes from: the number of a [`Pair`], so that a pending tensor has two bytes of it. Equal pairs have
/// one number; what comes when all numbers are taken is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin(u16);

/// The call that made it, none of what computes a gradient, and the line for which it was called, or whose gradient it
/// computes.
type Pair = [Option<Place>; 2];

/// The pairs in the order of their numbers, and the numbers.
#[derive(Default)]
struct Pairs {
    list: Vec<Pair>,
    numbers: FxHashMap<Pair, u16>,
}

static ORIGINS: LazyLock<RwLock<Pairs>> = LazyLock::new(|| {
    let unknown = (vec![[None; 2]], FxHashMap::from_iter([([None; 2], 0)]));
    RwLock::new(Pairs { list: unknown.0, numbers: unknown.1 })
});

/// Pairs whose numbers a thread remembers, one for each remainder of their addresses.
const REMEMBERED: usize = 64;

/// For whom calls are made.
#[derive(Clone, Copy, Debug, Default)]
struct Scope {
    line: Option<Place>,
    /// Whether they compute the gradient of what was called there.
    gradient: bool,
}

thread_local! {
    static SCOPE: Cell<Scope> = const { Cell::new(Scope { line: None, gradient: false }) };
    static NUMBERS: [Cell<(Pair, u16)>; REMEMBERED] =
        const { [const { Cell::new(([None; 2], 0)) }; REMEMBERED] };
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
        let (own, Scope { line, gradient }) = (Location::caller(), SCOPE.get());
        Origin::of([if gradient { None } else { Some(own) }, line])
    }

    fn of(pair: Pair) -> Origin {
        let [own, scope] = pair.map(address);
        // Places are some words apart.
        let slot = ((own / 8) ^ (scope / 64)) % REMEMBERED;
        NUMBERS.with(|numbers| {
            let (known, number) = numbers[slot].get();
            if known.map(address) == [own, scope] {
                return Origin(number);
            }
            let number = Origin::numbered(pair);
            numbers[slot].set((pair, number));
            Origin(number)
        })
    }

    #[cold]
    fn numbered(pair: Pair) -> u16 {
        let mut pairs = ORIGINS.write().unwrap_or_else(PoisonError::into_inner);
        let Pairs { list, numbers } = &mut *pairs;
        match (numbers.get(&pair), u16::try_from(list.len())) {
            (Some(&number), _) => number,
            (None, Ok(next)) => {
                list.push(pair);
                numbers.insert(pair, next);
                next
            }
            (None, Err(_)) => Origin::UNKNOWN.0,
        }
    }

    /// The line of the program, and whether the operation computes a gradient of what was called there.
    pub(crate) fn line(self) -> Option<(Place, bool)> {
        if self == Origin::UNKNOWN {
            return None;
        }
        let [own, scope] =
            ORIGINS.read().unwrap_or_else(PoisonError::into_inner).list[usize::from(self.0)];
        let place = own.filter(|place| !is_within_library(place.file()));
        place.or(scope).map(|line| (line, own.is_none()))
    }
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
        SCOPE.set(Scope { line, gradient: before.gradient });
        Attributed { before }
    }

    /// Operations compute the gradient of another one; of data, they belong to what they belonged to before.
    pub(crate) fn to_gradient(of: Origin) -> Attributed {
        let before = SCOPE.get();
        let line = of.line().map(|(line, _)| line).or(before.line);
        SCOPE.set(Scope { line, gradient: true });
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
        let own = |origin: Origin| ORIGINS.read().unwrap().list[usize::from(origin.0)][0].unwrap();
        assert_eq!((own(first).file(), own(first).line() + 1), (file!(), own(other).line()));
        let gradient = {
            let _here = Attributed::to_gradient(first);
            Origin::here()
        };
        assert_ne!(gradient, first);
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
