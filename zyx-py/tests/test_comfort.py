"""Summaries, forms of notebooks, `python -m zyx`, workers of loaders, checkpoints, TensorBoard."""

import importlib.util
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zyx
from zyx import nn
from zyx.utils import data


def test_summary():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 36, 10))
    net[3].bias.requires_grad_(False)
    net[1].train(False)
    found = zyx.summary(net, (2, 3, 8, 8))
    assert found.total_params == 8 * 27 + 8 + 16 + 2880 + 10 and found.trainable_params == found.total_params - 10
    rows = {row[0]: row for row in found.rows}
    assert rows["0"][1:] == ("Conv2d", [(2, 8, 6, 6)], 224) and rows["3"][2] == [(2, 10)] and rows[""][2] == [(2, 10)]
    text = str(found)
    assert "Linear" in text and "[2, 8, 6, 6]" in text and "3,130" in text and "<table>" in found._repr_html_()
    # The model is as before.
    assert net.training and not net[1].training and "_hooks" in vars(net[0]) and not vars(net[0])["_hooks"]["forward"]
    assert net[1].num_batches_tracked.item() == 0
    assert zyx.summary(net).rows[0][2] == [] and len(zyx.summary(net, depth=0).rows) == 1 and zyx.summary(net, depth=0).rows[0][3] == found.total_params
    with pytest.raises(ValueError, match="in layer `3`"):
        zyx.summary(net, (2, 3, 9, 8))
    assert net.training


def test_forms_of_notebooks():
    assert "<td style='text-align:right'>2.5</td>" in zyx.tensor([1.0, 2.5])._repr_html_() and "[0, 3]" in zyx.zeros(0, 3)._repr_html_()
    large = zyx.arange(400.0).reshape(20, 20)._repr_html_()
    assert large.count("<tr>") == 9 and "399" in large and ">210<" not in large and "[20, 20], float32" in large
    assert "the matrix at [0, 0]" in zyx.zeros(2, 2, 3, 3)._repr_html_()
    html = nn.Sequential(nn.Linear(2, 3), nn.ReLU())._repr_html_()
    assert "<b>Linear</b>(in_features=2" in html and "9 parameters" in html and html.count("<details") == 1


def test_the_program():
    found = subprocess.run([sys.executable, "-m", "zyx", "--device", "cpu", "--steps", "60"], capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    assert "product, reduction and gradient are right" in found.stdout and "60 steps of training" in found.stdout
    wrong = subprocess.run([sys.executable, "-m", "zyx", "--device", "abacus"], capture_output=True, text=True, timeout=120)
    assert wrong.returncode != 0 and "abacus" in wrong.stdout + wrong.stderr


class Slow(data.Dataset):
    def __init__(self, n=32, seconds=0.01):
        self.n, self.seconds, self.threads = n, seconds, set()

    def __getitem__(self, i):
        time.sleep(self.seconds)
        self.threads.add(threading.get_ident())
        if i == 25 and self.seconds == 0:
            raise KeyError("example 25")
        return zyx.tensor([float(i)])

    def __len__(self):
        return self.n


def test_workers_of_loaders():
    serial, start = [x.tolist() for x in data.DataLoader(Slow(), 4)], time.perf_counter()
    slow, between = Slow(), time.perf_counter()
    loader = data.DataLoader(slow, 4, num_workers=4)
    assert [x.tolist() for x in loader] == serial and len(slow.threads) == 4 and threading.get_ident() not in slow.threads
    # 32 examples of 10 ms by 4 threads.
    assert time.perf_counter() - between < 0.9 * 32 * 0.01 + 0.1 and start
    assert [x.tolist() for x in data.DataLoader(slow, None, num_workers=2)] == [[float(i)] for i in range(32)]
    infos, started = [], []

    class Told(Slow):
        def __getitem__(self, i):
            infos.append(data.get_worker_info().id)
            return i

    told = data.DataLoader(Told(), 4, num_workers=2, worker_init_fn=started.append, persistent_workers=True, prefetch_factor=1)
    assert len(list(told)) == len(list(told)) == 8
    assert sorted(started) == [0, 1] and set(infos) == {0, 1} and data.get_worker_info() is None
    failing = iter(data.DataLoader(Slow(seconds=0), 4, num_workers=2))
    got = []
    with pytest.raises(KeyError, match="example 25"):
        for batch in failing:
            got.append(batch)
    # The batches before are given first.
    assert len(got) == 6
    with pytest.raises(RuntimeError, match="timed out after 0.05"):
        list(data.DataLoader(Slow(4, 0.5), 4, num_workers=1, timeout=0.05))
    with pytest.raises(ZeroDivisionError):
        list(data.DataLoader(Slow(4, 0.0), 4, num_workers=1, worker_init_fn=lambda i: 1 / 0))
    with pytest.raises(NotImplementedError, match="workers are threads"):
        data.DataLoader(Slow(), num_workers=1, multiprocessing_context="spawn")
    for batch in data.DataLoader(Slow(), 4, num_workers=2):
        break
    del batch


def test_iterable_data_sets_are_shared_out():
    class Numbers(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            first, step = (0, 1) if info is None else (info.id, info.num_workers)
            return iter(range(first, 11, step))

    found = [x.tolist() for x in data.DataLoader(Numbers(), 2, num_workers=3)]
    assert sorted(i for batch in found for i in batch) == list(range(11)) and found[0] == [0, 3]
    assert len(list(data.DataLoader(Numbers(), 2, num_workers=3, drop_last=True))) == 5


def test_more_data_sets_and_samplers():
    stack = data.StackDataset(x=range(3), y="abc")
    assert stack[1] == {"x": 1, "y": "b"} and len(stack) == 3 and data.StackDataset(range(2), "ab")[0] == (0, "a")
    with pytest.raises(ValueError, match="Size mismatch"):
        data.StackDataset(range(2), range(3))
    assert data.ConcatDataset([range(2), range(3)]).cumulative_sizes == [2, 5]
    parts = [list(data.DistributedSampler(range(10), 3, rank, seed=4)) for rank in range(3)]
    assert {len(p) for p in parts} == {4} and set(sum(parts, [])) == set(range(10))
    assert [list(data.DistributedSampler(range(10), 3, r, False, drop_last=True)) for r in range(3)] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    sampler = data.DistributedSampler(range(10), 2, 0)
    before = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != before
    from zyx.utils.data.dataloader import DataLoader, default_collate
    from zyx.utils.data.dataset import Dataset
    from zyx.utils.data.distributed import DistributedSampler
    from zyx.utils.data.sampler import WeightedRandomSampler

    assert (DataLoader, Dataset, DistributedSampler, WeightedRandomSampler, default_collate) == (
        data.DataLoader, data.Dataset, data.DistributedSampler, data.WeightedRandomSampler, data.default_collate)  # fmt: skip
    assert data.Dataset[int] is data.Dataset and data.Sampler(None) is not None


def test_loaders_have_lengths_for_progress():
    tqdm = pytest.importorskip("tqdm")
    bar = tqdm.tqdm(data.DataLoader(range(10), 3), disable=True)
    assert bar.total == 4 or bar.disable and len(bar.iterable) == 4


def test_checkpoints():
    from zyx.utils.checkpoint import checkpoint, checkpoint_sequential

    layer, x = nn.Linear(3, 3), zyx.ones(2, 3, requires_grad=True)
    checkpoint(lambda a, scale=1: layer(a).tanh() * scale, x, scale=2, use_reentrant=False).sum().backward()
    found = layer.weight.grad.numpy(copy=True)
    layer.zero_grad()
    (layer(x).tanh() * 2).sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), found, rtol=1e-6)
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    np.testing.assert_allclose(checkpoint_sequential(net, 2, x, use_reentrant=False).numpy(), net(x).numpy())


def test_events_for_tensorboard(tmp_path):
    if importlib.util.find_spec("tensorboardX") is None and importlib.util.find_spec("tensorboard") is None:
        from zyx.utils.tensorboard import SummaryWriter

        with pytest.raises(ImportError, match="pip install tensorboardX"):
            SummaryWriter(tmp_path)
        return
    from zyx.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", zyx.tensor(0.5), 1)
        writer.add_scalar("loss", 0.25, 2)
        if importlib.util.find_spec("tensorboardX"):
            writer.add_histogram("weights", zyx.randn(100, dtype="float16"), 1)
        writer.flush()
        with pytest.raises(NotImplementedError, match="add_graph"):
            writer.add_graph(nn.Linear(1, 1))
    assert any(file.stat().st_size > 100 for file in tmp_path.iterdir())


def test_without_a_writer_of_events(tmp_path, monkeypatch):
    for name in ("tensorboardX", "tensorboard", "tensorboard.summary", "tensorboard.summary.writer"):
        monkeypatch.setitem(sys.modules, name, None)
    from zyx.utils.tensorboard import SummaryWriter

    with pytest.raises(ImportError, match="pip install tensorboardX"):
        SummaryWriter(tmp_path)
