"""`python -m zyx`: the devices, a check of each, and a small training.

    python -m zyx [--device SPEC] [--steps 200]
"""

import argparse
import sys
import time

import zyx
from zyx import nn, optim


def devices():
    """Prints the devices, the default marked; gives those that open, the default first."""
    found, default = [], zyx.device()
    for spec, *about in zyx.devices():
        try:
            device = zyx.device(spec)
            found.insert(0 if device == default else len(found), device)
            print(f"{'*' if device == default else ' '} {spec:16} {' '.join(str(x) for x in about)}")
        except (RuntimeError, ValueError, OSError) as error:
            print(f"  {spec:16} does not open: {error}")
    return found


def check(device):
    """An error unless a product, a reduction and a gradient are right."""
    x = zyx.arange(12.0, device=device).reshape(3, 4)
    want = [[14.0, 38.0, 62.0], [38.0, 126.0, 214.0], [62.0, 214.0, 366.0]]
    found = (x @ x.T).tolist()
    if found != want:
        raise AssertionError(f"a product is {found} instead of {want}")
    if x.softmax(1).sum().item() - 3 > 1e-5:
        raise AssertionError(f"softmax sums to {x.softmax(1).sum().item()} instead of 3")
    w = x.requires_grad_()
    (w * w).sum().backward()
    if w.grad.tolist() != (x * 2).tolist():
        raise AssertionError("the gradient of a sum of squares is wrong")


def train(device, steps):
    """A small network learns a function; the first and the last loss."""
    zyx.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)
    optimizer, losses = optim.Adam(model.parameters(), lr=1e-2), []
    x = zyx.rand(256, 2, device=device) * 2 - 1
    y = (x[:, :1] * x[:, 1:]).realize()
    numbers = range(steps)
    try:
        from tqdm import tqdm

        numbers = tqdm(numbers, desc="  training", unit="step", leave=False)
    except ImportError:
        pass
    for i in numbers:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 20 == 0 or i == steps - 1:
            losses.append(loss.item())
            if hasattr(numbers, "set_postfix"):
                numbers.set_postfix(loss=f"{losses[-1]:.4f}")
    return losses[0], losses[-1]


def main(arguments=None):
    """Runs the program; 0 if all is right."""
    parser = argparse.ArgumentParser(prog="python -m zyx", description="Devices, a check of each, and a small training.")
    parser.add_argument("--device", help="only this device, as in cpu or cuda:0")
    parser.add_argument("--steps", type=int, default=200, help="steps of the training (200)")
    options = parser.parse_args(arguments)
    print(f"zyx {zyx.__version__}, Python {sys.version.split()[0]}")
    print("devices (* tensors are made on when none is named):")
    found = devices()
    if options.device:
        found = [zyx.device(options.device)]
    wrong = 0
    for device in found:
        try:
            start = time.perf_counter()
            check(device)
            print(f"{device.spec}: product, reduction and gradient are right ({time.perf_counter() - start:.2f} s)")
        except Exception as error:
            wrong += 1
            print(f"{device.spec}: {type(error).__name__}: {error}")
    if found and not wrong:
        start = time.perf_counter()
        first, last = train(found[0], options.steps)
        print(f"{found[0].spec}: {options.steps} steps of training in {time.perf_counter() - start:.2f} s, loss {first:.4f} to {last:.4f}")
        if not last < first:
            wrong += 1
            print("the training learns nothing")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
