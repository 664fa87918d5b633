"""Writes tests of com.microsoft's and ai.onnx.ml's operators: models of one node, random inputs, and what onnxruntime's CPU gives;
and of element types that it does not have, what the standard's reference gives.

Usage: onnx_contrib.py FOLDER. The files are those of onnx_nodes.py, and the same test runs them.
"""
import pathlib, sys
import numpy as np
import ml_dtypes, onnx, onnxruntime
import onnx.reference
from onnx import TensorProto, helper, numpy_helper

OUT = pathlib.Path(sys.argv[1])
RNG = np.random.default_rng(7)
failed = []

f32 = lambda *shape: RNG.standard_normal(shape).astype(np.float32)
f16 = lambda *shape: RNG.standard_normal(shape).astype(np.float16)
u8 = lambda *shape: RNG.integers(0, 256, shape).astype(np.uint8)
i8 = lambda *shape: RNG.integers(-128, 128, shape).astype(np.int8)
ints = lambda low, high, *shape: RNG.integers(low, high, shape)
number = lambda x, dtype=np.float32: np.array(x, dtype)


def case(name, op, inputs, outputs=1, own=None, constant=(), rtol=1e-4, atol=1e-5, domain="com.microsoft", same=None, shared=(), checked=None, opset=21, reference=False, listed=False, ml=3, **attributes):
    """Inputs that are None are left out; `own` are attributes whose names are those of parameters; those listed in `constant` are part of the model. `outputs` is how many,
    or which by number. `same` are other inputs with the same result, for what onnxruntime's CPU refuses. `shared` are pairs of an input and an output of one buffer.
    Of the outputs, the first `checked` are compared. `listed` are constants as numbers, not bytes."""
    kept = list(range(outputs)) if isinstance(outputs, int) else list(outputs)
    results = [f"y{i}" if i in kept else "" for i in range(max(kept) + 1)]
    info = lambda name, array: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    def build(inputs):
        names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
        node = helper.make_node(op, names, results, domain=domain, **attributes, **(own or {}))
        given = [(n, x) for i, (n, x) in enumerate(zip(names, inputs)) if x is not None and i not in constant]
        as_list = lambda x, name: helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape, x.astype(np.float32).flatten())
        fixed = [(as_list if listed else numpy_helper.from_array)(inputs[i], names[i]) for i in constant]
        outputs = [helper.make_tensor_value_info(r, TensorProto.UNDEFINED, None) for r in results if r]
        for output in outputs: output.ClearField("type")
        graph = helper.make_graph([node], name, [info(n, x) for n, x in given], outputs, fixed)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("ai.onnx.ml", ml)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10), given

    def run(model, given):
        if reference: return onnx.reference.ReferenceEvaluator(model).run(None, dict(given))
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        # The values keep no reference to their arrays.
        binding, arrays = session.io_binding(), {n: x.copy() for n, x in given}
        values = {n: onnxruntime.OrtValue.ortvalue_from_numpy(x) for n, x in arrays.items()}
        for n, value in values.items(): binding.bind_ortvalue_input(n, value)
        owners = dict((output, f"x{i}") for i, output in shared)
        for i in kept:
            if i in owners: binding.bind_ortvalue_output(f"y{i}", values[owners[i]])
            else: binding.bind_output(f"y{i}")
        session.run_with_iobinding(binding)
        return [value.numpy().copy() for value in binding.get_outputs()]

    try:
        found = run(*build(same or inputs))
    except Exception as error:
        failed.append((name, repr(error)[:300]))
        return
    model, given = build(inputs)
    del model.graph.output[checked or len(found):]
    for output, array in zip(model.graph.output, found):
        output.CopyFrom(info(output.name, array))
    folder = OUT / f"contrib_{name}"
    (folder / "set_0").mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "tolerance").write_text(f"{rtol} {atol}\n")
    for kind, arrays in (("input", [x for _, x in given]), ("output", found[:checked])):
        for i, array in enumerate(arrays):
            proto = numpy_helper.from_array(np.asarray(array), f"{kind}_{i}")
            (folder / "set_0" / f"{kind}_{i}.pb").write_bytes(proto.SerializeToString())


# Quantised operators.
for kind, make, zero in (("uint8", u8, 120), ("int8", i8, -7)):
    z = lambda x: number(x, np.uint8 if kind == "uint8" else np.int8)
    for op in ("QLinearAdd", "QLinearMul"):
        case(f"{op}_{kind}", op, [make(3, 4, 5), number(0.02137), z(zero), make(3, 4, 5), number(0.01351), z(3), number(0.0517), z(9)])
        case(f"{op}_{kind}_broadcast", op, [make(3, 4, 5), number(0.02137), z(zero), make(5), number(0.01351), z(3), number(0.0517), z(9)])
        a, b = [make(3, 4), number(0.02137)], [make(3, 4), number(0.01351)]
        case(f"{op}_{kind}_no_zero", op, [*a, None, *b, None, number(0.05)], same=[*a, z(0), *b, z(0), number(0.05), z(0)])
    case(f"QLinearSigmoid_{kind}", "QLinearSigmoid", [make(4, 9), number(0.06), z(zero), number(1 / 256), z(0)])
    case(f"QLinearLeakyRelu_{kind}", "QLinearLeakyRelu", [make(4, 9), number(0.06), z(zero), number(0.05), z(5)], alpha=0.2)
    case(f"QLinearLeakyRelu_{kind}_default", "QLinearLeakyRelu", [make(4, 9), number(0.06), z(zero), number(0.05), z(5)])
    case(f"QLinearConcat_{kind}", "QLinearConcat",
         [number(0.05), z(4), make(2, 3, 4), number(0.04), z(zero), make(2, 5, 4), number(0.07), z(1), make(2, 1, 4), number(0.05), z(4)], axis=1)
    for mode in (0, 1):
        case(f"QLinearGlobalAveragePool_{kind}_{mode}", "QLinearGlobalAveragePool",
             [make(2, 3, 7, 5), number(0.05), z(zero), number(0.021), z(11)], channels_last=mode)
        for ceil in (0, 1):
            case(f"QLinearAveragePool_{kind}_{mode}_{ceil}", "QLinearAveragePool",
                 [make(2, 3, 8, 9), number(0.05), z(zero), number(0.021), z(11)],
                 kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], count_include_pad=mode, ceil_mode=ceil)
    case(f"QLinearAveragePool_{kind}_last", "QLinearAveragePool",
         [make(2, 8, 9, 3), number(0.05), z(zero), number(0.021), z(11)], kernel_shape=[3, 2], channels_last=1)
    case(f"QLinearAveragePool_{kind}_1d", "QLinearAveragePool",
         [make(2, 3, 9), number(0.0513), z(1), number(0.0437), z(2)], kernel_shape=[3], strides=[2], auto_pad="SAME_UPPER")
    for b_kind, b_make in (("uint8", u8), ("int8", i8)):
        if kind == "int8" and b_kind == "uint8": continue
        bz = np.uint8 if b_kind == "uint8" else np.int8
        case(f"MatMulIntegerToFloat_{kind}_{b_kind}", "MatMulIntegerToFloat",
             [make(2, 5, 8), b_make(8, 6), number(0.03), number(0.02), z(zero), number(3, bz), f32(6)])
        case(f"MatMulIntegerToFloat_{kind}_{b_kind}_columns", "MatMulIntegerToFloat",
             [make(5, 8), b_make(8, 6), number(0.03), abs(f32(6)), z(zero), b_make(6)])
    case(f"DynamicQuantizeMatMul_{kind}", "DynamicQuantizeMatMul", [f32(5, 8), make(8, 6), number(0.02), z(3), f32(6)])
    case(f"DynamicQuantizeMatMul_{kind}_columns", "DynamicQuantizeMatMul", [f32(2, 5, 8), make(8, 6), abs(f32(6)), make(6)])
    case(f"QLinearMatMul_{kind}", "QLinearMatMul",
         [make(3, 4, 8), number(0.02), z(zero), make(8, 5), number(0.03), z(3), number(0.4), z(2)], domain="")
    case(f"QLinearConv_{kind}_groups", "QLinearConv",
         [make(2, 4, 7, 6), number(0.02), z(zero), make(6, 2, 3, 2), abs(f32(6)), z(0) * np.ones(6, z(0).dtype), number(3.0), z(2),
          ints(-500, 500, 6).astype(np.int32)], domain="", constant=(3, 4, 5), group=2, pads=[1, 0, 1, 1], strides=[2, 1], dilations=[1, 2])
    case(f"QLinearConv_{kind}_1d", "QLinearConv",
         [make(2, 4, 9), number(0.02), z(zero), make(6, 4, 3), number(0.01), z(1), number(0.5), z(2)], domain="", constant=(3, 4, 5), auto_pad="SAME_LOWER", strides=[2])
case("ConvInteger_groups", "ConvInteger", [u8(2, 4, 7, 6), u8(6, 2, 3, 2), number(9, np.uint8), number(100, np.uint8)], domain="", group=2, pads=[1, 0, 1, 1])
case("MatMulInteger_columns", "MatMulInteger", [u8(2, 5, 8), i8(8, 6), number(9, np.uint8), i8(6)], domain="")
case("DynamicQuantizeLinear", "DynamicQuantizeLinear", [f32(7, 9)], 3, domain="")
for axis in (0, 1, 2):
    shape = (3, 4, 5)
    case(f"QuantizeLinear_axis_{axis}", "QuantizeLinear", [10 * f32(*shape), abs(f32(shape[axis])), u8(shape[axis])], domain="", axis=axis)
    case(f"DequantizeLinear_axis_{axis}", "DequantizeLinear", [i8(*shape), abs(f32(shape[axis])), i8(shape[axis])], domain="", axis=axis)
ties = np.arange(-20, 20).astype(np.float32) / 2
case("QuantizeLinear_ties", "QuantizeLinear", [ties, number(1.0), number(3, np.int8)], domain="")

# Matrices of four and eight bits.
for bits in (4, 8):
    for rows, columns, block in ((5, 32, 16), (7, 40, 16), (3, 96, 32), (4, 128, 128)):
        blocks = -(-columns // block)
        packed, scales = u8(rows, blocks, block * bits // 8), abs(f32(rows, blocks)) * 0.1
        zero = u8(rows, -(-blocks * bits // 8))
        sizes = dict(K=columns, N=rows, block_size=block, bits=bits)
        name = f"MatMulNBits_{bits}_{rows}x{columns}_{block}"
        case(name, "MatMulNBits", [f32(2, columns), packed, scales], constant=(1, 2), atol=1e-4, **sizes)
        case(f"{name}_zeros", "MatMulNBits", [f32(2, 3, columns), packed, scales, zero], constant=(1, 2, 3), atol=1e-3, **sizes)
        case(f"{name}_bias", "MatMulNBits", [f32(1, columns), packed, scales, zero, None, f32(rows)], constant=(1, 2, 3), atol=1e-3, **sizes)
        x, whole = f32(6, columns), u8(rows, blocks)
        if bits == 4:
            case(f"{name}_unpacked", "MatMulNBits", [x, packed, scales, f32(rows, blocks) + 8], constant=(1, 2, 3), atol=1e-3, **sizes)
        else:
            case(f"{name}_unpacked", "MatMulNBits", [x, packed, scales, whole.astype(np.float32)], same=[x, packed, scales, whole],
                 constant=(1, 2, 3), atol=1e-3, **sizes)

# Products, activations, norms.
for a in (0, 1):
    for b in (0, 1):
        shape = lambda t, m, n: (2, 3, n, m) if t else (2, 3, m, n)
        case(f"FusedMatMul_{a}{b}", "FusedMatMul", [f32(*shape(a, 4, 5)), f32(*shape(b, 5, 6))], transA=a, transB=b, alpha=0.5)
        first = lambda t, m, n: (n, 3, m) if t else (m, 3, n)
        case(f"FusedMatMul_batch_{a}{b}", "FusedMatMul", [f32(*first(a, 4, 5)), f32(*first(b, 5, 6))], transA=a, transB=b, transBatchA=1, transBatchB=1)
case("Gelu", "Gelu", [f32(3, 8)])
for bits in (4, 8):
    for block in (16, 32):
        table, blocks = u8(9, 64 * bits // 8), 64 // block
        scales, zero = abs(f32(9, blocks)), u8(9, -(-blocks * bits // 8))
        index = ints(0, 9, 2, 3).astype(np.int64)
        sizes = dict(bits=bits, block_size=block, quantize_axis=1, gather_axis=0)
        case(f"GatherBlockQuantized_{bits}_{block}", "GatherBlockQuantized", [table, index, scales], constant=(0, 2), **sizes)
        case(f"GatherBlockQuantized_{bits}_{block}_zeros", "GatherBlockQuantized", [table, index, scales, zero], constant=(0, 2, 3), **sizes)
for kind in ("int4", "uint4"):
    dtype, low = getattr(ml_dtypes, kind), -8 if kind == "int4" else 0
    codes = lambda *shape: ints(low, low + 16, *shape).astype(np.int8).astype(dtype)
    for axis in (1, 2):
        scales = (9, 2, 8) if axis == 1 else (9, 20, 1)
        case(f"GatherBlockQuantized_{kind}_{axis}", "GatherBlockQuantized", [codes(9, 20, 8), ints(-9, 9, 2, 3), abs(f32(*scales)), codes(*scales)],
             constant=(0, 2, 3), block_size=16, quantize_axis=axis, gather_axis=0)
case("BiasGelu", "BiasGelu", [f32(3, 4, 8), f32(8)])
case("FastGelu", "FastGelu", [f32(3, 4, 8)])
case("FastGelu_bias", "FastGelu", [f32(3, 4, 8), f32(8)])
case("QuickGelu", "QuickGelu", [f32(3, 8)])
case("QuickGelu_alpha", "QuickGelu", [f32(3, 8)], alpha=1.2)
for name, make, tolerance in (("", f32, {}), ("_half", f16, dict(rtol=1e-2, atol=1e-2))):
    x = lambda: make(2, 5, 16)
    case(f"SkipLayerNormalization{name}", "SkipLayerNormalization", [x(), x(), make(16), make(16), make(16)], (0, 3), epsilon=1e-5, **tolerance)
    case(f"SkipLayerNormalization_plain{name}", "SkipLayerNormalization", [x(), x(), make(16)], **tolerance)
    case(f"SkipLayerNormalization_one{name}", "SkipLayerNormalization", [x(), make(5, 16), make(16), make(16)], **tolerance)
    case(f"SkipSimplifiedLayerNormalization{name}", "SkipSimplifiedLayerNormalization", [x(), x(), make(16), make(16)], (0, 3), epsilon=1e-5, **tolerance)
    case(f"SimplifiedLayerNormalization{name}", "SimplifiedLayerNormalization", [x(), make(16)], domain="", epsilon=1e-5, axis=-1, **tolerance)
ids, segments = ints(0, 9, 3, 6).astype(np.int32), ints(0, 2, 3, 6).astype(np.int32)
tables = [f32(9, 8), f32(7, 8), f32(2, 8), f32(8), f32(8)]
mask = (np.arange(6) < np.array([[6], [4], [2]])).astype(np.int32)
case("EmbedLayerNormalization", "EmbedLayerNormalization", [ids, segments, *tables, mask], 3)
case("EmbedLayerNormalization_no_mask", "EmbedLayerNormalization", [ids, segments, *tables], 2)
case("EmbedLayerNormalization_no_segments", "EmbedLayerNormalization", [ids, None, *tables[:2], None, *tables[3:], mask], 2)
case("EmbedLayerNormalization_positions", "EmbedLayerNormalization", [ids, segments, *tables, None, ints(0, 7, 3, 6).astype(np.int32)], 2)

# Attention.
angles = f32(20, 4)
cos, sin = np.cos(angles), np.sin(angles)
at = ints(0, 20, 2, 5).astype(np.int64)
for interleaved in (0, 1):
    case(f"RotaryEmbedding_{interleaved}", "RotaryEmbedding", [f32(2, 5, 24), at, cos, sin], interleaved=interleaved)
    case(f"RotaryEmbedding_{interleaved}_offset", "RotaryEmbedding", [f32(2, 3, 5, 8), number([7], np.int64), cos, sin], interleaved=interleaved)
    case(f"RotaryEmbedding_{interleaved}_part", "RotaryEmbedding", [f32(2, 5, 36), at, cos, sin], interleaved=interleaved, num_heads=3, rotary_embedding_dim=8)
B, S, L, N, D, V, P = 2, 4, 6, 3, 8, 5, 3
bias = lambda v=D: f32(N * (D + D + v))
for causal in (0, 1):
    c = dict(num_heads=N, unidirectional=causal)
    # Queries that are not as many as keys attend to all of them.
    L = S if causal else 6
    q, k, v = f32(B, S, N * D), f32(B, L, N * D), f32(B, L, N * V)
    lengths, keep = number([L, 3], np.int32), (ints(0, 4, B, L) > 0).astype(np.int32)
    keep[:, 0] = 1
    case(f"MultiHeadAttention_{causal}", "MultiHeadAttention", [q, k, v], **c)
    case(f"MultiHeadAttention_{causal}_bias", "MultiHeadAttention", [q, k, v, bias(V)], scale=0.3, **c)
    case(f"MultiHeadAttention_{causal}_lengths", "MultiHeadAttention", [q, k, v, None, lengths], **c)
    case(f"MultiHeadAttention_{causal}_mask", "MultiHeadAttention", [q, k, v, None, keep], **c)
    case(f"MultiHeadAttention_{causal}_added", "MultiHeadAttention", [q, k, v, None, None, f32(1, N, S, L)], **c)
    case(f"MultiHeadAttention_{causal}_all", "MultiHeadAttention", [q, k, v, bias(V), keep, f32(B, N, S, L)], **c)
    case(f"MultiHeadAttention_{causal}_past", "MultiHeadAttention",
         [q, f32(B, S, N * D), f32(B, S, N * D), bias(), None, None, f32(B, N, P, D), f32(B, N, P, D)], 3, **c)
    case(f"MultiHeadAttention_{causal}_given", "MultiHeadAttention", [q, f32(B, N, L, D), f32(B, N, L, D)], **c)
    all, pairs = f32(B, S, N, 3, D), f32(B, L, N, 2, D)
    parts = lambda x: [x[:, :, :, i].reshape(*x.shape[:2], N * D) for i in range(x.shape[3])]
    case(f"MultiHeadAttention_{causal}_packed", "MultiHeadAttention", [all], same=parts(all), **c)
    case(f"MultiHeadAttention_{causal}_packed_pairs", "MultiHeadAttention", [q, pairs], same=[q, *parts(pairs)], **c)
    hidden = keep.copy()
    hidden[0] = 0
    case(f"MultiHeadAttention_{causal}_hidden", "MultiHeadAttention", [q, k, v, None, hidden], **c)
    case(f"MultiHeadAttention_{causal}_filter", "MultiHeadAttention", [q, k, v, None, keep], mask_filter_value=-2.0, **c)
    x, w = f32(B, L, 7), f32(7, 3 * N * D)
    case(f"Attention_{causal}", "Attention", [x, w, bias()], **c)
    case(f"Attention_{causal}_mask", "Attention", [x, w, bias(), keep], **c)
    case(f"Attention_{causal}_hidden", "Attention", [x, w, bias(), hidden], **c)
    case(f"Attention_{causal}_lengths", "Attention", [x, w, bias(), lengths], **c)
    case(f"Attention_{causal}_ranges", "Attention", [x, w, bias(), number([L, L - 1, 2, 0], np.int32)], **c)
    case(f"Attention_{causal}_mask_3d", "Attention", [x, w, bias(), (ints(0, 4, B, L, L) > 0).astype(np.int32)], **c)
    case(f"Attention_{causal}_added", "Attention", [x, w, bias(), None, None, f32(B, N, L, L)], **c)
    case(f"Attention_{causal}_past", "Attention", [f32(B, S, 7), w, bias(), None, f32(2, B, N, P, D)], 2, **c)
    case(f"Attention_{causal}_present", "Attention", [x, w, bias()], 2, **c)
    case(f"Attention_{causal}_sizes", "Attention", [x, f32(7, N * (D + D + V)), bias(V)], qkv_hidden_sizes=[N * D, N * D, N * V], **c)
G, H, D = 2, 4, 16
angles = f32(20, D // 2)
cos, sin = np.cos(angles), np.sin(angles)
half = dict(num_heads=H, kv_num_heads=G)
full = lambda n: number([n - 1] * B, np.int32)
qkv = lambda s: [f32(B, s, H * D), f32(B, s, G * D), f32(B, s, G * D)]
for name, extra in (("", {}), ("_softcap", dict(softcap=5.0)), ("_window", dict(local_window_size=3)), ("_smooth", dict(smooth_softmax=1)), ("_scale", dict(scale=0.2))):
    case(f"GroupQueryAttention_prompt{name}", "GroupQueryAttention", [*qkv(6), None, None, full(6), number(6, np.int32)], 3, **half, **extra)
    case(f"GroupQueryAttention_step{name}", "GroupQueryAttention",
         [*qkv(1), f32(B, G, 6, D), f32(B, G, 6, D), full(7), number(7, np.int32)], 3, **half, **extra)
for interleaved in (0, 1):
    r = dict(do_rotary=1, rotary_interleaved=interleaved)
    case(f"GroupQueryAttention_rotary_{interleaved}", "GroupQueryAttention", [*qkv(6), None, None, full(6), number(6, np.int32), cos, sin], 3, **half, **r)
    case(f"GroupQueryAttention_rotary_step_{interleaved}", "GroupQueryAttention",
         [*qkv(1), f32(B, G, 6, D), f32(B, G, 6, D), full(7), number(7, np.int32), cos, sin], 3, **half, **r)
case("GroupQueryAttention_packed", "GroupQueryAttention", [f32(B, 6, (H + 2 * G) * D), None, None, None, None, full(6), number(6, np.int32)], 3, **half)
for name, inputs, extra in (("", (), {}), ("_rotary", (cos, sin), dict(do_rotary=1)), ("_window", (), dict(local_window_size=3))):
    for length in (6, 9):
        lengths = [number([6, 3], np.int32), number(7, np.int32)]
        shared = ((3, 1), (4, 2)) if length == 9 else ()
        case(f"GroupQueryAttention_ragged{name}_{length}", "GroupQueryAttention",
             [*qkv(1), f32(B, G, length, D), f32(B, G, length, D), *lengths, *inputs], 3, shared=shared, checked=3 if shared else 1, **extra, **half)
    case(f"GroupQueryAttention_ragged{name}_prompt", "GroupQueryAttention",
         [*qkv(5), None, None, number([4, 4], np.int32), number(5, np.int32), *inputs], 3, **extra, **half)
case("GroupQueryAttention_added", "GroupQueryAttention",
     [*qkv(6), None, None, full(6), number(6, np.int32), None, None, None, f32(1, H, 6, 6)], 3, **half)
case("GroupQueryAttention_added_step", "GroupQueryAttention",
     [*qkv(1), f32(B, G, 6, D), f32(B, G, 6, D), full(7), number(7, np.int32), None, None, None, f32(B, 1, 1, 7)], 3, **half)
case("GroupQueryAttention_sink", "GroupQueryAttention",
     [*qkv(6), None, None, full(6), number(6, np.int32), None, None, None, None, f32(H)], 3, **half)
case("GroupQueryAttention_chunk", "GroupQueryAttention",
     [f32(1, 3, H * D), f32(1, 3, G * D), f32(1, 3, G * D), f32(1, G, 6, D), f32(1, G, 6, D), number([8], np.int32), number(9, np.int32)], 3, **half)
case("GroupQueryAttention_chunk_window", "GroupQueryAttention",
     [f32(1, 3, H * D), f32(1, 3, G * D), f32(1, 3, G * D), f32(1, G, 6, D), f32(1, G, 6, D), number([8], np.int32), number(9, np.int32)], 3, local_window_size=4, **half)
case("GroupQueryAttention_open", "GroupQueryAttention", [*qkv(6), None, None, full(6), number(6, np.int32)], 3, causal=0, **half)

# Halves.
halves = lambda arrays: [x.astype(np.float16) if x is not None and x.dtype == np.float32 else x for x in arrays]
loose = dict(rtol=1e-2, atol=1e-2)
case("GroupQueryAttention_half", "GroupQueryAttention", halves([*qkv(6), None, None, full(6), number(6, np.int32), cos, sin]), 3, do_rotary=1, **half, **loose)
case("GroupQueryAttention_half_softcap", "GroupQueryAttention", halves([*qkv(6), None, None, full(6), number(6, np.int32)]), 3, softcap=5.0, **half, **loose)
case("RotaryEmbedding_half", "RotaryEmbedding", halves([f32(2, 5, 32), at, cos, sin]), **loose)
case("MatMulNBits_half", "MatMulNBits", halves([f32(2, 64), u8(5, 2, 16), abs(f32(5, 2)) * 0.1, u8(5, 1)]), constant=(1, 2, 3), K=64, N=5, block_size=32, bits=4, rtol=1e-2, atol=5e-2)
case("QuickGelu_half", "QuickGelu", halves([f32(3, 8)]), **loose)
case("FastGelu_half", "FastGelu", halves([f32(3, 8), f32(8)]), **loose)
case("GatherBlockQuantized_half", "GatherBlockQuantized", halves([u8(9, 32), ints(0, 9, 4), abs(f32(9, 2))]), constant=(0, 2), bits=8, block_size=16, **loose)

# Nothing.
case("QLinearAdd_empty", "QLinearAdd", [u8(0, 4), number(0.02), number(3, np.uint8), u8(4), number(0.03), number(1, np.uint8), number(0.1), number(0, np.uint8)])
case("MatMulIntegerToFloat_empty", "MatMulIntegerToFloat", [u8(0, 8), u8(8, 6), number(0.03), number(0.02)])
case("FusedMatMul_empty", "FusedMatMul", [f32(3, 0, 4), f32(4, 5)])
case("BiasGelu_empty", "BiasGelu", [f32(0, 8), f32(8)])
case("SkipLayerNormalization_empty", "SkipLayerNormalization", [f32(0, 5, 16), f32(0, 5, 16), f32(16)])
case("SimplifiedLayerNormalization_empty", "SimplifiedLayerNormalization", [f32(0, 16), f32(16)], domain="", axis=-1)
case("EmbedLayerNormalization_empty", "EmbedLayerNormalization", [ids[:0], segments[:0], *tables], 2)
case("MatMulNBits_empty", "MatMulNBits", [f32(0, 32), u8(5, 2, 8), f32(5, 2)], constant=(1, 2), K=32, N=5, block_size=16, bits=4)
case("RotaryEmbedding_empty", "RotaryEmbedding", [f32(0, 5, 32), at[:0], cos, sin])
case("MultiHeadAttention_empty", "MultiHeadAttention", [f32(0, 4, 24), f32(0, 6, 24), f32(0, 6, 24)], num_heads=3)
case("ConvInteger_empty", "ConvInteger", [u8(0, 2, 5, 5), u8(3, 2, 3, 3), number(4, np.uint8)], domain="")

# Element types without a dtype, and what quantises to them.
for kind in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"):
    dtype = getattr(ml_dtypes, kind)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    case_of = lambda name, op, inputs, *more, **a: case(f"{kind}_{name}", op, inputs, *more, domain="", opset=25, reference=True, **a)
    x = (ints(0, 4, 3, 4, 5) if "int" in kind else 2.0 ** ints(-2, 3, 3, 4, 5)).astype(np.float32).astype(dtype)
    if kind.startswith("int"): x = (ints(-2, 2, 3, 4, 5)).astype(np.float32).astype(dtype)
    for place in ((), (0,)):
        n = len(place)
        case_of(f"Identity_{n}", "Identity", [x], constant=place)
        case_of(f"Reshape_{n}", "Reshape", [x, number([5, -1], np.int64)], constant=place)
        case_of(f"Slice_{n}", "Slice", [x, number([2, 3], np.int64), number([0, -9], np.int64), number([1, 2], np.int64), number([1, -2], np.int64)], constant=place)
    case_of("Identity_listed", "Identity", [x[:, :3]], constant=(0,), listed=True)
    case_of("CastLike", "CastLike", [abs(f32(7)), x])
    case_of("Transpose", "Transpose", [x], perm=[2, 0, 1])
    case_of("Concat", "Concat", [x, x[:, :1]], axis=1)
    case_of("Gather", "Gather", [x, number([[0, -1], [2, 1]], np.int64)], axis=2)
    case_of("Squeeze", "Squeeze", [x[:1], number([0], np.int64)])
    case_of("Unsqueeze", "Unsqueeze", [x, number([1], np.int64)])
    case_of("Flatten", "Flatten", [x], axis=2)
    case_of("Expand", "Expand", [x[:1], number([2, 4, 5], np.int64)])
    case_of("Split", "Split", [x, number([3, 2], np.int64)], 2, axis=2)
    case_of("Shape", "Shape", [x])
    case_of("Size", "Size", [x])
    case_of("Cast_empty", "Cast", [x[:0]], to=TensorProto.FLOAT)
    case_of("Cast_to_empty", "Cast", [f32(0, 3)], to=code)
    case_of("Cast_float16", "Cast", [x], to=TensorProto.FLOAT16)
    case_of("Cast_double", "Cast", [x], to=TensorProto.DOUBLE)
    if kind == "float8_e8m0fnu":
        for mode in ("up", "down", "nearest"):
            numbers = np.exp2(8 * f32(50))
            case_of(f"Cast_{mode}", "Cast", [numbers], to=code, round_mode=mode)
        continue
    spread = (f32(60) * np.exp2(ints(-12, 12, 60))).astype(np.float32)
    if "float" in kind:
        for saturate in (0, 1):
            for make in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64):
                numbers = spread.astype(make)
                case_of(f"Cast_{np.dtype(make).name}_{saturate}", "Cast", [numbers], to=code, saturate=saturate)
            if "8" in kind: case_of(f"QuantizeLinear_{saturate}", "QuantizeLinear", [spread, number(0.37)], saturate=saturate, output_dtype=code)
        zero = lambda *shape: None
    else:
        case_of("Cast_int32", "Cast", [ints(-40, 40, 60).astype(np.int32)], to=code)
        case_of("Cast_int64", "Cast", [ints(-40, 40, 60).astype(np.int64)], to=code)
        case_of("Cast_uint8", "Cast", [u8(60)], to=code)
        case_of("Cast_to_int8", "Cast", [x], to=TensorProto.INT8)
        low = -2 if kind.startswith("int") else 0
        zero = lambda *shape: ints(low, low + 4, *shape).astype(np.int8).astype(dtype)
    y = 4 * f32(4, 10, 3)
    for shape, attributes in (((), {}), ((10,), dict(axis=1)), ((4, 4, 3), dict(axis=1, block_size=3)), ((4, 10, 2), dict(axis=-1, block_size=2))):
        n, scale = "x".join(map(str, shape)) or "one", np.asarray(abs(f32(*shape)) + 0.1, np.float32)
        case_of(f"QuantizeLinear_{n}", "QuantizeLinear", [y, scale, zero(*shape)], output_dtype=code, **attributes)
        small = y.astype(dtype) if "float" in kind else ints(0, 2, 4, 10, 3).astype(np.int8).astype(dtype)
        case_of(f"DequantizeLinear_{n}", "DequantizeLinear", [small, scale, zero(*shape)], **attributes)
        case_of(f"DequantizeLinear_{n}_half", "DequantizeLinear", [small, scale, zero(*shape)], output_dtype=TensorProto.FLOAT16, rtol=1e-3, **attributes)
plain = dict(domain="", opset=25, reference=True)
case("QuantizeLinear_precision", "QuantizeLinear", [f16(5, 6), np.asarray(0.1, np.float16), number(3, np.int8)], precision=TensorProto.FLOAT, **plain)
case("QuantizeLinear_half", "QuantizeLinear", [f16(5, 6), np.asarray(0.1, np.float16), number(3, np.int16)], **plain)
case("QuantizeLinear_output_dtype", "QuantizeLinear", [f32(5, 6), number(0.001)], output_dtype=TensorProto.UINT16, **plain)
case("QuantizeLinear_from_int32", "QuantizeLinear", [ints(-900, 900, 5, 6).astype(np.int32), number(3.0), number(7, np.int8)], **plain)
case("QuantizeLinear_empty", "QuantizeLinear", [f32(0, 6), number(3.0), number(7, np.int8)], **plain)
for opset in (10, 13, 19, 21):
    old = dict(domain="", opset=opset, reference=True)
    case(f"QuantizeLinear_opset_{opset}", "QuantizeLinear", [f32(5, 6), number(0.03), number(3, np.int8)], **old)
    old["reference"] = opset >= 19
    case(f"DequantizeLinear_opset_{opset}", "DequantizeLinear", [u8(5, 6), number(0.03), number(3, np.uint8)], **old)
case("DequantizeLinear_int32", "DequantizeLinear", [ints(-900, 900, 5, 6).astype(np.int32), number(0.1)], **plain)
case("DequantizeLinear_blocks", "DequantizeLinear", [i8(5, 6), abs(f32(5, 2)), i8(5, 2)], axis=1, block_size=4, **plain)

# Classical models.
text = lambda *texts: np.array(texts, object)
classical = dict(domain="ai.onnx.ml")
for kind in (np.float32, np.float64, np.int64, np.int32):
    name = np.dtype(kind).name
    x = ints(-4, 5, 5, 3).astype(kind)
    case(f"Scaler_{name}", "Scaler", [x], offset=[1.5, -2.0, 0.0], scale=[2.0, 0.1, 3.0], **classical)
    case(f"Scaler_{name}_one", "Scaler", [x], offset=[0.5], scale=[2.0], **classical)
    case(f"ArrayFeatureExtractor_{name}", "ArrayFeatureExtractor", [x, ints(0, 3, 4)], **classical)
    case(f"OneHotEncoder_{name}", "OneHotEncoder", [x], cats_int64s=[-3, 0, 2, 4], **classical)
    for norm in ("MAX", "L1", "L2"):
        case(f"Normalizer_{name}_{norm}", "Normalizer", [np.concatenate([x, 0 * x[:1]])], norm=norm, **classical)
case("ArrayFeatureExtractor_vector", "ArrayFeatureExtractor", [f32(5), ints(0, 5, 1, 3)], **classical)
case("ArrayFeatureExtractor_3d", "ArrayFeatureExtractor", [f32(2, 3, 5), ints(0, 5, 7)], **classical)
case("ArrayFeatureExtractor_text", "ArrayFeatureExtractor", [text("a", "b", "c"), ints(0, 3, 4)], reference=True, **classical)
case("OneHotEncoder_text", "OneHotEncoder", [text("a", "b", "z")], cats_strings=["b", "a"], reference=True, **classical)
case("Binarizer", "Binarizer", [f32(3, 4, 5)], threshold=0.3, **classical)
case("LinearRegressor", "LinearRegressor", [f32(5, 3)], coefficients=f32(6).tolist(), intercepts=[0.5, -0.5], targets=2, **classical)
case("LinearRegressor_one", "LinearRegressor", [f32(5, 3)], coefficients=f32(3).tolist(), **classical)
case("LabelEncoder_ints", "LabelEncoder", [ints(0, 6, 4, 3)], keys_int64s=[1, 3, 5], values_floats=[0.1, 0.3, 0.5], default_float=9.0, **classical)
case("LabelEncoder_floats", "LabelEncoder", [number([1.5, np.nan, 0.0, -0.0, 7.0])], keys_floats=[np.nan, 0.0, 1.5], values_int64s=[1, 2, 3], ml=4, **classical)
case("LabelEncoder_text", "LabelEncoder", [text("a", "b", "c")], keys_strings=["a", "c"], values_strings=["x", "y"], reference=True, **classical)
case("LabelEncoder_to_text", "LabelEncoder", [ints(0, 4, 5)], keys_int64s=[1, 3], values_strings=["x", "y"], default_string="none", reference=True, **classical)


def trees(count, depth, features, modes, classes, positive=False, votes=1):
    """Random full trees as of version 1, with votes at their leaves."""
    nodes, leaves = [], []
    for tree in range(count):
        for id in range(2 ** (depth + 1) - 1):
            is_leaf = id >= 2**depth - 1
            nodes.append((tree, id, 0 if is_leaf else int(ints(0, features)), "LEAF" if is_leaf else str(RNG.choice(modes)),
                          0.0 if is_leaf else float(ints(-2, 3)), 0 if is_leaf else 2 * id + 1, 0 if is_leaf else 2 * id + 2, int(ints(0, 2))))
            for _ in range(votes if is_leaf else 0):
                weight = float(f32())
                leaves.append((tree, id, int(RNG.choice(classes)), abs(weight) / count if positive else weight))
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    return {f"nodes_{n}": list(column) for n, column in zip(names, zip(*nodes))}, list(zip(*leaves))


every = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
for modes in (every[:1], every):
    for how in ("SUM", "AVERAGE", "MIN", "MAX"):
        nodes, (of, at, to, weights) = trees(7, 4, 3, modes, range(2))
        x = ints(-3, 4, 9, 3).astype(np.float32)
        x[ints(0, 9, 3), ints(0, 3, 3)] = np.nan
        case(f"TreeEnsembleRegressor_{how}_{len(modes)}", "TreeEnsembleRegressor", [x], n_targets=2, aggregate_function=how, base_values=[0.5, -0.25],
             target_treeids=of, target_nodeids=at, target_ids=to, target_weights=weights, **nodes, **classical)
nodes, (of, at, to, weights) = trees(40, 8, 6, every[:1], [0])
case("TreeEnsembleRegressor_deep", "TreeEnsembleRegressor", [ints(-3, 4, 50, 6).astype(np.float32)], n_targets=1,
     target_treeids=of, target_nodeids=at, target_ids=to, target_weights=weights, **nodes, **classical)
for positive in (False, True):
    for post in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        for labels in ([4, 7], [3, 5, 9]):
            for one in (False, True):
                if one and (len(labels) > 2 or post.startswith("SOFTMAX")): continue
                nodes, (of, at, to, weights) = trees(6, 3, 3, every[:1], [0] if one else range(len(labels)), positive, 1 if one else 2)
                case(f"TreeEnsembleClassifier_{post}_{len(labels)}_{int(one)}_{int(positive)}", "TreeEnsembleClassifier", [f32(9, 3)], 2, classlabels_int64s=labels,
                     class_treeids=of, class_nodeids=at, class_ids=to, class_weights=weights, post_transform=post,
                     # onnxruntime gives 0 and 1 for labels of two classes.
                     reference=len(labels) == 2 and not one, **nodes, **classical)

# Others with an activation, a sum or quantisation.
for name, attributes in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", dict(activation_params=[0.3])), ("Clip", dict(activation_params=[-0.5, 0.5])),
                         ("HardSigmoid", dict(activation_params=[0.3, 0.4]))):
    case(f"FusedConv_{name}", "FusedConv", [f32(2, 4, 7, 6), f32(6, 2, 3, 2), f32(6)], constant=(1, 2), group=2, pads=[1, 0, 1, 1], activation=name, **attributes)
case("FusedConv_sum", "FusedConv", [f32(2, 3, 5, 5), f32(4, 3, 3, 3), f32(4), f32(2, 4, 3, 3)], constant=(1, 2), activation="Relu")
for name, attributes in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("LeakyRelu", dict(activation_alpha=0.3)), ("HardSigmoid", dict(activation_alpha=0.3, activation_beta=0.4))):
    case(f"FusedGemm_{name}", "FusedGemm", [f32(5, 3), f32(4, 5), f32(4)], transA=1, transB=1, alpha=0.5, activation=name, **attributes)
for opset in (11, 13):
    for axis in (1, -1):
        case(f"QLinearSoftmax_{opset}_{axis}", "QLinearSoftmax", [u8(3, 4, 5), number(0.02), number(120, np.uint8), number(1 / 256), number(0, np.uint8)],
             atol=1.01, own=dict(opset=opset), axis=axis)
for kind, make in (("uint8", u8), ("int8", i8)):
    for name, columns in (("", False), ("_columns", True)):
        scale = lambda n: abs(f32(n, 16)) * 0.01 if columns else abs(f32(n)) * 0.01
        zero = lambda n: np.full((n, 16), 9 if kind == "uint8" else 0, make(1).dtype) if columns else make(n) // 9
        for directions in (1, 2):
            case(f"DynamicQuantizeLSTM_{kind}{name}_{directions}", "DynamicQuantizeLSTM",
                 [f32(5, 1, 3), make(directions, 3, 16), make(directions, 4, 16), f32(directions, 32), None, f32(directions, 1, 4), f32(directions, 1, 4), None,
                  scale(directions), zero(directions), scale(directions), zero(directions)], 3, constant=(1, 2, 8, 9, 10, 11),
                 direction="bidirectional" if directions == 2 else "forward", hidden_size=4, rtol=1e-3, atol=1e-3)
case("LayerNormalization_11", "LayerNormalization", [f32(2, 3, 8), f32(8), f32(8)], domain="", opset=11, axis=-1, epsilon=1e-5)
for op in ("MaxPool", "AveragePool", "LpPool"):
    case(f"{op}_larger_window", op, [f32(2, 3, 1, 2)], domain="", kernel_shape=[2, 3], strides=[2, 2])

# Linear classifiers.
for labels in (dict(classlabels_ints=[3, 7]), dict(classlabels_strings=["b", "a"])):
    kind = "ints" if "classlabels_ints" in labels else "strings"
    for post in ("NONE", "LOGISTIC", "SOFTMAX"):
        linear = dict(domain="ai.onnx.ml", post_transform=post, **labels)
        case(f"LinearClassifier_{kind}_{post}_1", "LinearClassifier", [f32(9, 3)], 2, coefficients=list(f32(3)), intercepts=[0.1], **linear)
        case(f"LinearClassifier_{kind}_{post}_2", "LinearClassifier", [f32(9, 3)], 2, coefficients=list(f32(6)), intercepts=[0.1, 0.2], **linear)
case("LinearClassifier_3", "LinearClassifier", [ints(-3, 4, 9, 4)], 2, domain="ai.onnx.ml", coefficients=list(f32(12)), intercepts=list(f32(3)),
     classlabels_strings=["a", "b", "c"], post_transform="SOFTMAX", multi_class=1)

# Support vector machines.
for form, parameters in (("LINEAR", [0.0, 0.0, 0.0]), ("POLY", [0.3, 0.5, 2.0]), ("RBF", [0.3, 0.0, 3.0]), ("SIGMOID", [0.3, -0.2, 3.0])):
    of = dict(domain="ai.onnx.ml", kernel_type=form, kernel_params=parameters)
    for one in (0, 1):
        case(f"SVMRegressor_{form}_{one}", "SVMRegressor", [f32(7, 4)], n_supports=5, support_vectors=list(f32(20)), coefficients=list(f32(5)), rho=[0.2], one_class=one, **of)
    for counts in ([3, 2], [2, 3, 2], [1, 2, 1, 3]):
        n, pairs = sum(counts), len(counts) * (len(counts) - 1) // 2
        own = dict(support_vectors=list(f32(n * 4)), coefficients=list(f32(n * (len(counts) - 1))), vectors_per_class=counts, rho=list(f32(pairs) * 0.1), **of)
        names = dict(classlabels_ints=list(range(5, 5 + len(counts)))) if form == "RBF" else dict(classlabels_strings=list("dbca"[:len(counts)]))
        for post in ("NONE", "LOGISTIC", "SOFTMAX"):
            case(f"SVMClassifier_{form}_{len(counts)}_{post}", "SVMClassifier", [f32(7, 4)], 2, post_transform=post, **own, **names)
        case(f"SVMClassifier_{form}_{len(counts)}_probabilities", "SVMClassifier", [f32(7, 4)], 2, prob_a=list(-1 - abs(f32(pairs))), prob_b=list(f32(pairs)), **own, **names)

print(len(list(OUT.glob("contrib_*"))), "cases")
for name, error in failed:
    print("refused:", name, error.replace("\n", " "))
