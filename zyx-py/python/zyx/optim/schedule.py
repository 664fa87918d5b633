"""Learning rates over time, as functions of the step: `optimizer.lr = schedule.cosine(step, 1000, 1e-3, 0)`."""

from .. import _core
from .._core import Plateau  # noqa: F401

for _name in dir(_core):
    if _name.startswith("schedule_"):
        globals()[_name.removeprefix("schedule_")] = getattr(_core, _name)
