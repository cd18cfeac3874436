"""Conversion time and memory are proportional to the contents of a file, measured at two sizes of each kind."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from converters.openvino import convert
from tests.converters.openvino.growth import KEYWORDS, SUBJECTS, make

SMALL, TIMES = 300, 4
SLOWER, LARGER = 2.0, 1.3
"""The allowed growth relative to proportional growth; quadratic growth would be four times as much.

On an idle machine the growth of time is below 1.3 (`tests.converters.openvino.growth`); here other tests run concurrently.
"""

# Some take a hundred times as long as others.
_SIZES = {
    "bodies of operators": 8,
    "bodies in an older opset": 8,
    "variables": 50,
    "matrix multiplications with compressed weights": 30,
    "matrix multiplications with biases": 80,
    "quantized layers": 100,
    "quantized convolutions": 40,
    "copied constants": 150,
    "constants referred to": 150,
    "constants": 150,
    "constants of one value": 150,
    "large constants": 150,
    "large constants of one value": 150,
}
_QUICK = ("attributes", "information", "unknown", "tensor names", "layers that lead", "pieces", "tokens")
# Smaller values are noise.
_LEAST_SECONDS, _LEAST_BYTES = 0.01, 1 << 20
# Other programs only ever slow a measurement down.
_ATTEMPTS = 5


def _files(name: str, folder: Path) -> list[Path]:
    small = 4_000 if name.startswith(_QUICK) else _SIZES.get(name, SMALL)
    paths = []
    for n in (3, small, small * TIMES):
        (folder / str(n)).mkdir()
        paths.append(make(name, n, folder / str(n)))
    return paths


def _converted(name: str, xml: Path) -> None:
    convert(xml, xml.with_suffix(".onnx"), with_weights=False, **KEYWORDS.get(name, {}))


def _seconds(name: str, xml: Path) -> float:
    started = time.process_time()
    _converted(name, xml)
    return time.process_time() - started


def _bytes(name: str, xml: Path) -> int:
    tracemalloc.start()
    try:
        _converted(name, xml)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", SUBJECTS)
def test_time_and_memory_are_proportional(name: str, tmp_path: Path) -> None:
    tiny, small, large = _files(name, tmp_path)
    _converted(name, tiny)
    short, long = [_LEAST_SECONDS], []
    for _ in range(_ATTEMPTS):
        short.append(_seconds(name, small))
        long.append(_seconds(name, large))
        if long[-1] <= SLOWER * TIMES * max(short[0], short[-1]):
            break
    assert min(long) <= SLOWER * TIMES * max(short[0], min(short[1:]))
    least = _bytes(name, tiny)
    assert _bytes(name, large) - least <= LARGER * TIMES * max(_bytes(name, small) - least, _LEAST_BYTES)
