"""`zyx.onnx`: models that these tests write byte by byte, and the results of NumPy."""

import io
import pathlib

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
