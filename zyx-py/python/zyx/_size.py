"""Shapes of tensors: tuples of extents that count their elements."""


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Size(tuple):
    """A shape: a tuple of extents."""

    __slots__ = ()
    __module__ = "zyx"

    def numel(self) -> int:
        """The number of elements."""
        n = 1
        for extent in self:
            n *= extent
        return n

    def __repr__(self):
        return f"zyx.Size({list(self)})"

    __str__ = __repr__

    def __getitem__(self, i) -> "Any":
        found = tuple.__getitem__(self, i)
        return Size(found) if type(i) is slice else found

    def __add__(self, other):
        found = tuple.__add__(self, other)
        return found if found is NotImplemented else Size(found)

    def __mul__(self, n):
        found = tuple.__mul__(self, n)
        return found if found is NotImplemented else Size(found)

    __rmul__ = __mul__

    def __reduce__(self):
        return Size, (tuple(self),)
