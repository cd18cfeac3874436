"""What a conformance case is: a model that OpenVINO wrote (or IR text), inputs, and which oracle decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

Oracle = Literal["both", "cpu", "evaluate", "expected"]


@dataclass(frozen=True)
class IRText:
    """An IR given as text, for what OpenVINO's Python API cannot build."""

    xml: str
    weights: bytes = b""


@dataclass(frozen=True)
class Case:
    """One model and one or more sets of inputs.

    Attributes:
        operation: the layer type that is tested, as the specification spells it.
        version: the opset that the layer has in the IR, for example ``"opset12"``.
        name: what is special about the case; unique within the operation and version.
        build: makes the ``openvino.Model`` (or `IRText`); called in the oracle's process as well as here, so it must be
            deterministic.
        inputs: the arrays for the model's inputs in order; several tuples of them run one after the other (dynamic shapes).
        oracle: whose answer counts. ``"both"``: the CPU plugin's, and ``Model.evaluate`` must agree with it where it can run
            the model at all. ``"cpu"`` / ``"evaluate"``: only that one, because they part; ``"expected"``: the values in
            ``expected``, from the specification, because OpenVINO cannot run the model.
        reason: why ``oracle`` is not ``"both"``: where the two part, and what the specification says.
        rtol: largest relative error of floats.
        atol: largest absolute error of floats.
        expected: for ``oracle="expected"``: the outputs for each set of inputs.
        state: whether the sets of inputs are runs of one session whose variables keep their values.
        seeded_body: False where the body draws other random numbers than the kernels, or takes another one of equal scores:
            it then checks shapes and types only.
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
        """Write the model as IR into ``folder``; returns the .xml's path."""
        import openvino as ov

        path = folder / "model.xml"
        model = self.build()
        if isinstance(model, IRText):
            path.write_text(model.xml)
            path.with_suffix(".bin").write_bytes(model.weights)
        else:
            ov.save_model(model, path, compress_to_fp16=False)
        return path
