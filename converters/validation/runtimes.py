"""The runtimes for a source or its ONNX model."""

from __future__ import annotations

import importlib.util
import re
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnxruntime as ort
from google.protobuf.message import DecodeError

import onnx_specops
from converters.validation.arrays import random_inputs, session_specs
from converters.validation.inputs import ModelInputs, load_samples
from converters.validation.onnx_model import check_is_onnx, input_specs, variable_blanks
from converters.validation.ort_values import run_session

OWN = "openvino"
"""The runtime of a model's source format."""

NAMES = {
    OWN: "OpenVINO, CPU",
    "native": "ONNX Runtime, native kernels",
    "python": "ONNX Runtime, Python kernels",
    "none": "ONNX Runtime, no plugin",
    "reference": "ONNX reference evaluator",
}

BY_BODY = frozenset({"none", "reference"})
"""The runtimes without the plugin, whose bodies draw their own random numbers."""

Arrays = dict[str, np.ndarray]

# If ONNX's reference evaluator takes longer, the first run is timed, because it needs no warm-up.
_SLOW = 1.0


def chosen(runtimes: Collection[str], baseline: str) -> list[str]:
    """Return the runtimes for a model whose source has the runtime ``baseline``, with that one first."""
    others = [runtime for runtime in NAMES if runtime in runtimes and runtime != OWN]
    return [baseline, *others] if OWN in runtimes else others


def unavailable(runtime: str, custom: bool, without_body: Sequence[str]) -> str:
    """Return the reason why a runtime cannot run a model here, or ``""``.

    Args:
        runtime: a key of `NAMES` other than `OWN`.
        custom: whether the model has operators of the domain.
        without_body: the operators that need a kernel.
    """
    if runtime in ("native", "python") and not custom:
        return "the model contains no custom operators"
    if runtime == "native":
        try:
            onnx_specops.library_path()
        except LookupError as error:
            return str(error)
    if runtime == "python" and importlib.util.find_spec("onnxruntime_extensions") is None:
        return 'onnxruntime-extensions is not installed: pip install "onnx-specops[python-kernels]"'
    if runtime == "none" and without_body:
        return f"standard ONNX cannot represent {', '.join(without_body)}"
    return ""


def run(
    runtime: str, model: Path, feeds: Mapping[str, np.ndarray], outputs: Sequence[str], *, timed: bool = True
) -> tuple[Arrays, float]:
    """Run the model once for its outputs and, if ``timed``, once for the time.

    Returns:
        The outputs by name, and the seconds of one inference; if ``timed``, after a warm-up run.

    Raises:
        NotImplementedError: ONNX's reference evaluator lacks an operator.
        Exception: any exception of the runtime.
    """
    infer_once = runner(runtime, model, outputs)
    started = time.perf_counter()
    arrays = infer_once(feeds)
    seconds = time.perf_counter() - started
    if timed and not (runtime == "reference" and seconds > _SLOW):
        started = time.perf_counter()
        infer_once(feeds)
        seconds = time.perf_counter() - started
    return arrays, seconds


def runner(runtime: str, model: Path, outputs: Sequence[str]) -> Callable[[Mapping[str, np.ndarray]], Arrays]:
    """Return a function that runs the model in one session, from its initial state each time."""
    if runtime == "reference":
        from onnx_specops.runtime.reference import reference_evaluator

        proto = onnx.load(model)
        evaluator, blanks = reference_evaluator(proto), variable_blanks(proto)

        def evaluate(feeds: Mapping[str, np.ndarray]) -> Arrays:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy warns of intended overflows
                results = evaluator.run(list(outputs), {**blanks, **feeds})
            return dict(zip(outputs, map(np.asarray, results), strict=True))

        return evaluate
    session = cpu_session(model, runtime)

    def infer_session(feeds: Mapping[str, np.ndarray]) -> Arrays:
        session.reset_state()
        return infer(session, feeds, outputs)

    return infer_session


def quiet_options() -> ort.SessionOptions:
    """Return options of a session that prints nothing. Its exceptions are sufficient."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return options


def cpu_session(model: Path, kernels: str, options: ort.SessionOptions | None = None) -> onnx_specops.InferenceSession:
    """Create a session on the CPU, also where ONNX Runtime has other providers: the CPU computes in float32.

    Args:
        model: the .onnx.
        kernels: see `onnx_specops.InferenceSession`.
        options: its options, by default `quiet_options`.
    """
    options = options or quiet_options()
    return onnx_specops.InferenceSession(str(model), options, ["CPUExecutionProvider"], kernels=kernels)  # type: ignore[arg-type]


# ONNX Runtime's messages for a lack of memory.
_LACK_OF_MEMORY = re.compile(r"Failed to allocate memory for requested buffer of size (\d+)|bad allocation|bad_alloc")


def run_samples(
    model: Path,
    inputs: Path | None = None,
    *,
    kernels: Literal["auto", "native", "python", "none"] = "auto",
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> dict[str, Arrays]:
    """Run an ONNX model in ONNX Runtime, on each sample from its initial state.

    Args:
        model: the .onnx file.
        inputs: samples for `converters.validation.inputs.load_samples`; random inputs for ``None``.
        kernels: see `onnx_specops.InferenceSession`.
        seed: the seed of random inputs.
        shapes: the shapes of random inputs by name.
        note: receives a sentence for each input that is converted.

    Returns:
        The model's own outputs by name, for each sample by its name, which is "" for random inputs.

    Raises:
        ValueError: the model or the inputs are invalid.
        MemoryError: there is not enough memory for the model's values.
        MissingExtraError: Python kernels are requested, and onnxruntime-extensions is not installed.
    """
    check_is_onnx(model)
    try:
        session = cpu_session(model, kernels)
    except ImportError:
        raise
    except Exception as error:  # ONNX Runtime's exceptions have no common base class
        if "INVALID_PROTOBUF" in str(error):
            raise ValueError(f"{model} is not an ONNX model, or is damaged") from None
        raise ValueError(f"{model}: {error}") from None
    if inputs is not None and shapes:
        raise ValueError("shapes apply to random inputs only, but inputs are given")
    taken = _taken(session, model, by_file=inputs is not None)
    if inputs is None:
        samples = {"": random_inputs(taken.specs, seed, shapes or {})}
    else:
        samples = load_samples(inputs, taken, note)
    found = {}
    try:
        for sample, feeds in samples.items():
            session.reset_state()
            found[sample] = infer(session, feeds, [output.name for output in session.get_outputs()])
        return found
    except MemoryError:
        raise
    except Exception as error:
        if (lack := _LACK_OF_MEMORY.search(str(error))) is not None:
            asked = f", which requested {int(lack[1]):,} bytes" if lack[1] else ""
            raise MemoryError(f"ONNX Runtime ran {model}{asked}") from None
        hint = "" if inputs is not None else " (with random inputs; --shape and --inputs set others)"
        raise ValueError(f"{model}: {error}{hint}") from None


def _taken(session: ort.InferenceSession, model: Path, *, by_file: bool) -> ModelInputs:
    """Return the model's inputs from its file, if requested or necessary and not in ONNX Runtime's own format."""
    specs = session_specs(session.get_inputs())
    if not by_file and not any(spec.is_guess for spec in specs):
        return ModelInputs(specs)
    try:
        proto = onnx.load(model, load_external_data=False)
    except DecodeError:
        return ModelInputs(specs)
    known = {spec.name: spec for spec in input_specs(proto)}
    return ModelInputs.by_onnx(proto, [known.get(spec.name, spec) for spec in specs])


def infer(session: ort.InferenceSession, feeds: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Arrays:
    """Return the session's outputs by name."""
    return dict(zip(outputs, run_session(session, feeds, outputs), strict=True))
