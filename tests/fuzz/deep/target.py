"""Every deep file with every option, then mixtures of steps."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np

from converters.options import TargetName
from tests.fuzz import ir
from tests.fuzz.deep import bodies, enormous, images, rows, values
from tests.fuzz.deep.repeated import CHAINED, DOUBLED, Family
from tests.fuzz.engine import Target

FAMILIES: dict[str, Family] = {
    "rows": rows.ROWS,
    "images": images.IMAGES,
    "masks": values.MASKS,
    "causal masks": values.CAUSAL,
    "biases": values.BIASES,
    "sizes": values.SIZES,
    "known sizes": values.KNOWN_SIZES,
    "weights": values.WEIGHTS,
    "small weights": values.SMALL_WEIGHTS,
    "scales": values.SCALES,
    "zero points": values.ZERO_POINTS,
    "four bits": values.FOUR_BITS,
    "ranges": values.RANGES,
    "integers": values.INTEGERS,
    "variables": values.VARIABLES,
    "strings": values.STRINGS,
}

OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"precision": "float16"},
    {"precision": "float32"},
    {"opset": 13},
    {"opset": 23},
    {"opset": 13, "target": "standard"},
    {"quantized": "float"},
    {"activations": "int8"},
    {"contrib": False},
    {"form": "genai"},
    *({"target": name} for name in get_args(TargetName)[1:]),
)
_SECONDS = 40.0
_MEMORY = 800 * 2**20


def single(family: str, names: tuple[str, ...], count: int) -> tuple[bytes, bytes]:
    return FAMILIES[family].files(names, count)


@functools.cache
def files() -> dict[str, Callable[[], tuple[bytes, bytes]]]:
    """Return the files by name, without mixtures."""
    found: dict[str, Callable[[], tuple[bytes, bytes]]] = {
        f"{family}: {name}, {form}": functools.partial(single, family, (name,), count)
        for family, content in FAMILIES.items()
        for name in content.steps
        for form, count in (("doubled", DOUBLED), ("chained", CHAINED))
    }
    found |= {f"bodies: {name}": make for name, make in bodies.MAKERS.items()}
    return found | {f"enormous: {name}": make for name, make in enormous.MAKERS.items()}


def mixture(rng: np.random.Generator) -> functools.partial[tuple[bytes, bytes]]:
    """Return a file with two to four different steps in turns."""
    family = str(rng.choice(list(FAMILIES)))
    steps = list(FAMILIES[family].steps)
    names = rng.choice(steps, min(int(rng.integers(2, 5)), len(steps)), replace=False).tolist()
    count = int(rng.choice([DOUBLED, DOUBLED, CHAINED]))
    return functools.partial(single, family, tuple(names), count)


def case(seed: int, number: int) -> tuple[str, Callable[[], tuple[bytes, bytes]], dict[str, Any]]:
    """Return the name, file and options of a case. The first ones are all files with all options."""
    every = files()
    if number < count():
        place = int(_order(seed)[number])
        name = list(every)[place % len(every)]
        return name, every[name], OPTIONS[place // len(every)]
    rng = np.random.default_rng([seed, number])
    make = mixture(rng)
    return f"{make.args}", make, OPTIONS[rng.integers(len(OPTIONS))]


def count() -> int:
    """Return the number of cases before the mixtures."""
    return len(files()) * len(OPTIONS)


@functools.cache
def _order(seed: int) -> np.ndarray:
    """Return the cases in random order, the quick ones first."""
    names = list(files())
    order = np.random.default_rng(seed).permutation(len(names) * len(OPTIONS))
    is_slow = [names[place % len(names)].endswith("chained") for place in order]
    return order[np.argsort(is_slow, kind="stable")]


def write(seed: int, number: int, path: Path) -> None:
    """Write the file with that number and its .bin."""
    _write(case(seed, number)[1], path)


def _write(make: Callable[[], tuple[bytes, bytes]], path: Path) -> None:
    xml, weights = make()
    path.write_bytes(xml)
    path.with_suffix(".bin").write_bytes(weights)


def run(seed: int, number: int) -> str:
    """Create and convert the file with that number."""
    _, make, options = case(seed, number)
    return converted(make, options)


def converted(make: Callable[[], tuple[bytes, bytes]], options: dict[str, Any]) -> str:
    """Convert a file with options; return the kind of the result."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        _write(make, path)
        return ir.converted(path, **options)


TARGET = Target("deep", run, _SECONDS, _MEMORY)
