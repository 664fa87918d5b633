"""DLPack capsules as others may make them: what they say is checked, and each is deleted once."""

import ctypes
import gc
import threading

import numpy as np
import pytest
import zyx


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DlTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype", DataType), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]  # fmt: skip


class Managed(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Managed._fields_ = [("tensor", DlTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER),
                ("flags", ctypes.c_uint64), ("tensor", DlTensor)]  # fmt: skip


api = ctypes.pythonapi
api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Producer:
    """An object with `__dlpack__` of one capsule, which counts how often it is deleted."""

    def __init__(self, versioned=False, version=(1, 0), flags=0, shape=(2, 3), strides=None, dtype=(2, 64, 1), device=1, ndim=None, offset=0, data=..., deleter=True):
        self.memory = np.arange(64.0)
        self.deleted = 0
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape) if shape is not None else None
        self.strides = (ctypes.c_int64 * max(len(strides), 1))(*strides) if strides is not None else None
        self.deleter = DELETER(self._delete) if deleter else DELETER()
        none = ctypes.POINTER(ctypes.c_int64)()
        cast = lambda x: ctypes.cast(x, ctypes.POINTER(ctypes.c_int64)) if x is not None else none  # noqa: E731
        tensor = DlTensor(self.memory.ctypes.data if data is ... else data, device, 0, len(shape or ()) if ndim is None else ndim,
                          DataType(*dtype), cast(self.shape), cast(self.strides), offset)  # fmt: skip
        if versioned:
            self.managed, self.name = Versioned(*version, None, self.deleter, flags, tensor), b"dltensor_versioned"
        else:
            self.managed, self.name = Managed(tensor, None, self.deleter), b"dltensor"
        self.capsule = api.PyCapsule_New(ctypes.addressof(self.managed), self.name, None)

    def _delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **options):
        self.options = options
        return self.capsule

    @property
    def used(self):
        return api.PyCapsule_GetName(self.capsule).startswith(b"used_")


BOTH = pytest.mark.parametrize("versioned", [False, True])


@BOTH
@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("take", [zyx.from_dlpack, zyx.tensor, lambda x: zyx.from_dlpack(x.capsule)])
def test_a_capsule_is_deleted_once(versioned, copy, take):
    p = Producer(versioned, offset=16)
    x = take(p) if copy is None else zyx.from_dlpack(p, copy=copy)
    assert p.used and x.tolist() == np.arange(2.0, 8).reshape(2, 3).tolist()
    y = x + 1
    assert y.sum().item() == 33
    del x, y
    gc.collect()
    assert p.deleted == 1
    with pytest.raises(TypeError):
        zyx.from_dlpack(p)
    assert p.deleted == 1


@BOTH
def test_layouts(versioned):
    def made(**options):
        p = Producer(versioned, **options)
        x = zyx.from_dlpack(p)
        found = x.tolist()
        del x
        assert p.deleted == 1
        return found

    assert made(strides=(1, 2)) == [[0, 2, 4], [1, 3, 5]]
    assert made(strides=(-3, 1), offset=24) == [[3, 4, 5], [0, 1, 2]]
    assert made(strides=(0, 0), offset=8) == [[1, 1, 1]] * 2
    assert made(shape=(2**20,), strides=(0,))[-1] == 0
    assert made(shape=()) == 0
    assert made(shape=(1, 2), strides=(2**62, 1)) == [[0, 1]]
    # Nothing is read of what has no elements.
    for data in [None, 8]:
        assert made(shape=(0, 2**40), data=data) == [] and made(shape=(3, 0), strides=(2**62, 2**62), data=data) == [[]] * 3
    assert made(shape=(2,), dtype=(0, 64, 1)) == [0, 0x3FF0000000000000]
    assert made(shape=(2,), dtype=(6, 8, 1)) == [False, False]
    # Host memory that a GPU reads is host memory.
    assert made(shape=(2,), device=3) == made(shape=(2,), device=11) == [0, 1]
    assert made(shape=(2,), flags=7) == [0, 1]


@BOTH
@pytest.mark.parametrize(
    "wrong",
    [
        *[{"device": device} for device in [0, 2, 4, 7, 10, 13, 14, -1, 2**31 - 1]],
        {"data": None},
        {"shape": None, "ndim": 2},
        *[{"ndim": ndim} for ndim in [-1, 17, 2**31 - 1, -(2**31)]],
        *[{"shape": shape} for shape in [(-1,), (2**62,), (2**31, 2**31, 2**31), (2**63 - 1,), (2, 2**62), (2**60, 16), (2, -(2**63))]],
        *[{"strides": strides} for strides in [(2**62, 1), (-(2**62), 1), (2**63 - 1, 1), (-(2**63), 1), (2**60, 2**60), (-(2**61), 1)]],
        *[{"offset": offset} for offset in [2**63, 2**64 - 1, 2**64 - 8, 2**64 - 2**20]],
        *[{"dtype": dtype} for dtype in [(2, 64, 2), (2, 64, 0), (2, 8, 1), (3, 64, 1), (5, 64, 1), (2, 128, 1), (0, 4, 1), (6, 1, 1), (255, 255, 1), (0, 0, 0)]],
        {"data": 2**64 - 16},
        {"data": 8, "strides": (-8, 1)},
    ],
)  # fmt: skip
def test_what_cannot_be(versioned, wrong):
    for take in [zyx.from_dlpack, zyx.tensor, lambda x: zyx.from_dlpack(x, copy=True)]:
        p = Producer(versioned, **wrong)
        with pytest.raises((BufferError, ValueError, TypeError, MemoryError)):
            take(p)
        # It was consumed, and is freed all the same.
        assert p.used and p.deleted == 1


def test_versions():
    for version in [(0, 8), (2, 0), (2**32 - 1, 0)]:
        p = Producer(True, version)
        with pytest.raises(BufferError, match="version"):
            zyx.from_dlpack(p)
        # Who made it frees it.
        assert not p.used and p.deleted == 0
    assert zyx.from_dlpack(Producer(True, (1, 9))).shape == (2, 3)
    assert zyx.from_dlpack(Producer(deleter=False)).shape == (2, 3)
    p = Producer()
    zyx.from_dlpack(p)
    assert p.options["max_version"] == (1, 0)


def test_devices_of_others():
    class Elsewhere(Producer):
        def __dlpack_device__(self):
            return (2, 0)

    p = Elsewhere()
    assert zyx.from_dlpack(p).shape == (2, 3)
    assert p.options["dl_device"] == (1, 0)
    p = Elsewhere(device=2)
    with pytest.raises(BufferError, match="device type 2"):
        zyx.from_dlpack(p)
    with pytest.raises(BufferError, match="device type 2"):
        zyx.from_dlpack(Elsewhere(device=2), copy=False)

    class Refusing(Elsewhere):
        def __dlpack__(self, **_):
            raise RuntimeError("no")

    with pytest.raises(BufferError, match="CPU first"):
        zyx.from_dlpack(Refusing())


def test_what_is_given_out():
    x = zyx.tensor([[1.0, 2.0]])
    plain = lambda c: ctypes.cast(api.PyCapsule_GetPointer(c, b"dltensor"), ctypes.POINTER(Managed)).contents  # noqa: E731
    new = lambda c: ctypes.cast(api.PyCapsule_GetPointer(c, b"dltensor_versioned"), ctypes.POINTER(Versioned)).contents  # noqa: E731
    address = x.numpy().__array_interface__["data"][0]
    # Shared and marked as read-only, or copied and said to be; who cannot be told that gets a copy.
    for options, flags, shares in [({}, 1, True), ({"copy": False}, 1, True), ({"copy": True}, 2, False)]:
        capsule = x.__dlpack__(max_version=(1, 3), **options)
        made = new(capsule)
        assert (made.major, made.flags, made.tensor.data == address) == (1, flags, shares)
    capsule = x.__dlpack__(max_version=(0, 8))
    assert plain(capsule).tensor.data != address
    ctypes.cast(plain(capsule).tensor.data, ctypes.POINTER(ctypes.c_float))[0] = 7.0
    assert x.tolist() == [[1.0, 2.0]]
    with pytest.raises(BufferError, match="max_version"):
        x.__dlpack__(copy=False)
    for options in [{"dl_device": (2, 0)}, {"dl_device": (1, 1)}, {"stream": 1}]:
        with pytest.raises(BufferError):
            x.__dlpack__(**options)
    made = plain(capsule).tensor
    assert (made.ndim, made.device_type, made.dtype.code, made.dtype.bits, made.dtype.lanes) == (2, 1, 2, 32, 1)
    # Memory is kept by what others hold alone, and freed on whatever thread lets it go.
    kept = np.from_dlpack(zyx.arange(1000, dtype="float32"))
    thread = threading.Thread(target=lambda: kept.sum())
    thread.start()
    thread.join()
    gc.collect()
    assert kept[999] == 999


def test_the_memory_of_capsules_comes_back():
    def rss():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    x = zyx.arange(1 << 18, dtype="float32")
    x.realize()
    for version in [None, (1, 0)]:
        start = None
        for i in range(300):
            x.__dlpack__(max_version=version, copy=True)
            if i == 100:
                start = rss()
        assert rss() < start + (64 << 20)
