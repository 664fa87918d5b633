"""Writes the files that tests/files.rs reads, with NumPy and with the gguf package.

    pip install numpy gguf; python zyx-io/tests/data/make.py
"""

import pathlib

import gguf
import numpy as np

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(1)
np.save(here / "columns.npy", np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)))
np.save(here / "half.npy", np.array(1.5, dtype=np.float16))
arrays = {"a": np.arange(12, dtype=np.float64).reshape(3, 4), "b": np.array([True, False])}
np.savez(here / "stored.npz", **arrays)
np.savez_compressed(here / "deflated.npz", **arrays)

writer = gguf.GGUFWriter(here / "model.gguf", "test")
writer.add_uint32("answer", 42)
writer.add_array("words", ["one", "two"])
writer.add_tensor("whole", np.arange(6, dtype=np.float32).reshape(2, 3))
writer.add_tensor("half", np.arange(4, dtype=np.float16))
expected = {}
for kind in ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "Q2_K", "Q3_K"]:
    quant = gguf.GGMLQuantizationType[kind]
    elements, size = gguf.GGML_QUANT_SIZES[quant]
    blocks = rng.integers(0, 256, (2, size), dtype=np.uint8)
    # Scales that are ordinary numbers, where the block has them.
    halves = {
        "Q4_1": [0, 2],
        "Q5_1": [0, 2],
        "Q2_K": [80, 82],
        "Q3_K": [108],
        "Q4_K": [0, 2],
        "Q5_K": [0, 2],
        "Q6_K": [208],
    }
    for at in halves.get(kind, [0]):
        scale = rng.uniform(-2, 2, 2).astype(np.float16)
        blocks[:, at : at + 2] = scale.view(np.uint8).reshape(2, 2)
    expected[kind] = gguf.quants.dequantize(blocks, quant).reshape(-1)
    writer.add_tensor(kind, blocks, raw_dtype=quant)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
np.savez(here / "model.npz", **expected)
