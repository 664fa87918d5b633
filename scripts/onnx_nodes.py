"""Writes the node tests of the package `onnx` as files: FOLDER/NAME/{model.onnx,SET/input_I.pb,SET/output_I.pb,tolerance}."""
import pathlib, sys, warnings
warnings.simplefilter("ignore")
from onnx import ModelProto, SequenceProto, TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

def proto(value, info):
    kind = info.type.WhichOneof("value")
    if isinstance(value, (TensorProto, SequenceProto)) or hasattr(value, "SerializeToString"):
        return value
    if kind == "sequence_type": return numpy_helper.from_list(value, info.name)
    if kind == "optional_type": return numpy_helper.from_optional(value, info.name)
    if kind == "map_type": return numpy_helper.from_dict(value, info.name)
    return numpy_helper.from_array(value, info.name)

out = pathlib.Path(sys.argv[1]); failed = []
for case in load_model_tests(kind="node"):
    folder = out / case.name
    try:
        for i, (inputs, outputs) in enumerate(case.data_sets):
            data = folder / f"set_{i}"; data.mkdir(parents=True, exist_ok=True)
            for name, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
                for j, (value, info) in enumerate(zip(values, infos)):
                    (data / f"{name}_{j}.pb").write_bytes(b"" if value is None else proto(value, info).SerializeToString())
        (folder / "model.onnx").write_bytes(case.model.SerializeToString())
        (folder / "tolerance").write_text(f"{case.rtol} {case.atol}\n")
    except Exception as error:
        failed.append((case.name, repr(error)))
print(len(failed), failed[:10])
