"""Writes random small models, and products of quantised tensors, and what the standard's reference computes for them, as files of onnx_nodes.py.

Usage: onnx_random.py FOLDER [N [SEED]]. Each case is named by its seed and can be made alone: N = 1 with that seed.
"""
import pathlib, sys, warnings
import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

warnings.simplefilter("ignore")
UNARY = "Abs Neg Exp Tanh Sigmoid Relu Softplus Softsign Erf Floor Ceil Round Sin Cos Identity HardSwish Elu Selu Mish".split()
BINARY = "Add Sub Mul Max Min PRelu".split()
REDUCE = "ReduceSum ReduceMean ReduceMax ReduceMin ReduceL1 ReduceSumSquare ReduceProd".split()


def case(seed):
    rng = np.random.default_rng(seed)
    nodes, constants = [], []
    names = lambda: f"t{len(nodes)}"

    def constant(array):
        name = f"c{len(constants)}"
        constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(op, inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [f"t{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    shape = [int(n) for n in rng.integers(1, 5, rng.integers(1, 4))]
    x = rng.standard_normal(shape).astype(np.float32)
    known = [("x", tuple(shape))]
    pick = lambda: known[rng.integers(max(0, len(known) - 4), len(known))]
    for _ in range(rng.integers(3, 12)):
        (name, shape), kind = pick(), rng.integers(12)
        rank = len(shape)
        axis = int(rng.integers(rank)) if rank else 0
        if kind < 2:
            known.append((node(UNARY[rng.integers(len(UNARY))], [name]), shape))
        elif kind < 4:
            other, b = pick()
            try:
                both = np.broadcast_shapes(shape, b)
            except ValueError:
                continue
            op = BINARY[rng.integers(len(BINARY))]
            if op == "PRelu" and both != shape:
                op = "Add"
            known.append((node(op, [name, other]), both))
        elif kind == 4 and rank:
            keep = int(rng.integers(2))
            op = REDUCE[rng.integers(len(REDUCE))]
            out = node(op, [name, constant(np.array([axis]))], keepdims=keep)
            known.append((out, shape[:axis] + ((1,) if keep else ()) + shape[axis + 1 :]))
        elif kind == 5 and rank > 1:
            order = [int(i) for i in rng.permutation(rank)]
            known.append((node("Transpose", [name], perm=order), tuple(shape[i] for i in order)))
        elif kind == 6:
            # By the shape of the tensor, as exported models do it.
            of = node("Shape", [name])
            total = node("ReduceProd", [of, constant(np.array([0]))], keepdims=1)
            known.append((node("Reshape", [name, total], allowzero=1), (int(np.prod(shape)),)))
        elif kind == 7 and rank:
            n = shape[axis]
            start, step = int(rng.integers(-n - 1, n + 1)), int(rng.choice([-2, -1, 1, 2]))
            end = int(rng.integers(-n - 2, n + 2))
            out = node("Slice", [name, *map(constant, ([start], [end], [axis], [step]))])
            length = np.empty(shape)[tuple([slice(None)] * axis + [slice(start, end, step)])].shape
            known.append((out, length))
        elif kind == 8 and rank:
            places = rng.integers(-shape[axis], shape[axis], [int(n) for n in rng.integers(1, 4, rng.integers(0, 3))])
            if shape[axis]:
                out = node("Gather", [name, constant(places.astype(np.int64))], axis=axis)
                known.append((out, shape[:axis] + places.shape + shape[axis + 1 :]))
        elif kind == 9 and rank:
            known.append((node("Concat", [name, name], axis=axis), shape[:axis] + (2 * shape[axis],) + shape[axis + 1 :]))
        elif kind == 10 and rank and shape[-1] and np.prod(shape):
            weight = rng.standard_normal((shape[-1], int(rng.integers(1, 5)))).astype(np.float32)
            known.append((node("MatMul", [name, constant(weight)]), shape[:-1] + weight.shape[1:]))
        elif kind == 11 and rank and np.prod(shape):
            known.append((node("Softmax", [name], axis=axis), shape))
        if np.prod(known[-1][1]) > 5000:
            known.pop(), nodes.pop()
    if not nodes:
        node("Identity", ["x"])
        known.append(("t0", known[0][1]))
    outputs = [name for name, _ in known[1:]] or ["t0"]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    graph = helper.make_graph(nodes, f"random_{seed}", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)], info, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    return model, x, ReferenceEvaluator(model).run(None, {"x": x})


def quantised(seed):
    """A product of integers of 8 bits less their zero points, in i32 or of what DequantizeLinear makes of them."""
    rng = np.random.default_rng([seed, 1])
    one_of = lambda *options: options[rng.integers(len(options))]
    extent = lambda most: int(rng.integers(1, most + 1))
    kind, is_float = one_of("conv", "matmul", "gemm"), rng.integers(3) > 0
    attributes, axis = {}, 0
    if kind == "conv":
        n, group = extent(2), extent(2)
        kernel = [extent(3) for _ in range(n)]
        image = [k * 2 + extent(6) for k in kernel]
        shapes = [[extent(2), group * extent(9)] + image]
        shapes.append([group * extent(9), shapes[0][1] // group] + kernel)
        attributes = {"group": group, "pads": [int(p) for p in rng.integers(0, 3, 2 * n)],
                      "strides": [extent(2) for _ in range(n)], "dilations": [extent(2) for _ in range(n)]}
    else:
        m, k, n = extent(40), extent(70), extent(40)
        shapes, axis = [[m, k], [k, n]], 1
        if kind == "gemm" and is_float:
            attributes = {"transA": extent(2) - 1, "transB": extent(2) - 1, "alpha": 0.5}
            if attributes["transA"]: shapes[0].reverse()
            if attributes["transB"]: shapes[1].reverse(); axis = 0
        elif rng.integers(2):
            shapes[0].insert(0, extent(3))
    types = [one_of(np.uint8, np.int8) for _ in range(2)]
    codes = [rng.integers(np.iinfo(t).min, np.iinfo(t).max + 1, shape).astype(t) for t, shape in zip(types, shapes)]
    # One for all or, of the second, one for each row or column of results.
    lengths = [None, one_of(None, shapes[1][axis])]
    zeros = [np.asarray(rng.integers(np.iinfo(t).min, np.iinfo(t).max + 1, n)).astype(t) for t, n in zip(types, lengths)]
    zeros = [one_of(zero, np.zeros_like(zero), zero) for zero in zeros]
    scales = [np.asarray(rng.uniform(0.01, 0.1, n)).astype(np.float32) for n in lengths]
    is_constant = one_of(False, True, True)
    constants = [numpy_helper.from_array(zero, f"zero{i}") for i, zero in enumerate(zeros)]
    nodes, names = [], ["x", "w"]
    if is_constant:
        constants.append(numpy_helper.from_array(codes[1], "w"))
    if is_float:
        constants += [numpy_helper.from_array(scale, f"scale{i}") for i, scale in enumerate(scales)]
        nodes = [helper.make_node("DequantizeLinear", [name, f"scale{i}", f"zero{i}"], [f"d{i}"], axis=axis if i else 1) for i, name in enumerate(names)]
        op = {"conv": "Conv", "matmul": "MatMul", "gemm": "Gemm" if len(shapes[0]) == 2 else "MatMul"}[kind]
        nodes.append(helper.make_node(op, ["d0", "d1"], ["y"], **(attributes if op != "MatMul" else {})))
    else:
        op = "ConvInteger" if kind == "conv" else "MatMulInteger"
        nodes.append(helper.make_node(op, names + ["zero0", "zero1"], ["y"], **attributes))
    given = dict(list(zip(names, codes))[: 1 if is_constant else 2])
    info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT if is_float else TensorProto.INT32, None)
    graph = helper.make_graph(nodes, f"quantised_{seed}", info, [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    # By definition: of floats of 64 bits, which hold these integers.
    centred = []
    for i, (code, zero) in enumerate(zip(codes, zeros)):
        along = [1] * code.ndim
        if zero.ndim: along[axis] = zero.size
        centred.append((code.astype(np.float64) - zero.reshape(along)) * (scales[i].astype(np.float64).reshape(along) if is_float else 1))
    wide = onnx_in_doubles("Conv" if kind == "conv" else op.replace("Integer", ""), attributes if "MatMul" not in op else {})
    y = ReferenceEvaluator(wide).run(None, {"x": centred[0], "w": centred[1]})[0]
    return model, given, [y.astype(np.float32 if is_float else np.int32)]


def onnx_in_doubles(op, attributes):
    """A model of one product of floats of 64 bits."""
    info = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in ("x", "w")]
    output = helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)
    graph = helper.make_graph([helper.make_node(op, ["x", "w"], ["y"], **attributes)], "doubles", info, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def write(folder, model, given, results):
    (folder / "set_0").mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "tolerance").write_text("1e-3 1e-4\n")
    for i, (name, x) in enumerate(given.items()):
        (folder / f"set_0/input_{i}.pb").write_bytes(numpy_helper.from_array(x, name).SerializeToString())
    for i, y in enumerate(results):
        (folder / f"set_0/output_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(y)).SerializeToString())


out = pathlib.Path(sys.argv[1])
n, first = (int(a) for a in (sys.argv[2:] + ["200", "0"][len(sys.argv) - 2 :]))
for seed in range(first, first + n):
    try:
        model, x, results = case(seed)
    except (ValueError, TypeError) as error:
        # The reference does not reduce or multiply what is empty, and refuses some numbers without axes.
        print(f"seed {seed}: {error}")
        continue
    # What overflows says nothing.
    if not all(np.isfinite(y).all() and np.abs(y).max(initial=0) < 1e6 for y in results):
        continue
    write(out / f"random_{seed}", model, {"x": x}, results)
for seed in range(first, first + n):
    write(out / f"quantised_{seed}", *quantised(seed))
