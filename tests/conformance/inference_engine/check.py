"""Convert a case, run it, and compare it with the Inference Engine's results."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort

import onnx_specops
from converters.errors import ConversionError
from converters.openvino import convert
from onnx_specops.runtime.library import has_library
from tests.conformance.inference_engine.case import Case

ANSWERS = Path(__file__).with_name("answers.npz")
KERNELS = ("native", "none", "python") if has_library() else ("none", "python")
"""The forms: native kernels, no kernels (the operators' bodies), Python kernels."""


def converted(case: Case, xml: Path, kinds: Sequence[str] = KERNELS) -> dict[str, dict[str, np.ndarray] | str]:
    """Convert a case, and return the outputs by name, or the error as text, for each kind of kernels.

    A model without operators of the domain is run once, with the first kind.
    """
    try:
        _, report = convert(xml, xml.with_suffix(".onnx"), input_shapes=case.shapes)
    except ConversionError as error:
        return {kinds[0]: str(error)}
    results: dict[str, dict[str, np.ndarray] | str] = {}
    for kernels in kinds if report.custom_operators else kinds[:1]:
        try:
            results[kernels] = run(xml.with_suffix(".onnx"), case.inputs(case.net()), kernels, case.runs)
        except Exception as error:  # ONNX Runtime raises many kinds of exceptions
            results[kernels] = f"{type(error).__name__}: {error}"
    return results


def run(path: Path, feeds: Mapping[str, np.ndarray], kernels: str, runs: int = 1) -> dict[str, np.ndarray]:
    """Return the outputs of the last of several runs of a converted model, by name."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnx_specops.InferenceSession(str(path), options, kernels=kernels)  # type: ignore[arg-type]
    names = [output.name for output in session.get_outputs()]
    taken = {i.name: feeds[i.name] for i in session.get_inputs() if i.name in feeds}
    for _ in range(runs - 1):
        session.run(None, taken)
    return dict(zip(names, session.run(None, taken), strict=True))


def compare(expected: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray] | str, tolerance: float = 1e-4) -> str:
    """Return the differences as text; empty if there are none."""
    if isinstance(got, str):
        return got
    if set(expected) != set(got):
        return f"the outputs are {sorted(got)} instead of {sorted(expected)}"
    for name, want in expected.items():
        have = got[name]
        if have.size != want.size or (want.ndim > 1 and have.shape != want.shape):
            return f"{name} has the shape {have.shape} instead of {want.shape}"
        have = have.reshape(want.shape)
        if have.dtype.kind != want.dtype.kind:
            return f"{name} is {have.dtype} instead of {want.dtype}"
        a, b = have.astype(np.float64), want.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        finite = np.isfinite(b)
        scale = max(1.0, float(np.abs(b[finite]).max(initial=0)))
        with np.errstate(invalid="ignore"):
            far = ~same & ~(np.abs(a - b) <= tolerance * scale)
        if far.any():
            at = tuple(int(i) for i in np.argwhere(far)[0])
            return f"{name} differs in {int(far.sum())} of {far.size}; at {at} it is {have[at]} instead of {want[at]}"
    return ""


@functools.cache
def answers() -> dict[str, dict[str, np.ndarray]]:
    """Return the Inference Engine's results by case and output."""
    found: dict[str, dict[str, np.ndarray]] = {}
    with np.load(ANSWERS) as stored:
        for key in stored.files:
            kind, name, output = key.split("/", 2)
            found.setdefault(f"{kind}/{name}", {})[output] = stored[key]
    return found
