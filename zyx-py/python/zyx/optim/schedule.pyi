"""Learning rates over time, as functions of the step."""

from .._core import Plateau as Plateau

def warmup(step: int, steps: int) -> float:
    """In a straight line to 1, reached after `steps` steps: multiply with another schedule."""

def linear(step: int, steps: int, start: float, end: float) -> float:
    """In a straight line from `start` to `end` at step `steps`."""

def cosine(step: int, steps: int, start: float, end: float) -> float:
    """From `start` along half a cosine to `end` at step `steps`, then `end`."""

def cosine_restarts(step: int, first: int, factor: int, start: float, end: float) -> float:
    """Cosines one after the other, each `factor` times as long as the one before."""

def steps(step: int, every: int, start: float, factor: float) -> float:
    """`start`, multiplied by `factor` after every `every` steps."""

def multistep(step: int, milestones: list[int], start: float, factor: float) -> float:
    """`start`, multiplied by `factor` at each milestone."""

def exponential(step: int, start: float, factor: float) -> float:
    """`start`, multiplied by `factor` after every step."""

def polynomial(step: int, steps: int, start: float, power: float) -> float:
    """From `start` to 0 at step `steps` along a power of what is left."""

def inverse_root(step: int, warm: int, most: float) -> float:
    """Up to `most` in `warm` steps, then falling with the root of the step."""

def one_cycle(step: int, steps: int, rise: float, most: float) -> float:
    """Up to `most` in the share `rise` of the steps, then down to nothing."""
