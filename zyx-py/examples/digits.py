"""Trains a small convolutional network on the handwritten digits of the repository.

    python zyx-py/examples/digits.py [epochs]
"""

import pathlib
import struct
import sys
import time

import zyx
from zyx import nn, optim

DATA = pathlib.Path(__file__).resolve().parents[2] / "examples" / "data"


def idx(name):
    """A tensor of an IDX file: magic, extents, bytes."""
    data = (DATA / name).read_bytes()
    rank = data[3]
    shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    return zyx.Tensor.from_bytes(data[4 + 4 * rank :], "uint8", shape)


class Net(nn.Module):
    def __init__(self, side):
        self.features = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.out = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(16 * (side // 2) ** 2, 10))

    def forward(self, x):
        return self.out(self.features(x))


def main():
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    zyx.manual_seed(0)
    images, labels = idx("images.idx3-ubyte"), idx("labels.idx1-ubyte")
    images = (images.cast("float32") / images.max().item()).unsqueeze(1)
    images.realize()
    n, batch = len(images), 64
    order = zyx.permutation(n)
    images, labels = images[order], labels[order].cast("int64")
    cut = n * 5 // 6
    model = Net(images.shape[-1])
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    print(f"{n} images, {model.n_parameters()} parameters, on {images.device}")
    for epoch in range(epochs):
        start, total = time.perf_counter(), 0.0
        model.train()
        shuffled = zyx.permutation(cut)
        for i in range(0, cut - batch + 1, batch):
            rows = shuffled[i : i + batch]
            loss = model(images[rows]).cross_entropy(labels[rows])
            optimizer.step(loss)
            total += loss.item()
        model.eval()
        right = (model(images[cut:]).argmax(1) == labels[cut:]).cast("float32").mean().item()
        took = time.perf_counter() - start
        print(f"epoch {epoch + 1:2}: loss {total / (cut // batch):.4f}, {right:6.1%} of unseen digits right, {took:.1f} s")
    return right


if __name__ == "__main__":
    main()
