"""What a target is: a program that reads ONNX, and which of ONNX it reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from converters.targets.limits import Limit

Spelling = Literal[
    "by level",
    "channel slopes",
    "even padding",
    "explicit padding",
    "matrices",
    "no defaults",
    "no boolean constants",
    "no lines",
    "one element",
    "one shape",
    "one sum",
    "pairwise",
    "pictures",
    "short constants",
    "sorted TopK",
    "static Reshape",
]
"""The name of a pass in `converters.passes.spellings`: how a target needs something that ONNX spells in several ways."""


@dataclass(frozen=True)
class Target:
    """A place that people convert models for.

    Attributes:
        name: what ``convert(target=)`` and ``specops convert --target`` call it.
        title: what it is, in a few words.
        known_by: how the lists below are known: the release that they were measured with, or the page that publishes them.
        opsets: the oldest and the newest opset that it reads. A file has the oldest of them whose operators represent it.
        functions: whether it inlines model-local functions. If not, the bodies are in the graph.
        contrib: whether it has ONNX Runtime's own operators (``com.microsoft``).
        domain: whether it loads the plugin, so that the domain's operators have kernels.
        onnxruntime: whether ONNX Runtime loads the file, whose CPU computes what the target does not.
        static: whether it needs the shape of every tensor before the model runs.
        float32: whether 16-bit weights have to become float32.
        quantized: how it takes quantised networks: as QuantizeLinear and DequantizeLinear around float operators
            (``"qdq"``), or as floats that emulate them (``"float"``).
        operators: the standard operators that it has; ``None`` for all of an opset.
        lacks: operators that it does not have, with the reason or the remedy.
        limits: forms of operators that it computes otherwise than ONNX defines them.
        types: the element types that its tensors may have, by ONNX's names; ``None`` for all of an operator's.
        control_flow: whether it has If, Loop and Scan.
        spellings: the passes that it needs.
        command: what to do with the file next, for docs/targets.md.
    """

    name: str
    title: str
    known_by: str
    opsets: tuple[int, int]
    functions: bool = False
    contrib: bool = False
    domain: bool = False
    onnxruntime: bool = False
    static: bool = False
    float32: bool = True
    quantized: Literal["qdq", "float"] = "float"
    operators: frozenset[str] | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    types: Collection[str] | None = None
    control_flow: bool = True
    spellings: tuple[Spelling, ...] = ()
    command: str = ""

    @property
    def is_default(self) -> bool:
        """Whether it is what files are made for unless another target is given."""
        return self.functions and self.contrib and self.domain
