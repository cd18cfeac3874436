"""Repeated runs to measure a time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

LEAST, MOST = 3, 30
# No further repetition starts after this time.
_SECONDS = 1.0


def median_seconds(run: Callable[[], object], least: int = LEAST, most: int = MOST) -> float:
    """Return the median time of a run, after a warm-up run.

    Args:
        run: the function to run.
        least, most: the number of runs; more than ``least`` only within a second.
    """
    run()
    started = time.perf_counter()
    seconds: list[float] = []
    while len(seconds) < least or (len(seconds) < most and time.perf_counter() - started < _SECONDS):
        before = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - before)
    return statistics.median(seconds)
