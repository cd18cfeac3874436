"""The networks of the table, converted with every option, at dynamic sizes or sizes that ``Model.reshape`` accepts.

::

    python -m tests.conformance.models --reshaped                 # two options each, chosen by the seed
    python -m tests.conformance.models --reshaped --options all   # all options
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from converters.errors import ConversionError
from converters.openvino import convert
from converters.validation.compare import compare, relative_l2
from tests.conformance.changed import infer_changed, infer_limited
from tests.conformance.check import run_model
from tests.conformance.models.network import Network, Size
from tests.conformance.oracle import Oracle, OracleError
from tests.conformance.random.options import ALL, Options

BATCHES = (1, 2, 3)
_CHANGE, _TRIES, _TIMES = 1e-6, 4, 12.0


@dataclass
class Found:
    """The result of a network.

    Attributes:
        runs: the number of sizes that OpenVINO runs.
        refused: the sizes that OpenVINO rejects, with the reason.
        lacking: the options for which the conversion rejects the network, which is allowed.
        problems: the differences: options, kernels, size and description.
    """

    runs: int = 0
    refused: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def sizes(network: Network) -> list[Size]:
    """Return three batches at the first size, and two at another: the second, or one that is larger by half."""
    first, second = network.sizes[0], network.sizes[-1]
    other = {name: second[name] if second[name] != value else _larger(value) for name, value in first.items()}
    if "b" not in first:
        return [first, other] if first else [first]
    found = [{**first, "b": batch} for batch in BATCHES]
    return [*found, *({**other, "b": batch} for batch in BATCHES[:2])] if set(first) > {"b"} else found


def _larger(value: int) -> int:
    step = 32 if value >= 32 and value % 32 == 0 else 1
    return value + max(value // 2 // step, 1) * step


def chosen(network: Network, seed: int, count: int) -> list[Options]:
    """Return the given number of options for a network, by the seed."""
    rng = np.random.default_rng([seed, *network.name.encode()])
    return [ALL[k] for k in sorted(rng.permutation(len(ALL))[:count])]


def check(network: Network, path: Path, oracle: Oracle, options: Sequence[Options]) -> Found:
    """Reshape the IR to unknown dimensions, convert it with each of the options, and compare it at all sizes.

    Args:
        network: the network of the IR.
        path: the IR; its folder also gets the reshaped IR and its conversions.
        oracle: the process with OpenVINO.
        options: the conversion options.
    """
    found = Found()
    for wide in (True, False):
        reshaped = path.with_name("reshaped.xml")
        try:
            oracle.ask(_reshape, str(path), str(reshaped), _dims(network) if wide else network.partial_shapes())
        except OracleError as error:
            found.refused.append(f"reshape: {error}"[:200])
            continue
        taken = _taken(network, reshaped, oracle, found, network.sizes if not wide else sizes(network))
        if taken:
            found.runs = len(taken)
            for chosen in options:
                _compare(reshaped, chosen, taken, oracle, found)
            break
    return found


def _dims(network: Network) -> list[list[int]]:
    """Return the dimensions with every named one unknown."""
    return [[d if isinstance(d, int) else -1 for d in i.dims] for i in network.inputs.values()]


def _reshape(path: str, target: str, shapes: Sequence[Sequence[int]]) -> None:
    import openvino as ov

    model = ov.Core().read_model(path)
    model.reshape({k: ov.PartialShape(list(shape)) for k, shape in enumerate(shapes)})
    ov.save_model(model, target, compress_to_fp16=False)


@dataclass
class _Run:
    size: Size
    arrays: list[np.ndarray]
    expected: list[np.ndarray]
    limited: list[np.ndarray] | None = None  # the outputs with numbers in the range of float16
    moved: dict[float, list[float]] = field(default_factory=dict)


def _taken(network: Network, path: Path, oracle: Oracle, found: Found, of: Sequence[Size]) -> list[_Run]:
    """Return the sizes that OpenVINO runs, with inputs and outputs."""
    runs = []
    drawn = [_drawn(network, size, place) for place, size in enumerate(of)]
    for size, arrays, answer in zip(of, drawn, _answers(path, drawn, oracle), strict=True):
        if isinstance(answer, OracleError):
            found.refused.append(f"{dict(size)}: {answer}"[:200])
        else:
            runs.append(_Run(size, arrays, answer))
    return runs


def _drawn(network: Network, size: Size, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [i.draw(rng, i.shape(size)) for i in network.inputs.values()]


def _answers(path: Path, runs: list[list[np.ndarray]], oracle: Oracle) -> list[list[np.ndarray] | OracleError]:
    """Return OpenVINO's outputs of each run: of all by one compiled model, or of each by its own if one is rejected."""
    answer = oracle.run(path, runs, names=("cpu",))["cpu"]
    if not isinstance(answer, OracleError):
        return [*answer]
    if len(runs) == 1:
        return [answer]
    return [found for arrays in runs for found in _answers(path, [arrays], oracle)]


def _compare(path: Path, options: Options, runs: Sequence[_Run], oracle: Oracle, found: Found) -> None:
    target = path.with_suffix(".onnx")
    try:
        _, report = convert(path, target, **options.arguments)
    except ConversionError as error:
        said = f"{options.name}: {error}"[:300]
        (found.lacking if options.may_lack and "opset" in said else found.problems).append(said)
        return
    if report.verified is not None:
        found.problems += [f"{options.name}: {difference}" for difference in report.verified.differences]
    for kernels in ("native", "none") if report.custom_operators else ("none",):
        for run, got in zip(runs, _results(target, [run.arrays for run in runs], kernels), strict=True):
            place = f"{options.name}, kernels={kernels!r}, {dict(run.size)}"
            if isinstance(got, Exception):
                found.problems.append(f"{place}: {type(got).__name__}: {' '.join(str(got).split())[:300]}")
                continue
            found.problems += [f"{place}, {said}" for said in _differences(path, options, run, got, oracle)]


def _results(path: Path, runs: list[list[np.ndarray]], kernels: str) -> list[list[np.ndarray] | Exception]:
    """Return the outputs of each run: of all by one session, or of each by its own if one fails."""
    try:
        return [*run_model(path, runs, kernels)]
    except Exception as error:  # any exception of a runtime is the result
        return [error] if len(runs) == 1 else [found for arrays in runs for found in _results(path, [arrays], kernels)]


def _differences(path: Path, options: Options, run: _Run, got: Sequence[np.ndarray], oracle: Oracle) -> Iterator[str]:
    for index, (ours, expected) in enumerate(zip(got, run.expected, strict=True)):
        compared = compare(ours, expected, options.tolerance)
        if not compared.agrees and options.arguments.get("precision") == "float16":
            # A padding token may have no visible token. docs/reliability.md describes the result in float16.
            if run.limited is None:
                run.limited = oracle.ask(infer_limited, str(path), run.arrays, float(np.finfo(np.float16).max))
            expected = run.limited[index]
            compared = compare(ours, expected, options.tolerance)
        if compared.agrees:
            continue
        change = max(options.rounding, _CHANGE)
        if change not in run.moved:
            run.moved[change] = _moved(path, run, change, oracle)
        allowed = run.moved[change][index] * (_TIMES if options.rounding else 1.0)
        if relative_l2(ours, expected) > allowed:
            yield f"output {index}: {compared.note or 'its values'} (largest error {compared.max_absolute}, " + (
                f"relative L2 {compared.distance:.2g} of {allowed:.2g})"
            )


def _moved(path: Path, run: _Run, change: float, oracle: Oracle) -> list[float]:
    """Return the change of OpenVINO's outputs after changing the floats of inputs and weights."""
    answers = [oracle.ask(infer_changed, str(path), run.arrays, change, seed) for seed in range(_TRIES)]
    return [max(relative_l2(found[k], should) for found in answers) for k, should in enumerate(run.expected)]


def report(network: Network, found: Found) -> str:
    """Format a line for a network, and one for each problem."""
    head = f"{network.name}: {found.runs} sizes, {len(found.problems)} problems"
    told = [head + (f"; rejected by OpenVINO: {len(found.refused)}" if found.refused else "")]
    return "\n  ".join([*told, *itertools.islice(found.problems, 12)])
