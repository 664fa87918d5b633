"""What a host may do to a program: exceptions in callbacks, forks, threads, memory and pipes that are short, signals."""

import io
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import zyx
import zyx.nn.functional as F

linux = pytest.mark.skipif(sys.platform != "linux", reason="of Linux")


def run(program, timeout=120, **options):
    """What a program of its own prints."""
    environment = {**os.environ, **options}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=timeout, env=environment,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    return done.stdout.strip()


# Places where a function of Python is called by Rust.


class Odd(Exception):
    pass


def raising(error):
    def raise_it(*_):
        raise error

    return raise_it


def calls(f):
    x = zyx.ones(2, requires_grad=True)
    seeded = lambda: zyx.ones(2, requires_grad=True)
    return {
        "jit": lambda: zyx.jit(f)(zyx.ones(2)),
        "nested jit": lambda: zyx.jit(lambda a: zyx.jit(f)(a))(zyx.ones(2)),
        "vmap": lambda: zyx.vmap(f)(zyx.ones(2, 3)),
        "value_and_grad": lambda: zyx.value_and_grad(f)(zyx.ones(2)),
        "jvp": lambda: zyx.Tensor.jvp(f, [zyx.ones(2)], [zyx.ones(2)]),
        "checkpoint": lambda: zyx.Tensor.checkpoint(f, [seeded()]),
        "gradcheck": lambda: zyx.Tensor.gradcheck(f, [zyx.ones(2, dtype=zyx.float64)]),
        "associative_scan": lambda: zyx.Tensor.associative_scan(f, [zyx.ones(4)]),
        "gradient rule": lambda: zyx.ones(2).with_gradient([x], f).sum().gradient(x),
        "index": lambda: zyx.ones(3)[type("I", (), {"__index__": f})()],
        "argument": lambda: zyx.ones(type("I", (), {"__index__": f})()),
        "write": lambda: zyx.save({"x": zyx.ones(2)}, type("W", (), {"write": f})()),
        "read": lambda: zyx.load(type("R", (), {"read": f})()),
    }


@pytest.mark.parametrize("name", calls(None))
@pytest.mark.parametrize("kind", [Odd, KeyboardInterrupt, SystemExit, KeyError, StopIteration, GeneratorExit])
def test_exceptions_of_callbacks_pass_unchanged(name, kind):
    error = kind("as asked")
    with pytest.raises(kind) as caught:
        calls(raising(error))[name]()
    assert caught.value is error
    names = []
    trace = caught.value.__traceback__
    while trace:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "raise_it" in names


def test_a_callback_that_gives_no_tensor_is_a_type_error():
    with pytest.raises(TypeError):
        zyx.vmap(lambda x: 3)(zyx.ones(2, 3))


# Forks.

FORK = """
    import os, sys, threading, time
    import zyx
    x = zyx.randn(64, 64)
    want = (x @ x).sum().item()
    stop, done = False, [0, 0]
    f = zyx.jit(lambda a: (a @ a).relu().sum())

    def work(i):
        n = 8
        while not stop:
            # New sizes are compiled.
            n = n % 200 + 1
            y = zyx.ones(n, 8 + i)
            assert (y @ y.T).sum().item() == n * n * (8 + i)
            f(x).item()
            done[i] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    started = time.time()
    for i in range(FORKS):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                # What the parent computed, and what it did not.
                a = (x @ x).sum().item()
                n = 300 + i
                b = (zyx.ones(n, 3) * 2).sum().item()
                if i % 10 == 0:
                    grandchild = os.fork()
                    if grandchild == 0:
                        os._exit(0 if (x @ x).sum().item() == want else 1)
                    assert os.waitpid(grandchild, 0)[1] == 0
                code = 0 if (a, b) == (want, 6.0 * n) else 2
            finally:
                os._exit(code)
        limit = time.time() + 60
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                break
            if time.time() > limit:
                os.kill(child, 9)
                stop = True
                sys.exit(f"the child of fork {i} hangs")
            time.sleep(0.001)
        if status:
            stop = True
            sys.exit(f"the child of fork {i} ended with {status}")
    stop = True
    for thread in threads:
        thread.join()
    assert min(done) > 0
    assert (x @ x).sum().item() == want
    print("fine", done, round(time.time() - started, 1))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_children_of_forks_compute_while_other_threads_do():
    assert run(FORK.replace("FORKS", "200"), timeout=300, ZYX_THREADS="3").startswith("fine")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_traced_function_may_fork():
    program = """
        import os, zyx
        def f(a):
            child = os.fork()
            if child == 0:
                os._exit(int(zyx.ones(3).sum().item()))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
            return a * 2
        assert zyx.jit(f)(zyx.ones(2)).tolist() == [2, 2]
        assert zyx.vmap(f)(zyx.ones(2)).tolist() == [2, 2]
        print("fine")
    """
    assert run(program, timeout=60) == "fine"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_is_told_that_it_has_no_gpu():
    found = [spec for spec, _, kind in zyx.devices() if kind in ("gpu", "software")]
    if not found:
        pytest.skip("no GPU")
    program = """
        import os, zyx
        x = zyx.ones(1000, device=DEVICE)
        assert x.sum().item() == 1000
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for work in (lambda: (x * 3).tolist(), lambda: zyx.ones(3, device=DEVICE).tolist(), x.tolist, lambda: x.sum().item()):
                    try:
                        work()
                        code = 2
                        break
                    except RuntimeError as error:
                        assert "spawn" in str(error), error
                else:
                    # The CPU computes.
                    code = 0 if zyx.ones(3, device="cpu").sum().item() == 3 else 3
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (x * 2).sum().item() == 2000
        print("fine")
    """
    for spec in found:
        assert run(program.replace("DEVICE", repr(spec)), timeout=60) == "fine"


def test_checked_mode_lets_tests_for_infinities_pass():
    program = """
    import zyx
    x, z = zyx.tensor([1.0, 2.0]).realize(), zyx.zeros(2).realize()
    assert (x / z).isinf().tolist() == [True, True] and (z / z).nan_to_num().tolist() == [0, 0]
    assert (x / z).isinf().any().item() and (z / z).nan_to_num(nan=2.0).sum().item() == 4
    try:
        (x / z).sum().item()
    except ValueError:
        print("fine")
    """
    assert run(program, ZYX_CHECKED="1") == "fine"


def test_realize_gives_the_tensor():
    for x in (zyx.ones(3) + 1, zyx.nn.Parameter(zyx.ones(3)), zyx.ones(3, requires_grad=True)):
        assert x.realize() is x


@pytest.mark.parametrize("setting", ["ZYX_CPU=sse9", "ZYX_THREADS=many", "ZYX_DEVICE=abacus", "ZYX_MEMORY_LIMIT=3X"])
def test_settings_that_cannot_be_read_are_errors(setting):
    name, value = setting.split("=")
    program = """
    import zyx
    try:
        zyx.ones(3).sum().item()
    except Exception as error:
        print(error)
    """
    assert value in run(program, **{name: value})


# Threads.


@linux
def test_work_is_done_without_threads():
    """No stack of so many bytes can be had, so no thread starts."""
    program = """
        import threading
        import zyx, zyx.utils.data
        x = zyx.randn(300, 300)
        spd = x @ x.T + 300 * zyx.eye(300)
        for name in ["cholesky", "inv", "det", "eigh", "svdvals", "qr", "svd"]:
            found = getattr(zyx.linalg, {"eigh": "eigh"}.get(name, name))(spd)
            for part in found if isinstance(found, tuple) else (found,):
                part.tolist()
        zyx.linalg.solve(spd, x).sum().item()
        zyx.linalg.inv(zyx.randn(64, 20, 20)).sum().item()
        (x @ x).softmax(1).sum().item()
        x.sort()[0].sum().item(), x.cumsum(1).sum().item(), zyx.fft.rfft(x).sum().item()
        m = zyx.nn.Sequential(zyx.nn.Conv2d(3, 8, 3), zyx.nn.ReLU())
        m(zyx.randn(4, 3, 30, 30)).sum().backward()
        data = zyx.utils.data.TensorDataset(x)
        list(zyx.utils.data.DataLoader(data, batch_size=30, num_workers=2))
        assert threading.active_count() == 1
        print("fine")
    """
    assert run(program, RUST_MIN_STACK=str(1 << 47), ZYX_THREADS="4") == "fine"


# Memory.

PEAK = """
    def peak():
        return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]) * 1024

    def reset():
        open("/proc/self/clear_refs", "w").write("5")
        return peak()
"""


@linux
@pytest.mark.parametrize("kind", ["safetensors", "object", "npy", "npz", "one"])
def test_saving_takes_constant_memory(kind, tmp_path):
    n = int(os.environ.get("ZYX_SAVED_MEGABYTES", "100"))
    program = PEAK + f"""
    import sys, zyx
    n, kind, file = {n}, {kind!r}, {str(tmp_path / "file")!r}
    parts = 1 if kind in ("npy", "one") else 4
    x = {{f"x{{i}}": zyx.ones(n * 2**18 // parts).contiguous() for i in range(parts)}}
    zyx.Tensor.realize_all(list(x.values()))
    save = {{
        "safetensors": lambda: zyx.save(x, file),
        "one": lambda: zyx.save(x, file),
        "object": lambda: zyx.save(x, open(file, "wb")),
        "npy": lambda: zyx.save_npy(x["x0"], file + ".npy"),
        "npz": lambda: zyx.save_npz(x, file + ".npz"),
    }}[kind]
    zyx.save({{"a": zyx.ones(2)}}, file)
    before = reset()
    save()
    print((peak() - before) / 2**20)
    """
    took = float(run(program.replace("\n    ", "\n")))
    assert took < 32, f"{took} MiB"


@linux
def test_printing_reads_what_it_shows():
    program = PEAK + """
    import zyx
    x = zyx.arange(12_500_000.0).reshape(2500, 5000)
    x.realize()
    repr(zyx.arange(5000.0).reshape(50, 100))
    before = reset()
    text = repr(x)
    assert text.startswith("tensor([[0.0000000e+00") and "1.2499999e+07" in text, text
    print((peak() - before) / 2**20)
    """
    took = float(run(program.replace("\n    ", "\n")))
    assert took < 8, f"{took} MiB"


def test_corners_are_those_of_numpy():
    for shape in [(1001,), (7, 1000), (1000, 7), (7, 7, 30), (2, 7, 7, 7, 9), (2, 3, 4), (1100, 1), (1, 1, 2000)]:
        x = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
        assert str(zyx.tensor(x)) == str(x)




@linux
@pytest.mark.parametrize("work, expected", [
    ("zyx.save({'x': x}, FILE)", "fine"),
    ("zyx.save_npz({'x': x}, FILE)", "fine"),
    ("repr(x), str(x)", "fine"),
    ("zyx.safetensors_to_bytes({'x': x})", "MemoryError"),
    ("pickle.dumps(x)", "MemoryError"),
    ("x.to_bytes()", "MemoryError"),
    ("zyx.randperm(30_000_000)", "MemoryError"),
    ("zyx.load(FILE)", "MemoryError"),
    ("zyx.load_npy(FILE + '.npy')", "MemoryError"),
    ("zyx.load_npz(FILE + '.npz')", "MemoryError"),
])
def test_memory_that_is_short_is_an_error(work, expected, tmp_path):
    file = str(tmp_path / "file")
    program = f"""
    import resource, pickle
    import zyx
    FILE = {file!r}
    x = zyx.ones(25_000_000).contiguous()
    (x[:3] * 2).tolist(), repr(x), pickle.dumps(zyx.ones(2)), zyx.randperm(10).tolist()
    zyx.save({{"x": x}}, FILE)
    zyx.save_npy(x, FILE + ".npy"), zyx.save_npz({{"x": x}}, FILE + ".npz")
    zyx.load(FILE)["x"][0].item(), zyx.load_npy(FILE + ".npy")[0].item(), zyx.load_npz(FILE + ".npz")["x"][0].item()
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (60 << 20), -1))
    try:
        {work}
        print("fine")
    except MemoryError:
        print("MemoryError")
    """
    assert run(program) == expected


# Files.


def test_temporary_files_of_processes_that_were_killed_go(tmp_path):
    file = tmp_path / "file"
    left = tmp_path / ".123456-0.tmp"
    left.write_bytes(b"part")
    zyx.save({"x": zyx.ones(2)}, file)
    assert left.exists(), "it may be one that was just made"
    os.utime(left, (time.time() - 1000,) * 2)
    zyx.save({"x": zyx.ones(2)}, file)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@linux
@pytest.mark.parametrize("load", ["load", "load_npy", "load_pytorch", "load_safetensors", "open_gguf"])
def test_ctrl_c_is_heard_while_a_pipe_is_waited_for(load, tmp_path):
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    program = f"""
    import zyx, time
    print("begins", flush=True)
    try:
        zyx.{load}({pipe!r})
    except KeyboardInterrupt:
        print("heard", flush=True)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "begins\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        started = time.time()
        assert child.stdout.readline() == "heard\n"
        assert time.time() - started < 1
    finally:
        child.kill()
        child.wait()


@linux
@pytest.mark.parametrize("save", ["save({'x': zyx.ones(3)}, PIPE)", "save_npz({'x': zyx.ones(3)}, PIPE)"])
def test_saving_into_a_pipe_waits_for_a_reader_or_ctrl_c(save, tmp_path):
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    program = f"""
    import zyx
    zyx.ones(3).sum().item()
    print("begins", flush=True)
    try:
        zyx.{save.replace("PIPE", repr(pipe))}
    except KeyboardInterrupt:
        print("heard", flush=True)
    zyx.{save.replace("PIPE", repr(pipe))}
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "begins\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        started = time.time()
        assert child.stdout.readline() == "heard\n"
        assert time.time() - started < 1
        with open(pipe, "rb") as reader:
            content = reader.read()
        (tmp_path / "copy").write_bytes(content)
        load = zyx.load_npz if "npz" in save else zyx.load
        assert load(tmp_path / "copy")["x"].tolist() == [1, 1, 1]
        assert child.wait(10) == 0
    finally:
        child.kill()
        child.wait()


@linux
def test_a_pipe_is_read_as_a_file_is(tmp_path):
    zyx.save_npy(zyx.arange(1000), tmp_path / "x.npy")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = (tmp_path / "x.npy").read_bytes()

    def write():
        with open(pipe, "wb") as file:
            for part in (content[:100], content[100:]):
                file.write(part)
                file.flush()
                time.sleep(0.1)

    thread = threading.Thread(target=write)
    thread.start()
    assert zyx.load_npy(pipe).sum().item() == 499500
    thread.join()


@pytest.mark.parametrize("what", [1, 1.5, None, True, ["a"], zyx.ones(1)])
def test_what_names_no_file_is_a_type_error(what):
    with pytest.raises(TypeError):
        zyx.load(what)
    os.fstat(1)


def test_models_in_several_files(tmp_path):
    data = os.path.join(os.path.dirname(__file__), "..", "..", "zyx-io", "tests", "data")
    for name in ("model.pt", "legacy.pt"):
        with open(os.path.join(data, name), "rb") as file:
            content = file.read()
        whole = zyx.load(os.path.join(data, name))
        assert zyx.load(io.BytesIO(content)).keys() == whole.keys()
        folder = tmp_path / name
        folder.mkdir()
        (folder / "pytorch_model.bin").write_bytes(content)
        assert zyx.load(folder).keys() == whole.keys()
    folder = tmp_path / "shards"
    folder.mkdir()
    for name in ("protocol5.pt", "model.pt"):
        with open(os.path.join(data, name), "rb") as file:
            (folder / name).write_bytes(file.read())
    index = folder / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "protocol5.pt", "model.weight": "model.pt"}}))
    for path in (folder, str(folder), index):
        found = zyx.load(path)
        assert found["x"].tolist() == [0, 1, 2] and found["model.weight"].shape == (3, 2)
    for text in ("{}", "[", '{"weight_map": 3}', '{"weight_map": {"a": 1}}', '{"weight_map": {"a": "../x"}}'):
        index.write_text(text)
        with pytest.raises((ValueError, TypeError)):
            zyx.load(index)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileNotFoundError):
        zyx.load(empty)


def test_files_written_in_python_may_take_less_than_they_are_given():
    class Slow(io.RawIOBase):
        content = b""

        def write(self, data):
            self.content += bytes(data[:1000])
            return min(len(data), 1000)

    slow = Slow()
    zyx.save({"x": zyx.arange(5000)}, slow)
    assert zyx.load(io.BytesIO(slow.content))["x"].tolist() == list(range(5000))
    full = type("Full", (), {"write": raising(OSError(28, "full"))})()
    with pytest.raises(OSError) as caught:
        zyx.save({"x": zyx.arange(5000)}, full)
    assert caught.value.errno == 28
