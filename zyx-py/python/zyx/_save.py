"""`save` and `load` of tensors, state dicts, checkpoints and whole models.

A file is a safetensors file. A dict of tensors is stored as that, so other readers of safetensors get it too. Of
anything else the tensors are named by the path to them, and one more tensor of bytes, `__structure__`, has the rest as
JSON: numbers, strings, lists, tuples, dicts, dtypes and generators. So loading executes nothing, whoever wrote the file.

A value that holds modules, optimizers or other objects is pickled. Loading a pickle may execute programs: `load` reads it
only with `weights_only=False`.
"""

import os

from ._core import Device, DType, Parameter, Rng, Tensor, tensor
from ._core import load_pytorch, load_safetensors, _pytorch_from_bytes, safetensors_from_bytes, save_safetensors
from ._core import _write_safetensors

# How pickles begin that `save` writes: protocol 5 and a frame.
_PICKLE = b"\x80\x05\x95"
_STRUCTURE = "__structure__"
# How files of PyTorch begin, since 1.6 and before.
_PYTORCH = (b"PK\3\4", b"\x80\2\x8a\n")
# The files of a model in a folder, that which is taken first.
_MODELS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


def save(obj, f, **options):
    """Writes tensors, and numbers, strings, lists, tuples and dicts that hold them, to a file: a path or something
    with `write`. Options of PyTorch change nothing.

    Modules, optimizers and other objects are pickled; smaller, and safer to load, are their `state_dict()`s. A `TypeError`
    names an object that cannot be saved.
    """
    tensors = {}
    if not _is_state(obj):
        import json

        try:
            text = json.dumps(_encode(obj, "", tensors)).encode()
        except TypeError as error:
            _save_pickle(obj, f, error)
            return
        tensors[_STRUCTURE] = Tensor.from_bytes(text, "uint8", (len(text),))
    else:
        tensors = obj
    if hasattr(f, "write"):
        _write_safetensors(tensors, f)
    else:
        save_safetensors(tensors, f)


def _save_pickle(obj, f, reason):
    """Writes a pickle of an object."""
    import io
    import pickle

    data = io.BytesIO()
    try:
        pickle.Pickler(data, 5).dump(obj)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(f"{reason}; it cannot be pickled: {error}") from None
    if hasattr(f, "write"):
        f.write(data.getbuffer())
        return
    with open(os.fspath(f), "wb") as file:
        file.write(data.getbuffer())


def _load_pickle(data, map_location, weights_only):
    import pickle

    if weights_only:
        raise pickle.UnpicklingError("load: the file holds objects, and loading it may execute programs; if you trust it: load(f, weights_only=False)")
    found = pickle.loads(data)
    if map_location is not None:
        from ._tree import flatten

        for x in flatten(found)[0]:
            if hasattr(x, "named_parameters"):
                x.to(device=map_location)
    return found


def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None):
    """What `save` wrote, on the device `map_location`, from a path or something with `read`. Of a file of PyTorch: its
    tensors by name, those of dicts within one another joined by dots (`load_pytorch`). A model in several files is
    named by its index or its folder. A file with modules or other objects is read with `weights_only=False`, which may
    execute programs.
    """
    if pickle_module is not None:
        raise NotImplementedError("load: pickle_module")
    if isinstance(map_location, dict):
        # PyTorch's names of devices, all of which go to one.
        places = {str(getattr(place, "spec", place)) for place in map_location.values()}
        if len(places) > 1:
            raise NotImplementedError(f"load: map_location to several devices {sorted(places)}")
        map_location = next(iter(places), None)
    if map_location is not None and not isinstance(map_location, (str, Device)):
        raise TypeError(f"load: map_location is a device, not {type(map_location).__name__}")
    if hasattr(f, "read"):
        data = f.read()
        if data[:3] == _PICKLE:
            return _load_pickle(data, map_location, weights_only)
        tensors = (_pytorch_from_bytes if data[:4] in _PYTORCH else safetensors_from_bytes)(data, map_location)
    else:
        tensors = {}
        for path in _paths(os.fspath(f)):
            with open(path, "rb") as file:
                start = file.read(4)
                if start[:3] == _PICKLE:
                    return _load_pickle(start + file.read(), map_location, weights_only)
                is_pytorch = start in _PYTORCH
            tensors.update((load_pytorch if is_pytorch else load_safetensors)(path, map_location))
    if _STRUCTURE not in tensors:
        return tensors
    import json

    structure = tensors.pop(_STRUCTURE)
    try:
        return _decode(json.loads(structure.to_bytes()), tensors)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"load: the structure of {f!r} is damaged: {error!r}") from None


def _paths(path):
    """The files of a model: those of a folder, or those that an index of files of PyTorch names."""
    if os.path.isdir(path):
        named = [os.path.join(path, name) for name in _MODELS]
        path = next(filter(os.path.isfile, named), None)
        if path is None:
            raise FileNotFoundError(f"load: the folder has none of {', '.join(_MODELS)}")
    if not str(path).endswith(".bin.index.json"):
        return [path]
    import json

    with open(path, "rb") as file:
        try:
            names = sorted(set(json.load(file)["weight_map"].values()))
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"load: the index {path!r} is damaged: {error!r}") from None
    if not all(name == os.path.basename(name) for name in names):
        raise ValueError(f"load: the index {path!r} names files outside of its folder")
    return [os.path.join(os.path.dirname(path), name) for name in names]


def _is_state(obj):
    """Whether this is a plain dict of names and tensors."""
    return isinstance(obj, dict) and all(
        type(k) is str and k not in ("", _STRUCTURE, "__metadata__") and type(v) is Tensor and not v.requires_grad
        for k, v in obj.items()
    )


def _encode(x, path, tensors):
    kind = tuple if isinstance(x, tuple) else type(x)
    if x is None or kind in (bool, int, float, str):
        return x
    if isinstance(x, Tensor):
        name = path or "tensor"
        while name in tensors or name in (_STRUCTURE, "__metadata__"):
            name += "'"
        tensors[name] = x.detach()
        return {"parameter" if isinstance(x, Parameter) else "tensor": [name, x.requires_grad]}
    if kind is list:
        return [_encode(item, _join(path, i), tensors) for i, item in enumerate(x)]
    if kind in (tuple, set):
        return {kind.__name__: _encode(list(x), path, tensors)}
    if isinstance(x, dict):
        return {"dict": [[_encode(k, _join(path, "key"), tensors), _encode(v, _join(path, k), tensors)] for k, v in x.items()]}
    if kind is DType:
        return {"dtype": x.name}
    if kind is Rng:
        return {"rng": [x.key(), x.counter()]}
    if kind.__module__ == "numpy":
        return _encode(x.item() if not getattr(x, "ndim", 1) else tensor(x), path, tensors)
    way = "its state_dict()" if hasattr(x, "state_dict") else "numbers, strings, lists, dicts or tensors, as vars(..) gives them"
    raise TypeError(f"save: {path or 'this'} is a {kind.__name__}; save {way}")


def _join(path, key):
    return f"{path}.{key}" if path else str(key)


def _decode(x, tensors):
    if isinstance(x, list):
        return [_decode(item, tensors) for item in x]
    if not isinstance(x, dict):
        return x
    ((tag, value),) = x.items()
    if tag == "dict":
        return {_decode(k, tensors): _decode(v, tensors) for k, v in value}
    if tag in ("tuple", "set"):
        return (tuple if tag == "tuple" else set)(_decode(value, tensors))
    if tag == "dtype":
        return DType(value)
    if tag == "rng":
        return Rng.at(*value)
    if tag in ("tensor", "parameter"):
        name, requires_grad = value
        found = tensors[name]
        return Parameter(found, requires_grad) if tag == "parameter" else found.requires_grad_() if requires_grad else found
    raise ValueError(f"{tag!r} is no kind of thing")
