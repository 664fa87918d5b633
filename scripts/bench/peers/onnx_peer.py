"""The operations in onnxruntime, which does not train: a graph of one or a few nodes each."""
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

# name: (nodes as (op, inputs, outputs, attributes), constants)
GRAPHS = {
    "gelu_16m": ([("Gelu", "a", "o", {"approximate": "tanh"})], {}),
    "chain_16m": ([("Add", "a b", "t", {}), ("Mul", "t k", "u", {}), ("Sub", "u c", "o", {})], {"k": np.float32(5)}),
    "sum_16m": ([("ReduceSum", "a", "o", {"keepdims": 0})], {}),
    "sum_rows_4096": ([("ReduceSum", "a x", "o", {"keepdims": 0})], {"x": np.array([1])}),
    "sum_cols_4096": ([("ReduceSum", "a x", "o", {"keepdims": 0})], {"x": np.array([0])}),
    "softmax_4096x1024": ([("Softmax", "a", "o", {"axis": -1})], {}),
    "layernorm_4096x1024": ([("LayerNormalization", "a b c", "o", {"axis": -1, "epsilon": 1e-5})], {}),
    "cumsum_16m": ([("CumSum", "a x", "o", {})], {"x": np.int64(0)}),
    "argmax_rows_4096": ([("ArgMax", "a", "o", {"axis": 1, "keepdims": 0})], {}),
    "conv2d_fwd": ([("Conv", "a b", "o", {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]})], {}),
}
# Inputs that are weights: onnxruntime packs them once.
WEIGHTS = {"conv2d_fwd": "b", "layernorm_4096x1024": "bc"}


class Peer:
    def __init__(self, threads, device, _):
        if device != "cpu":
            raise NotImplementedError("measured on CPUs only")
        self.threads = threads

    def wait(self):
        pass

    def op(self, name, arrays):
        if "bf16" in name:
            raise NotImplementedError("no kernel of this type for CPUs")
        nodes, constants = GRAPHS.get(name, ([("MatMul", "a b", "o", {})], {}))
        weights = {k: v for k, v in zip("abc", arrays) if k in WEIGHTS.get(name, "")}
        inputs = {k: v for k, v in zip("abc", arrays) if k not in weights}
        session = self.session(name, nodes, constants | weights, inputs)
        binding = session.io_binding()
        values = {k: onnxruntime.OrtValue.ortvalue_from_numpy(v) for k, v in inputs.items()}
        for key, value in values.items():
            binding.bind_ortvalue_input(key, value)
        binding.bind_output("o", "cpu")
        session.run_with_iobinding(binding)
        # From now on the result is written in place.
        output = binding.get_outputs()[0]
        binding.bind_ortvalue_output("o", output)

        def call():
            session.run_with_iobinding(binding)
            return output

        return call, lambda value: value.numpy()

    def session(self, name, nodes, constants, inputs):
        nodes = [helper.make_node(op, i.split(), [o], **more) for op, i, o, more in nodes]
        inputs = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in inputs.items()]
        kind = TensorProto.INT64 if name.startswith("argmax") else TensorProto.FLOAT
        outputs = [helper.make_tensor_value_info("o", kind, None)]
        constants = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
        graph = helper.make_graph(nodes, name, inputs, outputs, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
