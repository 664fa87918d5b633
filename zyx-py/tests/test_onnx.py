"""`zyx.onnx`: models that these tests write byte by byte, and the results of NumPy."""

import io
import os
import pathlib
import signal
import threading
import time

import numpy as np
import pytest
import zyx

FLOAT, INT64, STRING = 1, 7, 8


def field(number, value):
    """A field of protobuf: an integer, text, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def port(name, dtype, shape):
    dims = b"".join(field(1, field(1, n) if isinstance(n, int) else field(2, n)) for n in shape)
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, dims)))


def tensor(name, array):
    kind = {"f": FLOAT, "i": INT64}[array.dtype.kind]
    return b"".join(field(1, n) for n in array.shape) + field(2, kind) + field(8, name) + field(9, array.tobytes())


def node(kind, inputs, outputs, **attributes):
    def attribute(name, value):
        if isinstance(value, list):
            return field(1, name) + b"".join(field(9, text) for text in value) + field(20, 8)
        return field(1, name) + field(3, value) + field(20, 2)

    names = b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs)
    return names + field(4, kind) + b"".join(field(5, attribute(*item)) for item in attributes.items())


def model(nodes, inputs, outputs, tensors=()):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g") + b"".join(field(5, t) for t in tensors)
    graph += b"".join(field(11, port(*p)) for p in inputs) + b"".join(field(12, port(*p)) for p in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 20))


W = (np.arange(12, dtype=np.float32).reshape(4, 3) * 7 % 12 - 5) / 10
X = np.array([[1, -2, 3, 4], [0, 5, -1, 2]], np.float32)
LINEAR = model(
    [node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y.0"]), node("ArgMax", ["h"], ["best"], axis=1, keepdims=0)],
    [("x", FLOAT, ["batch", 4])],
    [("y.0", FLOAT, ["batch", 3]), ("best", INT64, ["batch"])],
    [tensor("w", W)],
)


def test_what_a_model_says_of_itself():
    net = zyx.onnx.load(LINEAR)
    assert net.inputs == [("x", zyx.float32, ("batch", 4))]
    assert [port.name for port in net.outputs] == ["y.0", "best"]
    assert net.outputs[1].dtype == zyx.int64 and net.outputs[1].shape == ("batch",)
    assert str(net.device).startswith("cpu") and "x: " in repr(net)


@pytest.mark.parametrize("batch", [1, 2])
def test_calls(batch):
    net, x = zyx.onnx.load(LINEAR), X[:batch]
    y, best = np.maximum(x @ W, 0), (x @ W).argmax(1)
    for given in [x, zyx.tensor(x), x.tolist()]:
        for outputs in [net(given), net(x=given), net({"x": given}), net.run(None, {"x": given})]:
            np.testing.assert_allclose(outputs[0].numpy(), y, rtol=1e-6)
            assert outputs[1].dtype == zyx.int64 and outputs[1].tolist() == best.tolist()
    (only,) = net.run(["best"], {"x": x})
    assert only.tolist() == best.tolist()


def test_where_a_model_comes_from(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(LINEAR)
    with open(path, "rb") as file:
        nets = [zyx.onnx.load(source, device="cpu") for source in (path, str(path), file, io.BytesIO(LINEAR), memoryview(LINEAR))]
    for net in nets:
        np.testing.assert_allclose(net(X)[0].numpy(), np.maximum(X @ W, 0), rtol=1e-6)
    tiny = pathlib.Path(__file__).parents[2] / "examples" / "data" / "tiny.onnx"
    y = zyx.onnx.load(tiny)(X)
    assert y.shape == (2, 3)
    np.testing.assert_allclose(y.sum(dim=1).numpy(), [1, 1], rtol=1e-6)


def test_gradients():
    net = zyx.onnx.load(LINEAR)
    x = zyx.tensor(X, requires_grad=True)
    np.testing.assert_allclose(zyx.grad(net(x)[0].sum(), x).numpy(), (X @ W > 0) @ W.T, rtol=1e-6)
    assert not net(X)[0].requires_grad
    with zyx.no_grad():
        assert not net(x)[0].requires_grad


def test_training():
    net = zyx.onnx.load(LINEAR)
    parameters = {name: zyx.nn.Parameter(p) for name, p in net.parameters().items()}
    assert list(parameters) == ["w"]
    optimizer = zyx.optim.SGD(parameters.values(), lr=0.01)
    losses = []
    for _ in range(20):
        loss = net(X, **parameters)[0].mse_loss(zyx.ones(2, 3))
        losses.append(loss.item())
        optimizer.step(loss)
    assert losses[-1] < 0.5 * losses[0]
    np.testing.assert_allclose(net(X)[0].numpy(), np.maximum(X @ W, 0), rtol=1e-6)


def test_strings():
    inputs, outputs = [("a", STRING, ["n"]), ("b", STRING, [])], [("joined", STRING, ["n"])]
    net = zyx.onnx.load(model([node("StringConcat", ["a", "b"], ["joined"])], inputs, outputs))
    assert net.inputs[0].dtype is None
    for a in (["x", "y"], np.array(["x", "y"]), np.array(["x", "y"], object)):
        assert net(a, "!") == ["x!", "y!"]
    with pytest.raises(TypeError):
        net([1, "x"], "!")


def test_sequences():
    nodes = [node("SequenceConstruct", ["x", "x"], ["pair"]), node("SequenceLength", ["pair"], ["n"])]
    net = zyx.onnx.load(model(nodes, [("x", FLOAT, ["n"])], [("pair", 0, []), ("n", INT64, [])]))
    pair, n = net([1.0, 2.0])
    assert [part.tolist() for part in pair] == [[1, 2], [1, 2]] and n.item() == 2


def test_errors(tmp_path):
    net = zyx.onnx.load(LINEAR)
    for call, words in [
        (lambda: net(X, X, X), "takes 1 inputs"),
        (lambda: net(X, x=X), "given twice"),
        (lambda: net(), "input `x.* is missing"),
        (lambda: net(z=X), "no input `z`; there are: x"),
        (lambda: net(X.astype(np.float64)), "given as a f64 tensor"),
        (lambda: net(X[:, :3]), "MatMul"),
        (lambda: net(X, w=W.T.copy()), "parameter `w`"),
        (lambda: net.run(["z"], {"x": X}), "no output 'z'; there are: y.0, best"),
        (lambda: zyx.onnx.load(b"no model"), "no ONNX model"),
        (lambda: zyx.onnx.load(model([node("Nope", ["x"], ["y"])], [], [])), "Nope of opset 20"),
    ]:
        with pytest.raises((ValueError, TypeError), match=words):
            call()
    with pytest.raises(FileNotFoundError):
        zyx.onnx.load(tmp_path / "nowhere.onnx")
    with pytest.raises(TypeError):
        zyx.onnx.load(3)


def test_results_are_those_of_the_reference():
    # Not `onnx`, which is a folder of this repository.
    reference = pytest.importorskip("onnx.reference")
    expected = reference.ReferenceEvaluator(LINEAR).run(None, {"x": X})
    for found, wanted in zip(zyx.onnx.load(LINEAR)(X), expected):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


# Every type of the standard by its number: what NumPy or `ml_dtypes` calls it.
ELEMENTS = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "str", 9: "bool", 10: "float16", 11: "float64",
    12: "uint32", 13: "uint64", 16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
    21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
}  # fmt: skip
# Types without a dtype, which a model casts before it gives them out.
CODED = range(17, 27)
KINDS = {
    "tensor": lambda kind: kind,
    "sequence": lambda kind: field(4, field(1, kind)),
    "optional": lambda kind: field(9, field(1, kind)),
    "optional sequence": lambda kind: field(9, field(1, field(4, field(1, kind)))),
    "sequence of optionals": lambda kind: field(4, field(1, field(9, field(1, kind)))),
}


def of_kind(element, kind, name="x"):
    """The input of a model."""
    return field(1, name) + field(2, KINDS[kind](field(1, field(1, element))))


def array(element, shape):
    """Small numbers or strings of a type."""
    name = ELEMENTS[element]
    values = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape) % 2
    if element == 24:
        # It has no 0.
        values = 2**values
    if name == "str":
        return np.array(["ab"[int(x)] for x in values.ravel()], object).reshape(shape)
    if element in CODED or name == "bfloat16":
        return values.astype(getattr(pytest.importorskip("ml_dtypes"), name))
    return values.astype(name)


def listed(x):
    """Nested lists of numbers and strings, whatever holds them."""
    if isinstance(x, (list, tuple)):
        return [listed(item) for item in x]
    return x.tolist() if hasattr(x, "tolist") else x


def loaded(nodes, inputs, outputs):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g")
    graph += b"".join(field(11, i) for i in inputs) + b"".join(field(12, field(1, name)) for name in outputs)
    return zyx.onnx.load(field(1, 12) + field(7, graph) + field(8, field(1, "") + field(2, 24)))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("shape", [(2,), (0,), (2, 0, 3), (), (2, 2)])
def test_values_of_every_kind_and_type(element, shape):
    x = array(element, shape)
    given = {
        "tensor": [x, x.tolist() if element == 8 else x.astype(np.float64).tolist()] if x.size and element != 9 else [x],
        "sequence": [[x, x], (x,), [], [x, array(element, (3, 1))]],
        "optional": [x, None],
        "optional sequence": [[x, x], [], None],
        "sequence of optionals": [[x, None, x], [None], []],
    }
    for kind, values in given.items():
        net = loaded([node("Identity", ["x"], ["y"])], [of_kind(element, kind)], ["y"])
        dtype = net.inputs[0].dtype
        assert (dtype and dtype.name) == (None if kind != "tensor" or element in (8, *CODED) else ELEMENTS[element])
        for value in values:
            has_elements = value is not None and (kind in ("tensor", "optional") or any(part is not None for part in value))
            if element in CODED and has_elements:
                # A named error; the value itself is right, as the next test shows.
                with pytest.raises(TypeError, match="Cast it in the model"):
                    net(value)
                continue
            y = net(value)
            assert listed(y) == listed(value), kind
            for part, wanted in zip(y, value) if isinstance(y, list) and element != 8 else []:
                if part is not None:
                    assert part.dtype.name == ELEMENTS[element] and part.shape == wanted.shape
    # An input of another kind is refused, not guessed.
    for kind, wrong in [("sequence", x), ("sequence", None), ("sequence", "ab"), ("tensor", [x, array(element, (3, 4, 5))]), ("optional sequence", x)]:
        net = loaded([node("Identity", ["x"], ["y"])], [of_kind(element, kind)], ["y"])
        with pytest.raises((TypeError, ValueError)):
            net(wrong)
    other = np.zeros(shape, "int8" if element != 3 else "int16")
    with pytest.raises((TypeError, ValueError)):
        loaded([node("Identity", ["x"], ["y"])], [of_kind(element, "tensor")], ["y"])(other)


@pytest.mark.parametrize("element", [element for element in ELEMENTS if element != 8])
def test_casts_to_the_type_of_another(element):
    """By an array of the type, empty or not, and back."""
    nodes = [node("CastLike", ["x", "like"], ["z"]), node("Cast", ["z"], ["y"], to=FLOAT)]
    net = loaded(nodes, [field(1, "x") + field(2, field(1, field(1, FLOAT))), of_kind(element, "tensor", "like")], ["y"])
    x = array(element, (3,)).astype(np.float32)
    for like in [array(element, (2,)), array(element, (0,)), array(element, (0, 3)), array(element, ())]:
        assert net(x, like).tolist() == x.tolist()
    # The values that go in come out.
    back = loaded([node("Cast", ["x"], ["y"], to=FLOAT)], [of_kind(element, "tensor")], ["y"])
    given = array(element, (2, 3))
    assert back(given).tolist() == given.astype(np.float32).tolist()
    assert back(array(element, (0, 3))).shape == (0, 3)
    assert back(x.astype(given.dtype if element == 9 else np.float32).tolist()).tolist() == x.tolist()


def test_numbers_that_no_code_is_for():
    for element, least, most in [(22, -8, 7), (21, 0, 15), (26, -2, 1), (25, 0, 3)]:
        net = loaded([node("Cast", ["x"], ["y"], to=FLOAT)], [of_kind(element, "tensor")], ["y"])
        assert net([least, most]).tolist() == [least, most]
        for wrong in (least - 1, most + 1):
            with pytest.raises(OverflowError):
                net([wrong])


@pytest.mark.parametrize("element", [1, 7, 9, 10, 8])
def test_operators_on_lists_and_optionals(element):
    x, y = array(element, (2,)), array(element, (3,))
    get = loaded([node("OptionalGetElement", ["x"], ["y"])], [of_kind(element, "optional sequence")], ["y"])
    assert listed(get([x, y])) == [x.tolist(), y.tolist()] and get([]) == []
    with pytest.raises(ValueError, match="no value"):
        get(None)
    has = loaded([node("OptionalHasElement", ["x"], ["y"])], [of_kind(element, "optional")], ["y"])
    assert has(x).item() and not has(None).item()
    nodes = [node("SequenceLength", ["x"], ["n"]), node("Identity", ["x"], ["z"]), node("Optional", ["z"], ["y"])]
    both = loaded(nodes, [of_kind(element, "sequence")], ["n", "y"])
    for values in ([], [x], [x, y, x]):
        n, again = both(values)
        assert n.item() == len(values) and listed(again) == listed(values)


def test_maps():
    """A classifier's scores by label, as `ZipMap` gives them."""
    zipped = node("ZipMap", ["x"], ["y"], classlabels_strings=["b", "a"]) + field(7, "ai.onnx.ml")
    graph = field(1, zipped) + field(11, port("x", FLOAT, ["n", 2])) + field(12, field(1, "y"))
    opsets = [field(1, "ai.onnx.ml") + field(2, 1), field(1, "") + field(2, 20)]
    net = zyx.onnx.load(field(1, 8) + field(7, graph) + b"".join(field(8, opset) for opset in opsets))
    assert net(X[:, :2]) == [{"b": 1.0, "a": -2.0}, {"b": 0.0, "a": 5.0}]


def test_interrupts():
    """Ctrl-C ends a loop without end within a second."""
    ports = [b"".join(field(n, field(1, name)) for name in names) for n, names in [(11, "icv"), (12, "dw")]]
    body = field(1, node("Identity", ["c"], ["d"])) + field(1, node("Identity", ["v"], ["w"])) + b"".join(ports)
    loop = node("Loop", ["", "", "x"], ["y"]) + field(5, field(1, "body") + field(6, body) + field(20, 5))
    endless = zyx.onnx.load(model([loop], [("x", INT64, [1])], [("y", INT64, [1])]))
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.3, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        endless(np.zeros(1, np.int64))
    assert time.monotonic() - sent[0] < 1
    # What comes after is not interrupted.
    assert zyx.ones(2).sum().item() == 2
