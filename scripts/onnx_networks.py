"""Random cases of the neural-network operators, computed by onnxruntime (Resize and DeformConv by the standard's
reference), in the layout of onnx_nodes.py: onnx_networks.py FOLDER [SEED] [ROUNDS] [float16|float64].

ZYX_ONNX_NODES=FOLDER cargo test -p zyx --features onnx --test onnx runs them. Left out is where onnxruntime does not do what the
standard says: pools with SAME padding and dilations, or windows smaller than strides under SAME padding."""
import pathlib, sys
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)
out = pathlib.Path(sys.argv[1])
seed, rounds = (int(n) for n in (sys.argv[2:4] + ["0", "20"][len(sys.argv[2:4]):]))
dtype = np.dtype(sys.argv[4] if len(sys.argv) > 4 else "float32")
rng = np.random.default_rng(seed)
counts, refused = {}, {}

def floats(*shape): return rng.standard_normal(shape).astype(np.float32).astype(dtype).astype(np.float32)
def number(low, high): return int(rng.integers(low, high + 1))
def numbers(n, low, high): return [number(low, high) for _ in range(n)]
def pick(*choices): return choices[number(0, len(choices) - 1)]
def maybe(value): return pick(value, None)
def typed(x, plain): return x if plain or x.dtype != np.float32 else x.astype(dtype)

def case(op, inputs, outputs=1, opset=22, plain=(), by_reference=False, tolerance=1e-4, **attributes):
    """Computed in f32; inputs and outputs are written as `dtype`, but for those numbered in `plain`."""
    counts[op] = counts.get(op, 0) + 1
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    attributes = {name: value for name, value in attributes.items() if value is not None}
    node = helper.make_node(op, names, results, **attributes)
    def info(name, x): return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    def model(inputs, outputs):
        infos = [info(name, x) for name, x in zip(names, inputs) if name]
        graph = helper.make_graph([node], "case", infos, outputs)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version={7: 3, 9: 4, 10: 5}.get(opset, 8))
    given = {name: x for name, x in zip(names, inputs) if name}
    try:
        if by_reference:
            found = ReferenceEvaluator(model(inputs, [helper.make_tensor_value_info(y, TensorProto.FLOAT, None) for y in results])).run(None, given)
        else:
            text = model(inputs, [onnx.ValueInfoProto(name=y) for y in results]).SerializeToString()
            found = onnxruntime.InferenceSession(text, providers=["CPUExecutionProvider"]).run(None, given)
    except Exception as error:
        refused.setdefault(op, set()).add(str(error)[-150:])
        return
    inputs = [x if x is None else typed(x, i in plain) for i, x in enumerate(inputs)]
    with np.errstate(over="ignore"): found = [typed(np.asarray(y), op == "LayerNormalization" and i > 0) for i, y in enumerate(found)]
    if not all(np.isfinite(y).all() for y in found): return  # Halves overflow, and onnxruntime's Softplus.
    data = out / f"{op}_{seed}_{counts[op]:03}" / "set_0"
    data.mkdir(parents=True)
    (data.parent / "model.onnx").write_bytes(model(inputs, [info(*y) for y in zip(results, found)]).SerializeToString())
    tolerance = 2e-2 if dtype == np.float16 else tolerance
    (data.parent / "tolerance").write_text(f"{tolerance} {tolerance}\n")
    for kind, arrays in (("input", [x for x in inputs if x is not None]), ("output", found)):
        for i, x in enumerate(arrays):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.ascontiguousarray(x)).SerializeToString())

def convolutions():
    n, group = pick(1, 2, 2, 3), pick(1, 1, 2)
    channels, filters, kernel, extents = group * number(1, 3), group * number(1, 3), numbers(n, 1, 3), numbers(n, 5, 8)
    strides, dilations = numbers(n, 1, 3), numbers(n, 1, 2)
    auto = pick(None, None, "SAME_UPPER", "SAME_LOWER", "VALID")
    is_same = auto is not None and auto != "VALID"
    if is_same:
        kernel, dilations = [max(k, s) for k, s in zip(kernel, strides)], [1] * n
    common = dict(strides=strides, dilations=dilations, auto_pad=auto)
    pads = None if auto else numbers(2 * n, 0, 3)
    bias = maybe(floats(filters))
    case("Conv", [floats(2, channels, *extents), floats(filters, channels // group, *kernel), bias], group=group, pads=pads, **common)
    more = dict(pads=numbers(2 * n, 0, 1), output_padding=[number(0, s - 1) for s in strides]) if not auto else {}
    small = numbers(n, 2, 5)
    case("ConvTranspose", [floats(2, channels, *small), floats(channels, filters // group, *kernel), bias], group=group, **common, **more)
    whole = [(m - 1) * s + (k - 1) * d + 1 for m, s, k, d in zip(small, strides, kernel, dilations)]
    case("ConvTranspose", [floats(1, 2, *small), floats(2, 1, *kernel)], strides=strides, dilations=dilations, output_shape=[max(1, w - number(0, 2)) for w in whole])
    pads = None if auto else [number(0, kernel[i % n] - 1) for i in range(2 * n)]
    pool = dict(kernel_shape=kernel, pads=pads, ceil_mode=None if auto else number(0, 1), **common)
    x = floats(2, 2, *extents)
    case("MaxPool", [x], outputs=2, storage_order=number(0, 1), **pool)
    case("MaxPool", [rng.integers(-128, 127, x.shape).astype(np.int8)], **pool)
    case("AveragePool", [x], count_include_pad=number(0, 1), **pool)
    case("LpPool", [x], opset=18, p=number(1, 3), **pool)
    case("GlobalLpPool", [x], opset=15, p=number(1, 3))
    image, kernel, strides, dilations, pads = numbers(2, 4, 6), numbers(2, 1, 3), numbers(2, 1, 2), numbers(2, 1, 2), numbers(4, 0, 2)
    columns = [(image[i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i in (0, 1)]
    if min(columns) > 0:
        x = floats(2, 2 * kernel[0] * kernel[1], columns[0] * columns[1])
        case("Col2Im", [x, np.array(image), np.array(kernel)], opset=18, strides=strides, dilations=dilations, pads=pads)
    places, pads = numbers(2, 1, 3), numbers(4, 0, 1)
    extents = [(places[i] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + 2] for i in (0, 1)]
    if min(extents) > 1:
        groups, parts, size = pick(1, 2), pick(1, 2), kernel[0] * kernel[1]
        inputs = [floats(1, 4, *extents), floats(2 * groups, 4 // groups, *kernel), floats(1, parts * 2 * size, *places)]
        inputs += [floats(2 * groups), floats(1, parts * size, *places)]
        case("DeformConv", inputs, opset=19, by_reference=True, tolerance=1e-3, strides=strides, pads=pads, group=groups, offset_group=parts)

def images():
    shape = numbers(pick(0, 1, 2), 1, 3) + numbers(2, 2, 6)
    lead, mode = len(shape) - 2, pick("nearest", "linear", "cubic")
    coordinates = pick("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")
    crops, cubic = coordinates == "tf_crop_and_resize", mode == "cubic"
    region = np.concatenate([[0] * lead, rng.uniform(0, 0.4, 2), [1] * lead, rng.uniform(0.6, 1.2, 2)]).astype(np.float32)
    options = dict(mode=mode, coordinate_transformation_mode=coordinates, extrapolation_value=3.0 if crops else None)
    if mode == "nearest":
        options["nearest_mode"] = pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    elif not crops:
        options["antialias"] = pick(0, 0, 1)
    if cubic:
        options.update(exclude_outside=number(0, 1), cubic_coeff_a=pick(-0.5, -0.75))
    sizes = np.array(shape[:lead] + numbers(2, 1, 9))
    scales = np.array([1] * lead + [pick(0.5, 0.6, 0.8, 1.5, 2, 2.5, 3) for _ in range(2)], np.float32)
    inputs = [floats(*shape), region if crops else None] + pick([scales], [None, sizes])
    case("Resize", inputs, opset=19, plain=(1, 2), by_reference=True, **options)
    x, mode = floats(1, 2, 6, 8), pick("nearest", "linear")
    case("Resize", [x, np.array([1, 1, pick(0.5, 1.5, 2, 3), pick(0.5, 0.75, 2)], np.float32)], opset=10, plain=(1,), mode=mode)
    case("Upsample", [x, np.array([1, 1, pick(1, 2, 3), pick(1, 2, 4)], np.float32)], opset=9, plain=(1,), mode=mode)
    case("Upsample", [x], opset=7, mode=mode, scales=[1.0, 1.0, 2.0, 3.0])
    if dtype == np.float16: return  # Places are too coarse to be compared.
    grid = rng.uniform(-2.5, 2.5, (2, 3, 4, 2)).astype(np.float32)
    options = dict(mode=pick("linear", "nearest", "cubic"), padding_mode=pick("zeros", "border", "reflection"))
    case("GridSample", [floats(2, 2, number(1, 5), number(2, 5)), grid], opset=20, tolerance=1e-3, align_corners=number(0, 1), **options)
    x, regions = floats(2, 2, 7, 6), np.sort(rng.uniform(-1, 12, (3, 2, 2)), axis=1).reshape(3, 4).astype(np.float32)
    options = dict(mode=pick("avg", "avg", "max"), coordinate_transformation_mode=pick("half_pixel", "output_half_pixel"))
    options.update(output_height=number(1, 3), output_width=number(1, 3), sampling_ratio=number(0, 2), spatial_scale=0.5)
    case("RoiAlign", [x, regions, rng.integers(0, 2, 3)], opset=16, **options)
    regions = np.concatenate([rng.integers(0, 2, (3, 1)), regions], 1).astype(np.float32)
    case("MaxRoiPool", [x, regions], opset=15, pooled_shape=numbers(2, 1, 4), spatial_scale=0.5)

SCALED = dict(LeakyRelu=1, ThresholdedRelu=1, Elu=1, Affine=2, ScaledTanh=2, HardSigmoid=2)

def recurrent():
    for op, gates, functions, states in (("RNN", 1, 1, 1), ("GRU", 3, 2, 1), ("LSTM", 4, 3, 2)):
        direction = pick("forward", "reverse", "bidirectional")
        count = 2 if direction == "bidirectional" else 1
        time, batch, size, hidden = number(1, 4), number(1, 3), number(1, 3), number(1, 3)
        names = [pick("Relu", "Tanh", "Sigmoid", "Softsign", "Softplus", *SCALED) for _ in range(functions * count)]
        options = dict(hidden_size=hidden, direction=direction, clip=maybe(0.7))
        if number(0, 1):
            def parameters(n): return [round(rng.uniform(0.1, 1), 2) for name in names if SCALED.get(name, 0) >= n] or None
            options.update(activations=names, activation_alpha=parameters(1), activation_beta=parameters(2))
        if op == "GRU": options["linear_before_reset"] = number(0, 1)
        if op == "LSTM": options["input_forget"] = number(0, 1)
        inputs = [floats(time, batch, size), floats(count, gates * hidden, size), floats(count, gates * hidden, hidden)]
        inputs += [maybe(floats(count, 2 * gates * hidden)), maybe(rng.integers(1, time + 1, batch).astype(np.int32))]
        inputs += [maybe(floats(count, batch, hidden)) for _ in range(states)]
        if op == "LSTM": inputs.append(maybe(floats(count, 3 * hidden)))
        case(op, inputs, outputs=1 + states, opset=14, **options)

def norms():
    x, per_channel = floats(3, 2, 4), [floats(2), floats(2), floats(2), np.abs(floats(2))]
    case("BatchNormalization", [x, *per_channel], opset=9, epsilon=1e-3)
    case("InstanceNormalization", [x, *per_channel[:2]])
    case("LayerNormalization", [x, floats(2, 4), floats(2, 4)], outputs=3, opset=17, axis=1)
    case("LpNormalization", [x], p=number(1, 2), axis=number(-3, 2))
    case("LRN", [floats(2, number(1, 6), 3, 2)], size=pick(1, 3, 5), alpha=0.3, beta=0.6, bias=1.5)

for _ in range(rounds):
    convolutions(); images(); recurrent(); norms()
print(sum(counts.values()), "cases, refused:", refused)
