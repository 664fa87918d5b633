"""Learning rates over time, as functions of the step: `optimizer.lr = schedule.cosine(step, ...)`."""

import math


def warmup(step, steps):
    """In a straight line to 1, reached after `steps` steps: multiply with another schedule."""
    return 1.0 if step >= steps else (step + 1) / steps


def cosine(step, steps, start, end=0.0):
    """From `start` along half a cosine to `end` at step `steps`, then `end`."""
    if step >= steps:
        return end
    return end + (start - end) * (1.0 + math.cos(math.pi * step / steps)) / 2.0


def steps(step, every, start, factor):
    """`start`, multiplied by `factor` after every `every` steps."""
    return start * factor ** (step // max(every, 1))
