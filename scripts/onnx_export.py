"""Models that zyx exported, checked by `onnx` and run by onnxruntime.

    ZYX_ONNX_EXPORT=FOLDER cargo test -p zyx-onnx --test export
    python scripts/onnx_export.py FOLDER

The test writes a folder for each model: `model.onnx`, and for each choice of named sizes `values-N.safetensors` with its
inputs and what the exported function gave. Fails when the checker refuses a model, or onnxruntime does, or gives other results; operators that
onnxruntime has no kernel of for a dtype are listed here, and one that has become available fails, too.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

# Models with an operator that onnxruntime 1.32 has no kernel of on the CPU.
NO_KERNEL = {f"{name}_f64" for name in
             ("acos", "asin", "atan", "atan2", "cosh", "erf", "gelu_exact", "recurrence", "sinh", "tan")}

DTYPES = {"BOOL": "?", "U8": "u1", "I8": "i1", "U16": "u2", "I16": "i2", "U32": "u4", "I32": "i4", "U64": "u8",
          "I64": "i8", "F16": "f2", "F32": "f4", "F64": "f8"}


def values(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, data = json.loads(data[8:8 + length]), data[8 + length:]
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[slice(*x["data_offsets"])], DTYPES[x["dtype"]]).reshape(x["shape"])
            for name, x in header.items()}


def differs(got, want):
    """What is wrong with a result, if anything."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if got.dtype.kind != "f":
        wrong = np.count_nonzero(got != want)
        return f"{wrong} of {want.size} elements" if wrong else None
    bound = {2: 4e-3, 4: 1e-5, 8: 1e-11}[got.dtype.itemsize]
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = want[np.isfinite(want)]
    scale = max(1.0, np.abs(finite).max(initial=0))
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        same |= np.abs(got - want) <= bound * scale
    return None if same.all() else f"{np.count_nonzero(~same)} of {want.size} elements, {got.ravel()[:4]} instead of {want.ravel()[:4]}"


def failure(folder):
    model = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    paths = sorted(folder.glob("values-*.safetensors"))
    wrong = [] if paths else ["no values"]
    for path in paths:
        known = values(path)
        results = session.run(names, {x.name: known[x.name] for x in session.get_inputs()})
        wrong += [f"{path.stem} {name}: {what}" for name, y in zip(names, results) if (what := differs(y, known[name]))]
    return "; ".join(wrong) or None


def main():
    folders = sorted(path.parent for path in pathlib.Path(sys.argv[1]).glob("*/model.onnx"))
    if not folders:
        sys.exit(f"no models in {sys.argv[1]}")
    failed = 0
    for folder in folders:
        try:
            wrong = failure(folder)
        except Exception as error:  # noqa: BLE001: whatever a model is refused with is its failure
            wrong = str(error).splitlines()[0]
        if folder.name in NO_KERNEL:
            has_none = wrong and ("NOT_IMPLEMENTED" in wrong or "does not support double" in wrong)
            wrong = None if has_none else f"listed as having no kernel, but: {wrong}"
        if wrong:
            failed += 1
            print(f"{folder.name}: {wrong}")
    print(f"{len(folders)} models, {failed} failed, {len(NO_KERNEL)} known to have no kernel")
    sys.exit(failed > 0)


main()
