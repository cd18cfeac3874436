"""Conformance cases: a model that OpenVINO wrote (or IR text), inputs, and the deciding oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

Oracle = Literal["both", "cpu", "evaluate", "expected"]


@dataclass(frozen=True)
class IRText:
    """An IR as text, for models that OpenVINO's Python API cannot build."""

    xml: str
    weights: bytes = b""


@dataclass(frozen=True)
class Case:
    """One model and one or more sets of inputs.

    Attributes:
        operation: the tested layer type, as the specification spells it.
        version: the opset of the layer in the IR, for example ``"opset12"``.
        name: a description, unique within the operation and version.
        build: builds the ``openvino.Model`` (or `IRText`). It runs in the oracle's process and here, so it must be
            deterministic.
        inputs: the arrays for the model's inputs in order; several tuples run one after another (dynamic shapes).
        oracle: the deciding oracle. ``"both"``: the CPU plugin, with which ``Model.evaluate`` must agree if it runs the
            model. ``"cpu"`` / ``"evaluate"``: only that one, because they differ. ``"expected"``: the values in
            ``expected``, from the specification, because OpenVINO cannot run the model.
        reason: why ``oracle`` is not ``"both"``: the difference, and the text of the specification.
        rtol: the relative tolerance of floats.
        atol: the absolute tolerance of floats.
        expected: for ``oracle="expected"``: the outputs for each set of inputs.
        state: whether the sets of inputs are runs of one session whose variables keep their values.
        seeded_body: false if the body draws different random numbers than the kernels, or selects another one of equal
            scores. Only shapes and types are compared then.
    """

    operation: str
    version: str
    name: str
    build: Callable[[], Any]
    inputs: Sequence[Sequence[np.ndarray]]
    oracle: Oracle = "both"
    reason: str = ""
    rtol: float = 1e-4
    atol: float = 1e-5
    expected: Sequence[Sequence[np.ndarray]] | None = None
    state: bool = False
    seeded_body: bool = True

    def __post_init__(self) -> None:
        if (self.oracle == "both") != (not self.reason):
            raise ValueError(f"{self.id}: a reason belongs to a case that one oracle decides, and to no other")

    @property
    def id(self) -> str:
        return f"{self.operation}-{self.version.removeprefix('opset')}-{self.name}"

    def save(self, folder: Path) -> Path:
        """Write the model as IR into ``folder``; return the path of the .xml."""
        import openvino as ov

        path = folder / "model.xml"
        model = self.build()
        if isinstance(model, IRText):
            path.write_text(model.xml)
            path.with_suffix(".bin").write_bytes(model.weights)
        else:
            ov.save_model(model, path, compress_to_fp16=False)
        return path
