"""Compare converted NNCF networks in ONNX Runtime with OpenVINO and with ONNX Runtime's own quantization.

    python -m benchmarks.quantized                      # a table of ratios of medians, sizes and distances
    python -m benchmarks.quantized --only deit          # networks whose names contain one of these
    python -m benchmarks.quantized --folder MADE        # keep the created models, and reuse existing ones
    python -m benchmarks.quantized --processor-time     # CPU time of one thread, for a shared machine
    python -m benchmarks.quantized --json

The networks are built from timm's classes (the extra ``networks``) with random weights; nothing is downloaded. NNCF
quantizes the models that OpenVINO imports. ``onnxruntime.quantization.quantize_static`` (QDQ, u8 activations, s8 weights per
channel) quantizes direct exports of the same networks, with the same samples.

As in `benchmarks.models`, each runtime has a separate process and they take turns. Distances are relative to OpenVINO's
exact emulation (``LP_TRANSFORMS_MODE=NO``), in the L2 norm, for our outputs and for those of OpenVINO with default settings.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.networks import made, medians, open_session, parser, take_turns
from converters.validation.compare import relative_l2

SHAPE = (1, 3, 224, 224)
SAMPLES = 16
NETWORKS = ("resnet50", "mobilenetv3_large_100", "deit_small_patch16_224")
RUNTIMES = {"ours": "converted.onnx", "quantize_static": "direct.onnx", "openvino": "model.xml"}
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}


# -- the networks ---------------------------------------------------------------------------------------------------------


def make(name: str, folder: Path) -> None:
    """Write the compared files: ``model.xml``, ``direct.onnx`` and the inputs, ``inputs.npz``."""
    from tests.conformance.models import torchvision_ops

    torchvision_ops.load()
    import nncf
    import openvino as ov
    import timm
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    module = timm.create_model(name)
    for part in module.modules():
        if isinstance(part, (torch.nn.BatchNorm2d, torch.nn.LayerNorm)):
            torch.nn.init.uniform_(part.weight, 0.8, 1.2)
            torch.nn.init.normal_(part.bias, 0, 0.1)
    module.train()
    with torch.no_grad():  # statistics of the data, like those of a trained network
        for _ in range(3):
            module(torch.randn(8, *SHAPE[1:]))
    example = torch.randn(SHAPE)
    rng = np.random.default_rng(0)
    samples = [rng.standard_normal(SHAPE).astype(np.float32) for _ in range(SAMPLES)]
    model = ov.convert_model(module.eval(), example_input=example, input=list(SHAPE))
    is_transformer = any(isinstance(part, torch.nn.LayerNorm) for part in module.modules())
    options = {"model_type": nncf.ModelType.TRANSFORMER} if is_transformer else {}
    ov.save_model(nncf.quantize(model, nncf.Dataset(samples), subset_size=SAMPLES, **options), folder / "model.xml")
    _quantize_static(module, example, samples, folder)
    np.savez(folder / "inputs.npz", rng.standard_normal(SHAPE).astype(np.float32))


def _quantize_static(module: Any, example: Any, samples: Sequence[np.ndarray], folder: Path) -> None:
    import torch
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        """Returns the calibration samples one by one."""

        def __init__(self) -> None:
            self.rest = iter(samples)

        def get_next(self) -> dict[str, np.ndarray] | None:
            sample = next(self.rest, None)
            return None if sample is None else {"x": sample}

    plain, ready = folder / "plain.onnx", folder / "ready.onnx"
    torch.onnx.export(module, (example,), plain, dynamo=False, opset_version=17, input_names=["x"])
    quant_pre_process(plain, ready)
    types = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    quantize_static(ready, folder / "direct.onnx", Reader(), quant_format=QuantFormat.QDQ, per_channel=True, **types)
    for path in (plain, ready):
        path.unlink()


# -- measurements ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The figures of a network.

    Attributes:
        seconds: by runtime.
        size: the size of our file relative to the .bin.
        distance: from our outputs to OpenVINO's exact emulation.
        allowed: from OpenVINO's default outputs to its exact emulation.
    """

    name: str
    seconds: dict[str, float]
    size: float
    distance: float
    allowed: float

    def ratio(self, other: str) -> float:
        """Return the ratio of our time to another's."""
        return self.seconds["ours"] / self.seconds[other]


def measure(name: str, folder: Path, rounds: int, *, processor_time: bool) -> Row:
    """Convert the network in a folder and measure the runtimes in turns."""
    from converters.openvino import convert

    convert(folder / "model.xml", folder / RUNTIMES["ours"])
    turns = _processor_times if processor_time else _wall_times
    seconds, outputs = turns(folder, rounds)
    exact = subprocess.run([sys.executable, "-c", _RUN_EXACT.format(folder=str(folder))], check=True, capture_output=True)
    expected = np.frombuffer(exact.stdout, np.float32)
    return Row(
        name,
        seconds,
        (folder / RUNTIMES["ours"]).stat().st_size / (folder / "model.bin").stat().st_size,
        relative_l2(outputs["ours"].reshape(-1), expected),
        relative_l2(outputs["openvino"].reshape(-1), expected),
    )


_Turns = tuple[dict[str, float], dict[str, np.ndarray]]


def _wall_times(folder: Path, rounds: int) -> _Turns:
    contenders = take_turns(folder, RUNTIMES, rounds)
    return medians(contenders), {runtime: contender.outputs[0] for runtime, contender in contenders.items()}


def _processor_times(folder: Path, rounds: int) -> _Turns:
    """Return the minimum of single-threaded processor times, because other work on the machine only adds to them."""
    arrays = list(np.load(folder / "inputs.npz").values())
    calls = {runtime: open_session(folder / file, threads=1) for runtime, file in RUNTIMES.items()}
    outputs = {runtime: call(arrays)[0] for runtime, call in calls.items()}
    seconds = dict.fromkeys(calls, float("inf"))
    for _ in range(3 * rounds):
        for runtime, call in calls.items():
            started = time.process_time()
            call(arrays)
            seconds[runtime] = min(seconds[runtime], time.process_time() - started)
    return seconds, outputs


def run_exact(folder: Path) -> bytes:
    """Return OpenVINO's outputs without integer kernels."""
    import openvino as ov

    (x,) = np.load(folder / "inputs.npz").values()
    return np.ascontiguousarray(ov.Core().compile_model(folder / "model.xml", "CPU", EXACT)([x])[0]).tobytes()


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Iterate over the lines of a Markdown table."""
    yield "| network | ours, ms | / quantize_static | / OpenVINO | file / .bin | distance: ours, OpenVINO's own |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        yield (
            f"| {row.name} | {1e3 * row.seconds['ours']:.1f} | {row.ratio('quantize_static'):.2f} "
            f"| {row.ratio('openvino'):.2f} | {row.size:.2f} | {row.distance:.4f}, {row.allowed:.4f} |"
        )


_RUN_EXACT = (
    "import sys; from pathlib import Path; from benchmarks.quantized import run_exact; "
    "sys.stdout.buffer.write(run_exact(Path({folder!r})))"
)


def main() -> int:
    """Run the command line."""
    arguments = parser(
        "benchmarks.quantized", __doc__.partition("\n")[0], "the processor's time of one thread, in one process"
    )
    options = arguments.parse_args()
    rows = [
        measure(name, folder, options.rounds, processor_time=options.processor_time)
        for name, folder in made("benchmarks.quantized", NETWORKS, options.only, options.folder)
    ]
    print(json.dumps([asdict(row) for row in rows]) if options.json else "\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
