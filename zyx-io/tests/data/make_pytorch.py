"""Writes the files of PyTorch that tests/pytorch.rs reads.

    pip install torch numpy; python zyx-io/tests/data/make_pytorch.py

`weights.pt` has the state dict of a model, `model.pt` a checkpoint: the model, its optimizer, tensors of each dtype and layout, and what is no
tensor. `expected.npz` has the values that PyTorch has for its tensors, by the names that they get.
`refused.pt` holds a module, `legacy.pt` has the checkpoint in the format before archives, `big.pt` says that its
bytes are in the other order, `conjugated.pt` has a view that negates. `protocol5.pt` is in the last version of the
pickle format, `unchecked.pt` has no checksums.
"""

import collections
import pathlib

import numpy as np
import torch

here = pathlib.Path(__file__).parent
torch.manual_seed(0)
model = torch.nn.Linear(2, 3)
optimizer = torch.optim.Adam(model.parameters())
model(torch.randn(4, 2)).sum().backward()
optimizer.step()
whole = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
noted = torch.nn.Parameter(torch.ones(2))
noted.note = "text"
attributes = torch.full((2,), 3.0)
attributes.note = 1
checkpoint = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "parameter": model.weight,
    "noted": noted,
    "attributes": attributes,
    "layouts": {
        "whole": whole,
        "transposed": whole.transpose(0, 2),
        "sliced": whole[:, 1:, ::2],
        "row": whole[1, 2],
        "repeated": whole[:, :1, :1].expand(2, 5, 3),
        "scalar": torch.tensor(2.5),
        "scalar_of": whole[1, 1, 1],
        "empty": torch.zeros(0, 3),
        "empty_of": whole[:0],
        "many": torch.arange(6).as_strided((3, 1, 2), (2, 7, 1)),
    },
    "dtypes": [
        torch.tensor([0.1, -65504.0], dtype=torch.float16),
        torch.tensor([0.1, 3e38], dtype=torch.bfloat16),
        torch.tensor([0.1, 1e300], dtype=torch.float64),
        torch.tensor([-(2**63), 2**63 - 1], dtype=torch.int64),
        torch.tensor([-(2**31), 5], dtype=torch.int32),
        torch.tensor([-(2**15), 5], dtype=torch.int16),
        torch.tensor([-128, 127], dtype=torch.int8),
        torch.tensor([0, 255], dtype=torch.uint8),
        torch.tensor([True, False]),
        torch.tensor([0, 2**16 - 1], dtype=torch.uint16),
        torch.tensor([0, 2**32 - 1], dtype=torch.uint32),
        torch.tensor([0, 2**64 - 1], dtype=torch.uint64),
        torch.tensor([1.0, -0.4375, 448.0]).to(torch.float8_e4m3fn),
        torch.tensor([1.0, -0.4375, 57344.0]).to(torch.float8_e5m2),
    ],
    "pair": (torch.ones(1), {3: torch.zeros(1)}),
    "no tensors": [1, -1, 2**70, 0.5, None, True, "text", b"bytes", {1}, (1, 2), whole.shape, whole.device, torch.float32],
}
torch.save(checkpoint, here / "model.pt")
torch.save(model.state_dict(), here / "weights.pt")


def tensors(value, name):
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from tensors(inner, [*name, str(key)])
    elif isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        for key, inner in enumerate(value):
            yield from tensors(inner, [*name, str(key)])


def numpy(x):
    x = x.detach()
    return (x.float() if x.is_floating_point() and x.element_size() < 3 and x.dtype != torch.float16 else x).numpy()


named = {".".join(name): numpy(x) for name, x in tensors(checkpoint, [])}
np.savez_compressed(here / "expected.npz", **named)

torch.save(model, here / "refused.pt")
small = collections.OrderedDict(x=torch.arange(3.0))
torch.save(checkpoint, here / "legacy.pt", _use_new_zipfile_serialization=False)
torch.save(small, here / "protocol5.pt", pickle_protocol=5)
torch.save({"x": torch.tensor([1j]).conj().imag}, here / "conjugated.pt")
torch.serialization.set_crc32_options(False)
torch.save(small, here / "unchecked.pt")
torch.serialization.set_crc32_options(True)
archive = (here / "protocol5.pt").read_bytes()
at = archive.index(b"little")
import zlib  # noqa: E402

big = archive.replace(b"little", b"bigbig").replace(zlib.crc32(b"little").to_bytes(4, "little"), zlib.crc32(b"bigbig").to_bytes(4, "little"))
(here / "big.pt").write_bytes(big)
