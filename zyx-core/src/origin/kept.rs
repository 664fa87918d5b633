//! Origins in builds that keep them.

use super::Place;
use std::cell::Cell;
use std::panic::Location;
use std::path::Path;
use std::sync::OnceLock;

/// Where an operation comes from: two words, as there is one for each pending tensor.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origin {
    /// The call that made it; none of what computes a gradient.
    own: Option<Place>,
    /// The line for which it was called, or whose gradient it computes.
    scope: Option<Place>,
}

/// For whom calls are made.
#[derive(Clone, Copy, Debug, Default)]
struct Scope {
    line: Option<Place>,
    /// Whether they compute the gradient of what was called there.
    gradient: bool,
}

/// Whether two lines are one; a call that was compiled several times has several addresses.
fn is_same(a: Option<Place>, b: Option<Place>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => std::ptr::eq(a, b) || a == b,
        (a, b) => a.is_none() && b.is_none(),
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Origin) -> bool {
        is_same(self.own, other.own) && is_same(self.scope, other.scope)
    }
}

impl Eq for Origin {}

thread_local! {
    static SCOPE: Cell<Scope> = const { Cell::new(Scope { line: None, gradient: false }) };
}

impl Origin {
    pub(crate) const KEPT: bool = true;
    pub(crate) const UNKNOWN: Origin = Origin { own: None, scope: None };

    /// The present call.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn here() -> Origin {
        let (own, Scope { line, gradient }) = (Location::caller(), SCOPE.get());
        Origin { own: if gradient { None } else { Some(own) }, scope: line }
    }

    /// The line of the program, and whether the operation computes a gradient of what was called there.
    pub(crate) fn line(self) -> Option<(Place, bool)> {
        let own = self.own.filter(|place| !is_within_library(place.file()));
        own.or(self.scope).map(|line| (line, self.own.is_none()))
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
    use super::is_within_library;

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
