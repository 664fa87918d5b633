"""Other threads of Python run while zyx computes."""

import threading
import time

import zyx


def test_a_thread_makes_progress_meanwhile():
    n = 700
    x = zyx.rand(n, n)
    x.realize()
    y = x
    for _ in range(60):
        y = (y @ x).softmax(-1)
    ticks, done = [0], threading.Event()

    def count():
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    while ticks[0] == 0:
        time.sleep(0.001)
    before, start = ticks[0], time.perf_counter()
    y.realize()
    took, after = time.perf_counter() - start, ticks[0]
    done.set()
    thread.join()
    # With the lock held the count would stand still; a busy machine makes it slow, not still.
    assert took > 0.01, "too short to tell"
    assert after - before >= 3


def test_threads_compute_at_once():
    found = {}

    def work(i):
        x = zyx.full((50, 50), float(i))
        for _ in range(20):
            x = (x @ x) / (x.max() * 50 + 1) + i
        found[i] = (x * 0 + i).sum().item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == {i: 2500.0 * i for i in range(8)}
