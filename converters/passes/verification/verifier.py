"""Run both computations, and compare the results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir
import onnxruntime as ort

from converters.passes.verification.observing import observe
from converters.passes.verification.regions import NotEvaluated, Region, region
from converters.passes.verification.running import session
from converters.passes.verification.trials import Numbers, Trial, trials
from onnx_specops.graphs import all_nodes, constant_array
from onnx_specops.replacing import Rewriting, checked_by

ALL_NUMBERS: Sequence[Numbers] = ("normal", "zeros", "tiny", "large", "special")
_HALFWAY = 1e-3
"""The fraction of random numbers that may be so close to the middle of two levels that rounding decides."""

_BUDGET = 1 << 22
"""The number of elements of a rewrite's inputs, in all trials, after which further sizes are skipped. Without
this limit, rewrites of large images take minutes."""

_CHEAP = 256
"""An element that a convolution multiplies by more weights than this counts several times."""

_FLUSHED = 1e-36
"""ONNX Runtime's functions return 0 for some smaller numbers."""

_FINITE: Sequence[Numbers] = ("normal", "zeros", "tiny", "large")


@dataclass(frozen=True)
class Difference:
    """A replacement whose result differs from the original.

    Attributes:
        rewrite: the pass, or the rewrite of a pass.
        value: the name of the value that would have been replaced.
        text: the inputs that show the difference, and the results.
    """

    rewrite: str
    value: str
    text: str

    def __str__(self) -> str:
        return f"{self.rewrite} at {self.value}: {self.text}"


@dataclass
class Verifier:
    """A check for `onnx_specops.replacing.checked_by` that evaluates each replacement.

    Attributes:
        numbers: the kinds of numbers to try.
        observed: elements or shapes from a run of the whole model.
        refuse: whether a replacement with a different result is rejected.
        verified: rewrite -> the number of replacements that agree.
        differences: the replacements that differ.
        skipped: reason -> the number of replacements that could not be evaluated.
    """

    numbers: Sequence[Numbers] = ALL_NUMBERS
    observed: Mapping[ir.Value, np.ndarray | tuple[int, ...]] = field(default_factory=dict)
    refuse: bool = True
    verified: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def observe(self, model: ir.Model, feeds: Mapping[ir.Value, np.ndarray]) -> None:
        """Run the whole model on some inputs to learn the shapes of its values. Raise `NotEvaluated` if that fails."""
        self.observed = observe(model, feeds)

    def __call__(self, pairs: Sequence[tuple[ir.Value, ir.Value]], rewriting: Rewriting) -> bool:
        numbers = [kind for kind in self.numbers if kind in _FINITE or not rewriting.finite]
        try:
            with checked_by(_anything):  # bodies are created on the way
                found = region(pairs, lambda value: value in self.observed, rewriting.through)
                text = self._compared(found, [old for old, _ in pairs], numbers, rewriting)
        except NotEvaluated as error:
            self.skipped[f"{rewriting.name}: {error}"] += 1
            return True
        if not text:
            self.verified[rewriting.name] += 1
            return True
        self.differences.append(Difference(rewriting.name, pairs[0][0].name or "", text))
        return not self.refuse

    def _compared(self, found: Region, values: Sequence[ir.Value], numbers: Sequence[Numbers], rewriting: Rewriting) -> str:
        """Return how the two computations of ``values`` differ; "" if they agree."""
        sessions = [session(model) for model in (found.old, found.new)]
        factor = max(1, _products(found.old) // _CHEAP)
        ambiguous = _computes_a_target(found.old)
        compared, first, left = 0, 0, _BUDGET
        reason = "no valid input sizes were found"
        for of_sizes in trials(found.inputs, numbers, self.observed):
            cost = of_sizes.elements * factor
            if compared and cost > max(first, left):
                continue
            left, first = left - cost, first or cost
            for trial in of_sizes:
                try:
                    expected = _run(sessions[0], found.inputs, trial)
                except Exception as error:  # ONNX Runtime's exceptions have no common base class
                    reason = f"{reason.partition(':')[0]}: {str(error).splitlines()[0][:200]}"
                    break
                if not all(map(_has_shape_of, expected, values)):
                    reason = "the sizes contradict the known shape of the result"
                    break
                compared += 1
                try:
                    got = _run(sessions[1], found.inputs, trial)
                except Exception as error:
                    return f"with {trial} it fails: {str(error).splitlines()[0][:300]}"
                for one, other in zip(expected, got, strict=True):
                    if identical(one, other) or (ambiguous and _are_empty(one, other)):
                        continue
                    noise = trial.noise + rewriting.tolerance
                    if text := difference(one, other, noise=noise, level=rewriting.level):
                        return f"with {trial} {text}"
        if not compared:
            raise NotEvaluated(reason)
        return ""


def _anything(pairs: Sequence[tuple[ir.Value, ir.Value]], rewriting: Rewriting) -> bool:
    return True


def _run(running: ort.InferenceSession, inputs: Sequence[ir.Value], trial: Trial) -> list[np.ndarray]:
    places = {f"v{place}": value for place, value in enumerate(inputs)}
    feeds = {port.name: trial.arrays[places[port.name]] for port in running.get_inputs()}
    return running.run(None, feeds)


def _has_shape_of(array: np.ndarray, value: ir.Value) -> bool:
    """Return whether an array has the known dimensions of a value.

    The sizes of a trial may be impossible, such as a number of iterations that only the shape of a later value states.
    """
    if value.shape is None:
        return True
    known = zip(array.shape, value.shape, strict=False)
    return array.ndim == len(value.shape) and all(size == dim for size, dim in known if isinstance(dim, int))


def _products(model: ir.Model) -> int:
    """Return the largest number of weights of one output channel of a convolution."""
    convolutions = [node for node in all_nodes(model.graph) if node.op_type in ("Conv", "ConvTranspose")]
    shapes = [None if (weights := node.inputs[1]) is None else weights.shape for node in convolutions]
    known = [shape.numpy() for shape in shapes if shape is not None and shape.is_static()]
    return max((math.prod(shape[1:]) for shape in known), default=0)


def _computes_a_target(model: ir.Model) -> bool:
    """Return whether a Reshape has a computed target. Without elements, ONNX does not define the meaning of -1 in it."""
    reshapes = [node for node in all_nodes(model.graph) if (node.domain, node.op_type) == ("", "Reshape")]
    return any(constant_array(node.inputs[1]) is None for node in reshapes)


def _are_empty(expected: np.ndarray, got: np.ndarray) -> bool:
    return expected.dtype == got.dtype and expected.ndim == got.ndim and not expected.size and not got.size


def identical(expected: np.ndarray, got: np.ndarray) -> bool:
    """Return whether two arrays have the same type, shape and bits: a quick check before `difference`."""
    if expected.dtype != got.dtype or expected.shape != got.shape:
        return False
    if expected.dtype.kind == "f":
        bits = f"u{expected.dtype.itemsize}"
        expected, got = expected.view(bits), got.view(bits)
    return expected.dtype.kind in "iub" and bool(np.array_equal(expected, got))


def difference(expected: np.ndarray, got: np.ndarray, *, noise: float = 0.0, level: float = 0.0) -> str:
    """Return how two arrays differ by more than the order of roundings explains; "" if they agree.

    Args:
        expected, got: the arrays.
        noise: the possible effect of rounding the inputs in a sum of them.
        level: the distance of two levels, by which one number in a thousand may differ, see `Rewriting`.
    """
    if expected.shape != got.shape:
        return f"the shapes are {list(expected.shape)} and {list(got.shape)}"
    if expected.dtype != got.dtype:
        return f"the types are {expected.dtype} and {got.dtype}"
    if expected.dtype.kind not in "fV":
        unequal = expected != got
        return "" if not unequal.any() else _description(expected, got, unequal)
    narrow = expected.dtype.itemsize < 4
    one, other = expected.astype(np.float64), got.astype(np.float64)
    finite = np.abs(one[np.isfinite(one)])
    rtol = 4e-3 if narrow else 1e-4
    # After cancellation, a sum is only as accurate as its terms.
    atol = (rtol * 0.1) * float(finite.max(initial=0.0)) + noise + (1e-7 if narrow else _FLUSHED)
    with np.errstate(invalid="ignore"):
        near = np.isfinite(one) & (np.abs(one - other) <= atol + rtol * np.abs(one))
    near |= (one == other) | (np.isnan(one) & np.isnan(other))
    if level and not near.all() and (~near).mean() <= _HALFWAY:
        near |= np.abs(one - other) <= atol + rtol * np.abs(one) + (1 + rtol) * level
    return "" if near.all() else _description(one, other, ~near)


def _description(expected: np.ndarray, got: np.ndarray, unequal: np.ndarray) -> str:
    first = tuple(int(index) for index in np.argwhere(unequal)[0])
    return (
        f"{int(unequal.sum())} of {unequal.size} elements differ: {got[first]} instead of {expected[first]} at {list(first)}"
    )
