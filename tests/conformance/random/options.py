"""The conversion options of random models, and their tolerances."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from converters.targets import TARGETS
from converters.validation.compare import Tolerance

CLOSE = Tolerance(1e-3, 1e-4)


@dataclass(frozen=True)
class Options:
    """Options of `converters.openvino.convert`.

    Attributes:
        name: the name of the combination.
        arguments: the keywords.
        tolerance: the tolerance to OpenVINO's float32 results.
        rounding: the relative error of each number if the options round. Results may differ by several times the change of
            OpenVINO's own results for inputs changed by this.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    tolerance: Tolerance = CLOSE
    rounding: float = 0.0

    @property
    def may_lack(self) -> bool:
        """Whether a conversion may reject a model with these options that it converts without them."""
        return self.arguments.get("opset", 21) < 21 or bool({"precision", "target"} & set(self.arguments))


_HALF = Tolerance(2e-2, 5e-3)
_BYTES = Tolerance(5e-2, 2e-2)

DEFAULT = Options("default")

ALL = (
    DEFAULT,
    Options("opset11", {"opset": 11}),
    Options("opset13", {"opset": 13}),
    Options("opset17", {"opset": 17}),
    Options("opset23", {"opset": 23}),
    Options("float32", {"precision": "float32"}),
    Options("float16", {"precision": "float16"}, _HALF, 2.0**-11),
    Options("float16-opset17", {"precision": "float16", "opset": 17}, _HALF, 2.0**-11),
    Options("standard", {"contrib": False}),
    Options("floats", {"quantized": "float"}),
    Options("standard-floats", {"contrib": False, "quantized": "float", "opset": 17}),
    Options("int8", {"activations": "int8"}, _BYTES, 2.0**-7),
    Options("verified", {"verify": True}),
)
"""All combinations; `of` selects one by number."""

TARGETED = {name: Options(f"target-{name}", {"target": name}) for name in TARGETS}
"""Target -> the options for it, which no model's number selects."""

NAMED = (
    Options("standard-opset25", {"target": "standard", "opset": 25}),
    Options("reference", {"weights": "reference"}),
)
"""Further combinations, which no model's number selects."""

BY_NAME = {options.name: options for options in (*ALL, *TARGETED.values(), *NAMED)}


def of(seed: int, number: int) -> Options:
    """Return the options for the model with that number: the default for one in five."""
    rng = np.random.default_rng([seed, number, 7])
    return ALL[0] if rng.random() < 0.2 else ALL[rng.integers(1, len(ALL))]
