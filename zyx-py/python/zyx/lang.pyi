"""The objects that a kernel is written with; see `zyx.kernel`."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from ._core import DType, DTypeLike, Tensor

Operand: TypeAlias = Val | bool | int | float
"""A value, or a number, which takes the dtype of the value beside it."""
Coordinates: TypeAlias = Operand | Sequence[Operand]
"""Coordinates of an element: integers of any dtype."""
Extents: TypeAlias = Operand | Sequence[Operand]
"""Extents of a space of iterations or of an argument: what follows from sizes and numbers."""
Span: TypeAlias = Operand | tuple[Operand, Operand] | range
"""What a loop runs over: the numbers below an end, or those of a pair of start and end."""
Op: TypeAlias = Literal["add", "mul", "max", "min", "and", "or", "xor"] | str
_State = TypeVar("_State")

class Val:
    """A value of a kernel: a scalar of some dtype. Operators and methods have the meaning of a tensor's, and record.

    Operands of two dtypes are an error; a number takes the dtype of the value beside it. `//` and `%` round as in Python.
    Comparisons give values of `bool`, which `&`, `|` and `~` combine. `if` on a value raises a `TypeError`.
    """

    @property
    def dtype(self) -> DType:
        """Its dtype."""

    @property
    def float_dtype(self) -> DType:
        """Its dtype where it is a float, else `float32`: means and exponentials of it are computed in that."""
    def __add__(self, other: Operand, /) -> Val: ...
    def __radd__(self, other: Operand, /) -> Val: ...
    def __sub__(self, other: Operand, /) -> Val: ...
    def __rsub__(self, other: Operand, /) -> Val: ...
    def __mul__(self, other: Operand, /) -> Val: ...
    def __rmul__(self, other: Operand, /) -> Val: ...
    def __truediv__(self, other: Operand, /) -> Val: ...
    def __rtruediv__(self, other: Operand, /) -> Val: ...
    def __floordiv__(self, other: Operand, /) -> Val: ...
    def __rfloordiv__(self, other: Operand, /) -> Val: ...
    def __mod__(self, other: Operand, /) -> Val: ...
    def __rmod__(self, other: Operand, /) -> Val: ...
    def __pow__(self, other: Operand, /) -> Val: ...
    def __rpow__(self, other: Operand, /) -> Val: ...
    def __and__(self, other: Operand, /) -> Val: ...
    def __rand__(self, other: Operand, /) -> Val: ...
    def __or__(self, other: Operand, /) -> Val: ...
    def __ror__(self, other: Operand, /) -> Val: ...
    def __xor__(self, other: Operand, /) -> Val: ...
    def __rxor__(self, other: Operand, /) -> Val: ...
    def __lshift__(self, other: Operand, /) -> Val: ...
    def __rlshift__(self, other: Operand, /) -> Val: ...
    def __rshift__(self, other: Operand, /) -> Val: ...
    def __rrshift__(self, other: Operand, /) -> Val: ...
    def __lt__(self, other: Operand, /) -> Val: ...
    def __le__(self, other: Operand, /) -> Val: ...
    def __gt__(self, other: Operand, /) -> Val: ...
    def __ge__(self, other: Operand, /) -> Val: ...
    def __eq__(self, other: Operand, /) -> Val: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
    def __ne__(self, other: Operand, /) -> Val: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
    def __neg__(self) -> Val: ...
    def __pos__(self) -> Val: ...
    def __abs__(self) -> Val: ...
    def __invert__(self) -> Val: ...
    def __bool__(self) -> bool: ...
    def abs(self) -> Val:
        """Absolute value."""

    def recip(self) -> Val:
        """Reciprocal."""

    def sqrt(self) -> Val:
        """Square root."""

    def exp(self) -> Val:
        """Base-e exponential."""

    def exp2(self) -> Val:
        """Base-2 exponential."""

    def expm1(self) -> Val:
        """`exp(x) - 1`."""

    def log(self) -> Val:
        """Natural logarithm."""

    def log2(self) -> Val:
        """Base-2 logarithm."""

    def log1p(self) -> Val:
        """`log(1 + x)`."""

    def sin(self) -> Val:
        """Sine, radians."""

    def cos(self) -> Val:
        """Cosine, radians."""

    def tan(self) -> Val:
        """Tangent, radians."""

    def asin(self) -> Val:
        """Arc sine, radians."""

    def acos(self) -> Val:
        """Arc cosine, radians."""

    def atan(self) -> Val:
        """Arc tangent, radians."""

    def sinh(self) -> Val:
        """Hyperbolic sine."""

    def cosh(self) -> Val:
        """Hyperbolic cosine."""

    def tanh(self) -> Val:
        """Hyperbolic tangent."""

    def erf(self) -> Val:
        """Error function."""

    def floor(self) -> Val:
        """Largest integer not above."""

    def ceil(self) -> Val:
        """Smallest integer not below."""

    def round(self) -> Val:
        """Nearest integer, ties to even."""

    def trunc(self) -> Val:
        """Integer part."""

    def sigmoid(self) -> Val:
        """`1 / (1 + exp(-x))`."""

    def relu(self) -> Val:
        """`x`, or 0 where it is negative."""

    def square(self) -> Val:
        """`x * x`."""

    def pow(self, other: Operand) -> Val:
        """Power."""

    def atan2(self, other: Operand) -> Val:
        """Angle of the point `(other, self)`, radians."""

    def maximum(self, other: Operand) -> Val:
        """The larger one; NaN if either is."""

    def minimum(self, other: Operand) -> Val:
        """The smaller one; NaN if either is."""

    def lt(self, other: Operand) -> Val:
        """Whether it is less."""

    def le(self, other: Operand) -> Val:
        """Whether it is less or equal."""

    def eq(self, other: Operand) -> Val:
        """Whether they are equal."""

    def ne(self, other: Operand) -> Val:
        """Whether they are not."""

    def gt(self, other: Operand) -> Val:
        """Whether it is greater."""

    def ge(self, other: Operand) -> Val:
        """Whether it is greater or equal."""

    def div_ceil(self, other: Operand) -> Val:
        """The quotient rounded up, of integers that are not negative."""

    def clamp(self, min: Operand, max: Operand) -> Val:
        """The value within bounds."""

    def mul_add(self, y: Operand, z: Operand) -> Val:
        """`self * y + z`, rounded once where the device can."""

    def select(self, x: Operand, y: Operand) -> Val:
        """`x` where this bool holds, else `y`. One of both may be a number."""

    def cast(self, dtype: DTypeLike) -> Val:
        """The same value in another dtype."""

    def bitcast(self, dtype: DTypeLike) -> Val:
        """The bits as a dtype of equal width."""

    def unary(self, op: str) -> Val:
        """A unary operation by its name."""

    def binary(self, op: str, other: Operand) -> Val:
        """A binary operation by its name."""

class Array:
    """An array of a kernel: an argument, or storage of a thread or a group. `x[i, j]` is an element."""

    @property
    def dtype(self) -> DType:
        """The dtype of its elements."""

    @property
    def float_dtype(self) -> DType:
        """Its dtype where that is a float, else `float32`."""

    @property
    def shape(self) -> tuple[Val, ...]:
        """Its extents, outermost first."""

    @property
    def ndim(self) -> int:
        """Its number of axes."""

    def __getitem__(self, at: Coordinates, /) -> Val: ...
    def __setitem__(self, at: Coordinates, value: Operand, /) -> None: ...
    def row(self, at: Coordinates) -> Array:
        """The part at these coordinates of its first axes."""

    def tiles(self, shape: Sequence[int]) -> tuple[Val, ...]:
        """Along each axis, how many tiles of a literal shape cover the array: groups that each store to a tile of their own
        never race.
        """

    def tile(self, number: Coordinates, shape: Sequence[int]) -> Array:
        """The tile of a literal shape with these numbers along the axes, as an array. Outside of the tile or of this array a load
        gives 0, and a store does nothing.
        """

    def at_or(self, at: Coordinates, other: Operand) -> Val:
        """The element, or `other` where the coordinates are outside of the array."""

    def at_if(self, inside: Val, at: Coordinates, other: Operand) -> Val:
        """The element where a condition holds, else `other`. Nothing is loaded where it does not."""

    def at_atomic(self, at: Coordinates) -> Val:
        """The element, which other groups may be changing atomically."""

    def set_if(self, inside: Val, at: Coordinates, value: Operand) -> None:
        """Stores an element where a condition holds."""

    def atomic(self, op: Op, at: Coordinates, value: Operand) -> None:
        """Combines an element atomically with a value, in any order among threads."""

    def fetch(self, op: Op, at: Coordinates, value: Operand) -> Val:
        """As `atomic`; gives the element from before."""

class Var:
    """A variable of a thread."""

    @property
    def dtype(self) -> DType:
        """The dtype of its elements."""

    def get(self) -> Val:
        """The value that was stored last."""

    def set(self, value: Operand) -> None:
        """Stores a value of the variable's dtype."""

class Body:
    """A loop, a group or a condition that waits for its function: a decorator that runs the function once, and gives `None`."""

    def __call__(self, function: Callable[..., object], /) -> None: ...

class Lang:
    """A kernel that is being recorded. Arguments are declared before the first loop."""

    def size(self, name: str) -> Val:
        """A size: a number that is not known before the kernel is called. An input says it, or `with_size`."""

    def sizes(self, *names: str) -> tuple[Val, ...]:
        """Several sizes."""

    def parameter(self, name: str, values: Sequence[int]) -> int:
        """A number among these, as the extent of a tile: the first one, unless `with_parameter` or `Device.tune` chooses another."""

    def limit(self, size: Operand, most: int) -> None:
        """Says that a number that follows from sizes is at most `most`: a call with a larger one is an error."""

    def input(self, name: str, shape: Extents) -> Array:
        """The next input, in the dtype of the tensor that the caller gives."""

    def output(self, name: str, shape: Extents, dtype: DTypeLike) -> Array:
        """A result, each element of which is stored at most once."""

    def output_filled(self, name: str, shape: Extents, dtype: DTypeLike, fill: bool | float = 0) -> Array:
        """A result all elements of which are `fill` before the kernel runs. It may be read, and changed atomically."""

    def output_from(self, name: str, input: Array) -> Array:
        """A result that is a copy of an input before the kernel runs. It may be read, and changed atomically."""

    def scratch(self, name: str, shape: Extents, dtype: DTypeLike) -> Array:
        """Memory of zeros that only the kernel sees, as counters that groups share."""

    def look_back(self, name: str, op: Op, dtype: DTypeLike, tiles: Operand) -> LookBack:
        """Look-back across groups, for so many tiles: each group gets the combination of all tiles before its own, in one launch.

        The operation is associative and commutative, the dtype has 32 or 64 bits. The device needs 32-bit atomics, or runs
        groups one after another.
        """

    def queue(self, name: str, capacity: Operand) -> Queue:
        """A queue of integers from 0 to 2^30 - 1 that groups share, with so many slots. Each slot is used once."""

    def each(self, space: Extents) -> Body:
        """Runs the function once for each point of a space, in any order and at the same time."""

    def groups(self, space: Extents, threads: int = 256) -> Body:
        """Groups of threads, one for each point of a space of up to three axes: the function gets the group and the point.

        All threads of a group run the function with the same values. What each thread does for itself stands in
        `Group.each` and in functions of the group's other methods. Threads are a power of two up to 1024.
        """

    def for_each(self, span: Span) -> Body:
        """Runs the function once for each number, in order."""

    def fold(self, span: Span, init: _State, f: Callable[[_State, Val], Any]) -> _State:
        """Runs `f(state, i)` for each number, in order, with the state that the one before gave: a value, or a tuple."""

    def while_(self, condition: Callable[[], Operand]) -> Body:
        """Runs the function as long as `condition()` holds. Variables and arrays keep values from one iteration to the next.

        A thread ends such a loop after 2^30 iterations, or half of the driver's limit. Then reading a result of the call raises a
        `KernelError`, and `Kernel.check` names the line of the loop.
        """

    def break_if(self, condition: Operand) -> None:
        """Ends the innermost loop where a condition holds. The call stands directly in the body of `for_each`, `fold` or
        `while_`, not within a `when`. A `fold` gives the state that the iteration began with.
        """

    def when(self, condition: Operand) -> Body:
        """Runs the function where a condition holds."""

    def when_else(self, condition: Operand, then: Callable[[], object], otherwise: Callable[[], object]) -> None:
        """Runs one function or another."""

    def var(self, init: Operand, dtype: DTypeLike | None = None) -> Var:
        """A variable of a thread that begins with a value; a number needs a dtype."""

    def array(self, shape: int | Sequence[int], dtype: DTypeLike) -> Array:
        """Storage of one thread, not initialised."""

    def value(self, x: Operand, dtype: DTypeLike) -> Val:
        """A value of a dtype: of a number, or of another value by conversion."""

    def index(self, x: int) -> Val:
        """An index: a value of `int64`."""

    def where(self, condition: Val, x: Operand, y: Operand) -> Val:
        """`x` where a condition holds, else `y`."""

class Group:
    """A group of threads. Where a device has no threads that share storage, it is one thread."""

    @property
    def threads(self) -> int:
        """Its number of threads."""

    def each(self, space: Extents) -> Body:
        """Runs the function once for each point of a space, its points spread over the threads."""

    def reduce(self, op: Op, span: Span, f: Callable[[Val], Val]) -> Val:
        """Combines `f(i)` of each number of a range; all threads get the result."""

    def scan(
        self, op: Op, span: Span, dtype: DTypeLike, value: Callable[[Val], Operand], emit: Callable[[Val, Val, Val], object]
    ) -> Val:
        """A scan of `value(i)` along a range: `emit(i, before, after)` gets each number with the combination of the values
        before it, and with its own. All threads get the combination of all.
        """

    def rank(self, span: Span, bits: int, digit: Callable[[Val], Operand], emit: Callable[[Val, Val], object]) -> None:
        """Ranks elements by a digit of 1 to 8 bits, an integer: `emit(i, place)` gets the number of each and its place among all,
        in the order of digits, and of numbers where digits are equal, both `int64`. A step of a radix sort. `digit` runs twice.
        """

    def append(self, counter: Array, span: Span, condition: Callable[[Val], Operand], emit: Callable[[Val, Val], object]) -> None:
        """Appends the numbers of a range for which a condition holds to a list that groups share, and whose length is in `counter`,
        an array of one integer: `emit(i, place)` gets each number and its place, both `int64`. Groups come in any order.
        """

    def exchange(
        self, n: int, dtype: DTypeLike, value: Callable[[Val], Operand], source: Callable[[Val], Operand], emit: Callable[[Val, Val], object]
    ) -> None:
        """Permutes `n` values: `value(i)` gives that of each place, `source(i)` the place that a place takes its value from, and
        `emit(i, x)` gets each place, `int64`, with the value that it took: 0 where the source is no place.

        | permutation | `source(i)` |
        |---|---|
        | transposition of `rows * columns` places | `i % rows * columns + i // rows` |
        | rotation by `by` | `(i + by) % n` |
        """

    def pipeline(
        self,
        stages: int,
        span: Span,
        shape: int | Sequence[int],
        load: Callable[..., Val | Sequence[Val]],
        compute: Callable[..., object],
    ) -> None:
        """Runs a step for each number of a range with tiles of shared storage of a shape.

        `load(step, *at)` gives an element of a tile, or a tuple with one of each of several; it runs several times.
        `compute(step, *tiles)` uses the tiles, which are arrays of the dtypes that `load` gives. While a step computes, the
        elements of the step `stages - 1` behind it are on their way; there is storage for `stages` steps.
        """

    def elect(self, f: Callable[[], object]) -> None:
        """Runs the function in one thread of the group: the first."""

    def broadcast(self, dtype: DTypeLike, f: Callable[[], Operand]) -> Val:
        """The value that `f()` gives in one thread of the group, the first, for all threads, converted to a dtype."""

    def copy(self, source: Array, target: Array) -> None:
        """Copies an array, as a tile of an argument, to another one with its extents: into shared storage, or out of it."""

    def shared(self, shape: int | Sequence[int], dtype: DTypeLike) -> Array:
        """Storage that all threads of the group see, not initialised."""

    def matrix(self, shape: tuple[int, int] | Sequence[int], dtype: DTypeLike) -> Matrix:
        """A matrix of zeros, spread over the threads. Extents are powers of two."""

class LookBack:
    """Combinations of tiles that groups publish for one another; see `Lang.look_back`."""

    def ticket(self, group: Group) -> Val:
        """The number of the tile that the group works on, `int64`. Tickets are given in order: the groups of all tiles before it
        have started.
        """

    def prefix(self, group: Group, tile: Operand, sum: Val, recompute: Callable[[Val], Operand]) -> Val:
        """Publishes the combination of a tile, and gives that of all tiles before it.

        `recompute(tile)` gives the combination of another tile, which its group did not publish in time. If it combines in the
        same order as that group does, results do not depend on the schedule.
        """

class Queue:
    """A queue of work that groups share, none of which waits for another; see `Lang.queue`."""

    def push(self, item: Operand) -> Val:
        """Puts an item, an integer, in the queue; gives a `bool`: false where all slots were used, and for items that are not from 0
        to 2^30 - 1.

        A group has to call `drain` afterwards, or the item may stay in the queue. Where a group does something together, one of
        its threads pushes.
        """

    def pop(self, group: Group) -> Val:
        """Takes an item, `int64`; gives -1 if there is none. All threads of the group get it."""

    def drain(self, group: Group) -> Body:
        """Takes items until there are none, and runs the function for each by the whole group. The function may push further ones."""

class Matrix:
    """A matrix spread over the threads of a group, for sums of products: by matrix instructions where the device has them."""

    @property
    def shape(self) -> tuple[int, int]:
        """Its extents."""

    @property
    def dtype(self) -> DType:
        """The dtype of its elements."""

    def fill(self, value: Operand) -> None:
        """Makes all elements one value."""

    def map(self, f: Callable[[Val, Val, Val], Operand]) -> None:
        """Replaces each element `x` by `f(i, j, x)`."""

    def map_rows(self, rows: Sequence[Rows], f: Callable[..., Operand]) -> None:
        """As `map`, of `f(i, j, x, *values)` with the values of the element's row."""

    def each(self, *rows: Rows) -> Body:
        """Calls the function with `i, j, x` of each element and the values of its row: to store it."""

    def reduce_rows(self, op: Op) -> Rows:
        """For each row the combination of its elements."""

    def rows(self, value: Operand) -> Rows:
        """A value for each of its rows, all `value`."""

    def add_product(self, steps: Span, left: Callable[[Val, Val], Val], right: Callable[[Val, Val], Val]) -> None:
        """Adds the product of two matrices, whose elements are `left(i, step)` and `right(step, j)`.

        Factors are halves where matrix instructions serve; otherwise they are converted to the dtype of the sums.
        """

    def add_product_of(self, matrix: Matrix, dtype: DTypeLike, right: Callable[[Val, Val], Val]) -> None:
        """Adds the product of a matrix, converted to a dtype, and one whose elements are `right(step, j)`."""

    def add_product_after(self, columns: int, dtype: DTypeLike, left: Callable[[], Matrix], right: Callable[[Val, Val], Val]) -> None:
        """Adds the product of the matrix that `left()` gives, converted to a dtype, and one whose elements are `right(step, j)`,
        which are loaded while `left` computes. The left matrix has `columns` columns, a power of two, and the rows and dtype of the
        sums.
        """

class Rows:
    """A value for each row of a matrix."""

    def map(self, others: Sequence[Rows], f: Callable[..., Operand]) -> Rows:
        """New values `f(x, *values)`, each made of those of its row."""

    def set(self, others: Rows) -> None:
        """Takes over the values of others: the state of a loop."""

    def fill(self, value: Operand) -> None:
        """Makes all of them one value."""

class KernelGradient:
    """The arguments of a kernel's gradient rule."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of the call."""

    @property
    def output(self) -> Tensor:
        """The output whose cotangent is given."""

    @property
    def number(self) -> int:
        """Its number among the outputs."""

    @property
    def cotangent(self) -> Tensor:
        """The cotangent of the output."""
