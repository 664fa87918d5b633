"""Kernels: functions of Python that are recorded once and run on any device."""

import functools

from . import lang  # noqa: F401 - completes its classes
from ._core import DType, _Kernel


def kernel(function=None, *, elementwise=None, name=None):
    """A kernel that a function of Python writes: called with tensors, it gives lazy tensors.

    A function whose first parameter is called `k` writes the kernel with it (`zyx.lang.Lang`):

        @zyx.kernel
        def softmax(k):
            rows, cols = k.sizes("rows", "cols")
            x = k.input("x", [rows, cols])
            y = k.output("y", [rows, cols], x.dtype)

            @k.groups([rows], threads=256)
            def _(g, row):
                m = g.reduce("max", cols, lambda i: x[row, i])
                s = g.reduce("add", cols, lambda i: (x[row, i] - m).exp())

                @g.each(cols)
                def _(i):
                    y[row, i] = (x[row, i] - m).exp() / s

        softmax(zyx.tensor([[1.0, 1.0]]))  # [[0.5, 0.5]]

    Any other function is one of elements at equal places. Its inputs are broadcast, its gradient is
    derived, and it is fused as operations of tensors are:

        @zyx.kernel
        def swiglu(gate, up):
            return gate * gate.sigmoid() * up

        swiglu(zyx.zeros(2, 3), zyx.ones(3))  # zeros of shape (2, 3)

    The function runs once for each device and each combination of dtypes: what it does besides
    recording happens then. `elementwise` says which of both kinds it is, where the name of its first
    parameter does not. `name` is the kernel's in errors and profiles.
    """
    if function is None:
        return functools.partial(kernel, elementwise=elementwise, name=name)
    if not callable(function):
        raise TypeError(f"kernel: {type(function).__name__!r} object is not callable")
    if elementwise is None:
        code = getattr(function, "__code__", None)
        if code is None:
            raise TypeError("kernel: elementwise=True or False is needed for an object that is not a function")
        elementwise = code.co_varnames[:1] != ("k",) or code.co_argcount == 0
    native = _Kernel(str(name or getattr(function, "__name__", "kernel")), function, bool(elementwise))
    return Kernel(function, native)


class Kernel:
    """A function of tensors that `zyx.kernel` made."""

    def __init__(self, function, native):
        self._native = native
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *tensors):
        """The result of the kernel, or a tuple of its results."""
        return self._native(*tensors)

    def _with(self, native):
        return Kernel(self.__wrapped__, native)

    def with_size(self, **sizes):
        """The kernel with sizes that no input says."""
        native = self._native
        for name, size in sizes.items():
            native = native.with_size(name, size)
        return self._with(native)

    def with_parameter(self, **values):
        """The kernel with other values of parameters; see `zyx.lang.Lang.parameter`."""
        native = self._native
        for name, value in values.items():
            native = native.with_parameter(name, value)
        return self._with(native)

    def with_raw(self, language, code, *, entry, buffers, launch, scalars=(), threads=1, shared_bytes=0):
        """The kernel with code of its own for one backend, which runs in its place on devices that have the
        language: "CUDA C", "PTX", "OpenCL C", "WGSL" or "SPIR-V".

        `entry` is the name of the function in the code. `buffers` are pairs of a dtype and "read", "write" or
        "readwrite", one for each argument of the kernel, `scalars` the dtypes of the scalars behind them, `threads`
        those of a group. `launch` is a function whose parameters have the names of sizes; it gives the numbers of
        groups along up to three axes, and the scalars:

            double.with_raw("OpenCL C", code, entry="twice", threads=64, scalars=["uint32"],
                            buffers=[("float32", "read"), ("float32", "write")],
                            launch=lambda n: ([(n + 63) // 64], [n]))

        Nothing verifies the code: the caller promises that it keeps to this declaration, accesses each buffer only
        within its length, has no data races, and ends. Otherwise the process may crash.
        """
        parameters = getattr(launch, "__code__", None)
        if parameters is None:
            raise TypeError("with_raw: `launch` is a function whose parameters have the names of sizes")
        code = code.encode() if isinstance(code, str) else bytes(code)
        threads = [threads] if isinstance(threads, int) else list(threads)
        buffers = [(DType(dtype), access) for dtype, access in buffers]
        scalars = [DType(dtype) for dtype in scalars]
        declared = language, code, entry, buffers, scalars, (threads + [1, 1])[:3], shared_bytes
        sizes = list(parameters.co_varnames[: parameters.co_argcount])
        return self._with(self._native.with_raw(declared, launch, sizes))

    def gradient(self, rule):
        """Sets the gradient, as a decorator of a function of `zyx.lang.KernelGradient`: it gives one
        cotangent, or `None`, for each input.

            @double.gradient
            def _(of):
                return [2 * of.cotangent]

        Kernels made of this one before by `with_size` and `with_parameter` have none.
        """
        if not callable(rule):
            raise TypeError(f"gradient: {type(rule).__name__!r} object is not callable")
        self._native = self._native.with_gradient(rule)
        return rule

    def check(self, *tensors):
        """Runs the kernel in an interpreter that looks at each access. A race of threads, an access
        outside of an array or an endless loop is a `KernelError` at its line."""
        self._native.check(*tensors)

    def trace(self, *tensors, at):
        """The steps of one iteration of `each`, or of one group, in an interpreter, a text for each: line, operation and
        result. `at` has its coordinates. A mistake ends the trace; `check` names it.

            for step in softmax.trace(x, at=[0]):
                print(step)
        """
        return self._native.trace(*tensors, at=list(at))

    def to_text(self, *dtypes, device=None):
        """The kernel for inputs of these dtypes on a device, as text of the compiler's kernels with a header that
        says how it is called. A function of elements is written for arrays of one axis."""
        return self._native.to_text([DType(dtype) for dtype in dtypes], device)

    @staticmethod
    def from_text(text):
        """The kernel of a text that `to_text` gave, or that was written by hand, for the dtypes that it names. A
        `ValueError` names the line of the text that is wrong.

            text = double.to_text("float32")
            again = zyx.Kernel.from_text(text.replace("double", "twice"))
            assert again(zyx.ones(2)).tolist() == [2.0, 2.0]
        """
        native = _Kernel.from_text(text)

        def function(k):
            raise TypeError("a kernel of a text has no function")

        function.__name__ = function.__qualname__ = native.name
        return Kernel(function, native)

    def __reduce__(self):
        # As functions are: by name in pickles, themselves in copies.
        return self.__qualname__

    def __repr__(self):
        return f"<zyx.kernel {self.__qualname__}>"
