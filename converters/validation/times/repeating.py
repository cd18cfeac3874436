"""Running something several times, for its time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

LEAST, MOST = 3, 30
# Beyond this no further repetition is begun.
_SECONDS = 1.0


def median_seconds(run: Callable[[], object], least: int = LEAST, most: int = MOST) -> float:
    """The median time of a run, after a first one that does not count.

    Args:
        run: what to run.
        least, most: how often; ``most`` only where that takes no more than a second.
    """
    run()
    started = time.perf_counter()
    seconds: list[float] = []
    while len(seconds) < least or (len(seconds) < most and time.perf_counter() - started < _SECONDS):
        before = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - before)
    return statistics.median(seconds)
