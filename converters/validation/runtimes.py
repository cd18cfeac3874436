"""The runtimes that run an IR or its ONNX model, behind one function each."""

from __future__ import annotations

import importlib.util
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnxruntime as ort
from google.protobuf.message import DecodeError

import onnx_specops
from converters.validation.arrays import InputSpec, random_inputs, session_specs
from converters.validation.inputs import Taken, load_sample
from converters.validation.onnx_model import input_specs, variable_blanks
from converters.validation.ort_values import run_session

OPENVINO = "openvino"
NAMES = {
    OPENVINO: "OpenVINO, CPU",
    "native": "ONNX Runtime, native kernels",
    "python": "ONNX Runtime, Python kernels",
    "none": "ONNX Runtime, no plugin",
    "reference": "ONNX reference evaluator",
}

Arrays = dict[str, np.ndarray]

# Where ONNX's reference evaluator took longer than this, its first run's time counts: there is nothing to warm up.
_SLOW = 1.0


def unavailable(runtime: str, custom: bool, without_body: Sequence[str]) -> str:
    """Why a runtime cannot run a model here, or ``""``.

    Args:
        runtime: a key of `NAMES` other than `OPENVINO`.
        custom: whether the model has operators of the domain.
        without_body: those among them that need a kernel.
    """
    if runtime in ("native", "python") and not custom:
        return "the model has no operators of the plugin"
    if runtime == "native":
        try:
            onnx_specops.library_path()
        except LookupError as error:
            return str(error)
    if runtime == "python" and importlib.util.find_spec("onnxruntime_extensions") is None:
        return 'onnxruntime-extensions is not installed: pip install "onnx-specops[python-kernels]"'
    if runtime == "none" and without_body:
        return f"standard ONNX cannot say {', '.join(without_body)}"
    return ""


def run(
    runtime: str, model: Path, feeds: Mapping[str, np.ndarray], outputs: Sequence[str], *, timed: bool = True
) -> tuple[Arrays, float]:
    """Run the model once for its outputs and, where ``timed``, once for the time.

    Returns:
        The outputs by name, and the seconds of one inference after a first one.

    Raises:
        NotImplementedError: when ONNX's reference evaluator lacks an operator.
        Exception: whatever the runtime raises.
    """
    if runtime == "reference":
        return _run_reference(model, feeds, outputs, timed=timed)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = onnx_specops.InferenceSession(str(model), options, kernels=runtime)  # type: ignore[arg-type]
    arrays = infer(session, feeds, outputs)
    started = time.perf_counter()
    if timed:
        infer(session, feeds, outputs)
    return arrays, time.perf_counter() - started


# What ONNX Runtime says where memory gives out.
_LACK_OF_MEMORY = re.compile(r"Failed to allocate memory for requested buffer of size (\d+)|bad allocation|bad_alloc")


def runner(runtime: str, model: Path, outputs: Sequence[str]) -> Callable[[Mapping[str, np.ndarray]], Arrays]:
    """A function that runs the model, from its initial state each time, in a runtime that starts once."""
    if runtime == "reference":
        from onnx_specops.runtime.reference import reference_evaluator

        proto = onnx.load(model)
        evaluator, blanks = reference_evaluator(proto), variable_blanks(proto)

        def evaluate(feeds: Mapping[str, np.ndarray]) -> Arrays:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = evaluator.run(list(outputs), {**blanks, **feeds})
            return dict(zip(outputs, map(np.asarray, results), strict=True))

        return evaluate
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = onnx_specops.InferenceSession(str(model), options, kernels=runtime)  # type: ignore[arg-type]

    def infer_session(feeds: Mapping[str, np.ndarray]) -> Arrays:
        session.reset_state()
        return infer(session, feeds, outputs)

    return infer_session


def run_once(
    model: Path,
    inputs: Path | None = None,
    *,
    kernels: Literal["auto", "native", "python", "none"] = "auto",
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Arrays:
    """Run an ONNX model in ONNX Runtime.

    Args:
        model: the .onnx file.
        inputs: a sample, as of `converters.validation.inputs.load_samples`; random inputs where ``None``.
        kernels: as for `onnx_specops.InferenceSession`.
        seed: for the random inputs.
        shapes: of random inputs by name.
        note: called with a sentence about each input that is not taken as it is.

    Returns:
        The model's own outputs by name.

    Raises:
        ValueError: whatever is wrong with the model or the inputs.
        MemoryError: there is too little memory for the model's values.
        MissingExtraError: if Python kernels are asked for and onnxruntime-extensions is not installed.
    """
    if not model.is_file():
        raise ValueError(f"{model} is not a file")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnx_specops.InferenceSession(str(model), options, kernels=kernels)
    except ImportError:
        raise
    except Exception as error:  # ONNX Runtime's exceptions have no base of their own
        raise ValueError(f"{model}: {error}") from None
    specs = _specs(session, model)
    if inputs is not None and shapes:
        raise ValueError("shapes are for random inputs, and inputs are given")
    feeds = random_inputs(specs, seed, shapes or {}) if inputs is None else load_sample(inputs, _taken(model, specs), note)
    try:
        return infer(session, feeds, [output.name for output in session.get_outputs()])
    except MemoryError:
        raise
    except Exception as error:
        if (lack := _LACK_OF_MEMORY.search(str(error))) is not None:
            asked = f", which asked for {int(lack[1]):,} bytes" if lack[1] else ""
            raise MemoryError(f"ONNX Runtime ran {model}{asked}") from None
        hint = "" if inputs is not None else " (with random inputs; --shape and --inputs give others)"
        raise ValueError(f"{model}: {error}{hint}") from None


def _specs(session: ort.InferenceSession, model: Path) -> list[InputSpec]:
    """The session's inputs, as the model's file has them where that says more."""
    specs = session_specs(session.get_inputs())
    if all(spec.dims and not spec.is_guess for spec in specs):
        return specs
    try:
        known = {spec.name: spec for spec in input_specs(onnx.load(model, load_external_data=False))}
    except DecodeError:  # ONNX Runtime's own format
        return specs
    return [known.get(spec.name, spec) for spec in specs]


def _taken(model: Path, specs: list[InputSpec]) -> Taken:
    return Taken.by_onnx(onnx.load(model, load_external_data=False), specs)


def infer(session: ort.InferenceSession, feeds: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Arrays:
    """The session's outputs by name."""
    return dict(zip(outputs, run_session(session, feeds, outputs), strict=True))


def _run_reference(
    model: Path, feeds: Mapping[str, np.ndarray], outputs: Sequence[str], *, timed: bool
) -> tuple[Arrays, float]:
    from onnx_specops.runtime.reference import reference_evaluator

    proto = onnx.load(model)
    evaluator = reference_evaluator(proto)
    feeds = {**variable_blanks(proto), **feeds}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of overflows that are meant to be
        started = time.perf_counter()
        arrays = dict(zip(outputs, map(np.asarray, evaluator.run(list(outputs), dict(feeds))), strict=True))
        seconds = time.perf_counter() - started
        if timed and seconds < _SLOW:
            started = time.perf_counter()
            evaluator.run(list(outputs), dict(feeds))
            seconds = time.perf_counter() - started
    return arrays, seconds
