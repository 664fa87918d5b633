"""`x[...]` against NumPy."""

import numpy as np
import pytest
import zyx
from conftest import same

A = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
MASK = A % 3 == 0
KEYS = [
    np.s_[0], np.s_[-1], np.s_[1, 2], np.s_[1, 2, 3, 4], np.s_[...], np.s_[..., 0], np.s_[0, ..., 0], np.s_[()],
    np.s_[1:], np.s_[:, 1:3], np.s_[::2, ::-1], np.s_[:, ::-2, 3:0:-1], np.s_[5:], np.s_[-3:-1], np.s_[:, 2:1],
    np.s_[:, :, ::3], np.s_[None], np.s_[:, None, ..., None], np.s_[0, None, :, 1], np.s_[[0, 1, 1]], np.s_[[-1]],
    np.s_[[]], np.s_[:, [0, 2]], np.s_[:, [0, 2], [1, 3]], np.s_[[0, 1], :, [1, 3]], np.s_[0, :, [1, 3]],
    np.s_[:, 0, [1, 3]], np.s_[:, [0, 2], 1], np.s_[[[0, 1], [1, 0]]], np.s_[:, [[0, 1]], :, [[1], [2]]],
    np.s_[1, [0, 2], ..., 0], np.s_[None, [0, 1]], np.s_[:, np.array([True, False, True])], MASK, np.s_[MASK[:, :, 0, 0]],
    np.s_[0, MASK[0]], np.s_[:, :, MASK[0, 0]], np.s_[..., MASK[0, 0, 0]], np.s_[True], np.s_[False], np.s_[0, True],
    np.s_[np.int64(1)], np.s_[np.array(1)], np.s_[np.array([1, 0], np.int32)], np.s_[np.array([1, 0], np.uint8)],
    np.s_[np.array([0, 1]), 1:, ::2], np.s_[:, np.array([2, 0]), None], np.s_[[True, False]],
    np.s_[:, [True, False, True], [0, 1]], np.s_[np.zeros((0, 2), int)],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=lambda key: str(key)[:40].replace("\n", ""))
def test_as_numpy(key):
    x, parts = zyx.tensor(A), key if isinstance(key, tuple) else (key,)
    same(x[key], A[key])
    # Arrays as tensors.
    tensors = tuple(zyx.tensor(k) if isinstance(k, (np.ndarray, list)) and np.size(k) else k for k in parts)
    same(x[tensors if isinstance(key, tuple) else tensors[0]], A[key])


def test_random_keys(rng):
    """Keys of every combination; what NumPy refuses is refused."""
    for _ in range(300):
        shape = tuple(rng.integers(0, 5, rng.integers(0, 5)))
        a = rng.integers(0, 100, shape)
        x, key = zyx.tensor(a), []
        for n in shape[: rng.integers(0, len(shape) + 1)]:
            kind = rng.integers(0, 7)
            if kind == 0:
                key.append(int(rng.integers(-n - 1, n + 1)))
            elif kind in (1, 2):
                ends = [None if rng.integers(3) == 0 else int(rng.integers(-n - 2, n + 3)) for _ in range(2)]
                key.append(slice(*ends, [None, 1, 2, -1, -3][rng.integers(5)]))
            elif kind == 3:
                key.append(rng.integers(-n, n, rng.integers(0, 4)) if n else slice(None))
            elif kind == 4 and n:
                key.append(rng.integers(0, 2, n).astype(bool))
            elif kind == 5:
                key += [None, slice(None)]
            else:
                key.append(slice(None))
        if rng.integers(3) == 0:
            key.insert(int(rng.integers(0, len(key) + 1)), Ellipsis)
        key = tuple(key)
        try:
            expected = a[key]
        except IndexError:
            with pytest.raises(IndexError):
                x[key]
        else:
            same(x[key], expected)


def test_refusals():
    x = zyx.tensor(A)
    for key in [2, -3, (0, 3), (0, 0, 0, 0, 0), (..., ...), 0.5, "a", [0.5], [2], [-3], MASK[0], 2**80,
                np.array([1.0]), zyx.tensor(1.5), ([0, 1], [0, 1, 2])]:  # fmt: skip
        with pytest.raises((IndexError, TypeError)):
            x[key]
    with pytest.raises(ValueError):
        x[::0]
    with pytest.raises(TypeError):
        del x[0]
    with pytest.raises(IndexError):
        zyx.tensor(1)[0]


def test_gradients_pass():
    x = zyx.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (g,) = (x[[0, 0, 1], [1, 1, 0]] * zyx.tensor([1.0, 10.0, 100.0])).sum().gradient(x)
    assert g.tolist() == [[0, 11], [100, 0]]
    (g,) = x[:, ::-1][0].sum().gradient(x)
    assert g.tolist() == [[1, 1], [0, 0]]
