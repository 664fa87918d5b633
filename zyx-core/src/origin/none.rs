//! Origins in builds that keep none.

use super::Place;

/// Nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin;

impl Origin {
    pub(crate) const KEPT: bool = false;
    pub(crate) const UNKNOWN: Origin = Origin;

    #[inline(always)]
    pub(crate) fn here() -> Origin {
        Origin
    }

    #[inline(always)]
    pub(crate) fn line(self) -> Option<(Place, bool)> {
        None
    }

    #[inline(always)]
    pub(crate) fn kernel(self) -> Option<&'static str> {
        None
    }
}

#[inline(always)]
pub(crate) fn is_within_library(_: &str) -> bool {
    false
}

/// Nothing to be put back.
#[must_use]
pub(crate) struct Attributed;

impl Attributed {
    #[inline(always)]
    pub(crate) fn to(_: Place) -> Attributed {
        Attributed
    }

    #[inline(always)]
    pub(crate) fn to_kernel(_: &str) -> Attributed {
        Attributed
    }

    #[inline(always)]
    pub(crate) fn to_gradient(_: Origin) -> Attributed {
        Attributed
    }
}
