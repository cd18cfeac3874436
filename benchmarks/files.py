"""Convert every IR in a folder and compare its speed with OpenVINO: ratios of single-threaded CPU times.

    python -m benchmarks.files FOLDER                    # all .xml files in it and in folders within
    python -m benchmarks.files FOLDER --only yolo        # those whose paths contain one of these
    python -m benchmarks.files FOLDER --layers           # the slowest layers of files above 1.15, side by side
    python -m benchmarks.files FOLDER --simd avx2        # without newer instructions, in both runtimes
    python -m benchmarks.files FOLDER --distances 8      # no times: the mean distances over 8 inputs
    python -m benchmarks.files FOLDER --fastest          # the fastest runs instead of the medians
    python -m benchmarks.files FOLDER --json

Each runtime has a separate process with one thread, and they take turns: the converted file with the plugin's kernels and
    without, OpenVINO with default settings (in float32: its default on processors with bfloat16 is bfloat16), and OpenVINO's
    exact emulation (``LP_TRANSFORMS_MODE=NO``). The latter is also the reference for the relative distances (L2 norm) of our
    outputs and OpenVINO's. It is omitted for files without integers, where both are equal. Other work on the machine has
    little effect on the medians, unless it runs on the other thread of the same core: then compare the fastest runs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.networks import Contender, open_session
from converters.validation.compare import relative_l2

RUNTIMES = ("ours", "no plugin", "openvino", "exact")
SLOW = 1.15
# Those of the kernels, and their names in oneDNN, which OpenVINO uses.
INSTRUCTIONS = {
    "avx2": "AVX2",
    "avx2_vnni": "AVX2_VNNI",
    "avx512": "AVX512_CORE",
    "avx512_vnni": "AVX512_CORE_VNNI",
    "amx": "AVX512_CORE_AMX",
}
_MOST_LAYERS = 12
_INTEGERS = re.compile(rb'type="Fake|element_type="([iu][1248]|nf4|f8|f4)"')
_EXACT = {"LP_TRANSFORMS_MODE": "NO", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}


@dataclass(frozen=True)
class Row:
    """The figures of a file.

    Attributes:
        name: the file's path within the folder.
        seconds: by runtime.
        distance: from our outputs to OpenVINO's exact emulation, the maximum over all outputs.
        allowed: from OpenVINO's default outputs to its exact emulation, if that is another computation.
        problem: the reason why there are no figures.
        layers: the slowest layers of a slow file: names, OpenVINO's seconds and ours, and the executed kernels.
    """

    name: str
    seconds: dict[str, float] = field(default_factory=dict)
    distance: float = math.nan
    allowed: float = math.nan
    problem: str = ""
    layers: list[str] = field(default_factory=list)

    def ratio(self, other: str, of: str = "ours") -> float:
        """Return the ratio of two runtimes' times; NaN if one was not measured."""
        return self.seconds[of] / self.seconds.get(other, math.nan)


def measure(path: Path, name: str, rounds: int, *, layers: bool, fastest: bool = False) -> Row:
    """Convert a file and measure the runtimes in turns."""
    from converters.openvino import convert

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        try:
            convert(path, folder / "converted.onnx")
            inputs = _inputs(path)
            np.savez(folder / "inputs.npz", *inputs)
            runtimes = RUNTIMES if _INTEGERS.search(path.read_bytes()) else RUNTIMES[:-1]
            contenders = _contenders(path, folder, runtimes)
        except Exception as error:  # any exception of a library; the other files are still measured
            return Row(name, problem=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        for turn in range(rounds):
            for runtime in runtimes if turn % 2 else runtimes[::-1]:
                contenders[runtime].run(contenders[runtime].block)
        for contender in contenders.values():
            contender.end()
        typical = min if fastest else statistics.median
        seconds = {runtime: typical(contender.times) for runtime, contender in contenders.items()}
        exact = contenders[runtimes[-1]].outputs
        allowed = _distance(contenders["openvino"].outputs, exact) if "exact" in contenders else math.nan
        row = Row(name, seconds, _distance(contenders["ours"].outputs, exact), allowed)
        if layers and row.ratio("openvino") > SLOW:
            row.layers.extend(_layers(path, folder / "converted.onnx"))
        return row


class _Turns(Contender):
    """A runtime's process, with the length of its turns."""

    block = 0.25


def _contenders(path: Path, folder: Path, runtimes: Sequence[str]) -> dict[str, _Turns]:
    settings: dict[str, dict[str, str]] = {"openvino": {}, "exact": _EXACT}
    found: dict[str, _Turns] = {}
    for runtime in runtimes:
        model = path if runtime in settings else folder / "converted.onnx"
        outputs = folder / f"{runtime.replace(' ', '_')}.npz"
        environment = {"BENCHMARK_THREADS": "1", "BENCHMARK_OPENVINO": json.dumps(settings.get(runtime, {}))}
        kernels = "native" if runtime == "ours" else "none"
        found[runtime] = _Turns(model, folder / "inputs.npz", outputs, kernels, environment)
    return found


def _inputs(path: Path, seed: int = 0) -> list[np.ndarray]:
    """Return random inputs in the model's order; unknown dimensions are 1."""
    import openvino as ov

    rng, arrays = np.random.default_rng(seed), []
    for port in ov.Core().read_model(path).inputs:
        shape = [dim.get_length() if dim.is_static else 1 for dim in port.partial_shape]
        dtype = port.element_type.to_dtype()
        is_float = dtype.kind == "f"
        arrays.append(
            (rng.random(shape) if is_float else rng.integers(0, 2 if dtype.itemsize > 1 else 200, shape)).astype(dtype)
        )
    return arrays


def _distance(outputs: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> float:
    pairs = [(a, b) for a, b in zip(outputs, exact, strict=True) if b.dtype.kind == "f" and a.shape == b.shape and b.size]
    return max((relative_l2(a.reshape(-1), b.reshape(-1)) for a, b in pairs), default=math.nan)


def distances(path: Path, name: str, count: int) -> Row:
    """Return the mean distances over random inputs. The distances for one input depend on single numbers close to a rounding
    boundary.
    """
    from converters.openvino import convert

    with tempfile.TemporaryDirectory() as temporary:
        converted = Path(temporary) / "converted.onnx"
        try:
            convert(path, converted)
            exact, theirs = (open_session(path, 1, settings=settings) for settings in (_EXACT, {}))
            ours = open_session(converted, 1, "native")
            found = []
            for seed in range(count):
                inputs = _inputs(path, seed)
                expected = exact(inputs)
                found.append([_distance(run(inputs), expected) for run in (ours, theirs)])
        except Exception as error:  # any exception of a library; the other files are still measured
            return Row(name, problem=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return Row(name, {}, *map(float, np.mean(found, axis=0)))


def _layers(path: Path, converted: Path) -> Iterator[str]:
    """Iterate over the layers with the largest loss of time."""
    from converters.validation.validate import validate

    found = validate(path, converted, times=True, runtimes=["openvino", "native"]).times
    if found is None:
        return
    for layer in sorted(found.layers, key=lambda layer: (layer.baseline or 0) - (layer.onnxruntime or 0))[:_MOST_LAYERS]:
        theirs, ours = (1e3 * (seconds or 0) for seconds in (layer.baseline, layer.onnxruntime))
        yield (
            f"{ours:.2f} for {theirs:.2f} ms: {layer.layers[0].type} {layer.layers[0].name}"
            f"{f' and {len(layer.layers) - 1} more' if layer.layers[1:] else ''}; {', '.join(layer.onnxruntime_types)}"
        )
    yield f"other: {1e3 * found.onnxruntime_other:.2f} for {1e3 * found.baseline_other:.2f} ms"


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Iterate over the lines of a Markdown table, and the geometric mean."""
    exact = any("exact" in row.seconds for row in rows)
    more = ["/ OpenVINO, exact"] if exact else []
    heads = ["file", "ours, ms", "/ OpenVINO", *more, "no plugin / OpenVINO"]
    heads.append("distance: ours, OpenVINO's own" if exact else "distance")
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in sorted(rows, key=lambda row: math.inf if row.problem else -row.ratio("openvino")):
        cells = [row.name, row.problem]
        if not row.problem:
            digits = 4 if exact else 7
            distances = [row.distance, row.allowed] if "exact" in row.seconds else [row.distance]
            ratios = [row.ratio("openvino"), *([row.ratio("exact")] if exact else []), row.ratio("openvino", "no plugin")]
            cells = [row.name, f"{1e3 * row.seconds['ours']:.2f}", *(f"{ratio:.2f}" for ratio in ratios)]
            cells.append(", ".join(f"{distance:.{digits}f}" for distance in distances))
        for line in (cells, *([f"  {layer}"] for layer in row.layers)):
            yield f"| {' | '.join(line + [''] * (len(heads) - len(line)))} |"
    measured = [row.ratio("openvino") for row in rows if not row.problem]
    if measured:
        yield f"\nGeometric mean of {len(measured)} files: {statistics.geometric_mean(measured):.2f} of OpenVINO's time."


def distance_table(rows: Sequence[Row]) -> Iterator[str]:
    """Iterate over the lines of a Markdown table of distances."""
    yield "| file | ours | OpenVINO's own |"
    yield "|---|---|---|"
    for row in rows:
        yield (
            f"| {row.name} | {row.problem} | |"
            if row.problem
            else f"| {row.name} | {row.distance:.5f} | {row.allowed:.5f} |"
        )


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser("benchmarks.files", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[""], metavar="PART", help="files whose paths contain one of these")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each runtime (default: %(default)s)")
    parser.add_argument("--layers", action="store_true", help=f"the slowest layers of files that take longer than {SLOW}")
    parser.add_argument("--fastest", action="store_true", help="compare the fastest runs instead of the medians")
    parser.add_argument("--simd", choices=tuple(INSTRUCTIONS), help="the instructions that both may use")
    parser.add_argument("--distances", type=int, default=0, metavar="N", help="no times: mean distances over N inputs")
    parser.add_argument("--json", action="store_true", help="print the figures for programs")
    options = parser.parse_args()
    if options.simd:
        os.environ["ONNX_SPECOPS_SIMD"] = options.simd
        os.environ["ONEDNN_MAX_CPU_ISA"] = os.environ["DNNL_MAX_CPU_ISA"] = INSTRUCTIONS[options.simd]
    rows = []
    for path in sorted(options.folder.rglob("*.xml")):
        name = str(path.relative_to(options.folder).with_suffix("")).removesuffix("/model")
        if any(part in name for part in options.only):
            if options.distances:
                rows.append(distances(path, name, options.distances))
                continue
            rows.append(measure(path, name, options.rounds, layers=options.layers, fastest=options.fastest))
            print(f"{name}: {rows[-1].problem or format(rows[-1].ratio('openvino'), '.2f')}", file=sys.stderr, flush=True)
    lines = distance_table(rows) if options.distances else table(rows)
    print(json.dumps([asdict(row) for row in rows]) if options.json else "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
