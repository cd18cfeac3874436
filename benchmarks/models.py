"""Whole networks, converted, in ONNX Runtime: against OpenVINO, and against the same network exported straight to ONNX.

    python -m benchmarks.models                      # a table of ratios of medians, load times and memory
    python -m benchmarks.models --only bert swin     # networks whose names contain one of these
    python -m benchmarks.models --folder MADE        # keep the models that it makes, and take those that are there
    python -m benchmarks.models --make-only --folder MADE
    python -m benchmarks.models --processor-time
    python -m benchmarks.models --json

The networks are built from their libraries' classes (the extra ``networks``) with random weights: nothing is downloaded.
OpenVINO imports them and saves them as it does by default, with weights in float16; the direct export is
``torch.onnx.export``, with its optimiser.

Each runtime runs in a process of its own, on two threads; several sessions alive in one process disturb each other. The
processes take turns in blocks, in another order each time; a figure is the median over all of a process's runs, and a
ratio is of two medians. OpenVINO computes in float32. *Error* is the distance of our outputs from OpenVINO's.

On a machine that others use too, ``--processor-time`` gives each runtime one thread and measures what time of a processor
its process takes, which waiting for a processor does not count in.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from tests.conformance.models.from_torch import quiet, randomize, timm_model, torchvision_model

THREADS = int(os.environ.get("BENCHMARK_THREADS", "2"))
CLOCK = time.process_time if THREADS == 1 else time.perf_counter
BLOCK = 0.6  # seconds that a process's turn takes, one run at least
RUNTIMES = {"ours": "converted.onnx", "direct": "direct.onnx", "openvino": "model.xml"}


# -- the networks ---------------------------------------------------------------------------------------------------------


def _picture(kind: Callable[..., Callable[[], Any]], name: str) -> Callable[[], tuple[Any, Any]]:
    def make() -> tuple[Any, Any]:
        import torch

        return kind(name, {})(), torch.randn(1, 3, 224, 224)

    return make


def _bert() -> tuple[Any, Any]:
    import torch
    from transformers import BertConfig, BertModel

    class Encoder(torch.nn.Module):
        """BERT of six layers, whose arguments are the tokens and which of them count."""

        def __init__(self) -> None:
            super().__init__()
            self.model = BertModel(BertConfig(num_hidden_layers=6))

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    mask = torch.ones(1, 128, dtype=torch.int64)
    mask[:, 100:] = 0
    return Encoder(), (torch.randint(0, 30000, (1, 128)), mask)


def _whisper() -> tuple[Any, Any]:
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    class Encoder(torch.nn.Module):
        """The encoder of Whisper base, for thirty seconds of sound."""

        def __init__(self) -> None:
            super().__init__()
            sizes = {"d_model": 512, "encoder_layers": 6, "encoder_attention_heads": 8, "encoder_ffn_dim": 2048}
            self.model = WhisperEncoder(WhisperConfig(**sizes))

        def forward(self, features: Any) -> Any:
            return self.model(features).last_hidden_state

    return Encoder(), torch.randn(1, 80, 3000)


NETWORKS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "resnet50": _picture(torchvision_model, "resnet50"),
    "mobilenetv3_large": _picture(torchvision_model, "mobilenet_v3_large"),
    "efficientnet_b0": _picture(torchvision_model, "efficientnet_b0"),
    "convnext_tiny": _picture(torchvision_model, "convnext_tiny"),
    "deit_small": _picture(timm_model, "deit_small_patch16_224"),
    "swin_tiny": _picture(timm_model, "swin_tiny_patch4_window7_224"),
    "bert (6 layers)": _bert,
    "whisper base encoder": _whisper,
}
"""Name -> what makes the module and an example of its arguments."""


def make(name: str, folder: Path) -> None:
    """Put what is compared into the folder: ``model.xml``, ``direct.onnx`` and the inputs, ``inputs.npz``."""
    import openvino as ov
    import torch

    from tests.conformance.models import torchvision_ops

    torchvision_ops.load()
    torch.manual_seed(0)
    module, example = NETWORKS[name]()
    randomize(module.eval())
    arguments = example if isinstance(example, tuple) else (example,)
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad(), quiet():
        model = ov.convert_model(module, example_input=arguments)
        model.reshape({index: list(argument.shape) for index, argument in enumerate(arguments)})
        ov.save_model(model, folder / "model.xml")
        torch.onnx.export(module, arguments, folder / "direct.onnx", dynamo=True, external_data=False, verbose=False)
    # Last: whoever finds it finds the others.
    np.savez(folder / "inputs.npz", *(argument.numpy() for argument in arguments))


# -- the processes --------------------------------------------------------------------------------------------------------


def _session(path: Path) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    if path.suffix == ".xml":
        import openvino as ov

        options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY"}
        request = ov.Core().compile_model(path, "CPU", options).create_infer_request()
        return lambda arrays: [np.array(output) for output in request.infer(list(arrays)).values()]
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return lambda arrays: session.run(None, dict(zip(names, arrays, strict=True)))


def _serve(model: Path, inputs: Path, outputs: Path) -> None:
    """Load a model, write down what it computes, and run it for as long as each line of standard input says."""
    with np.load(inputs) as file:
        arrays = [file[name] for name in file.files]
    before = _resident()
    started = time.perf_counter()
    run = _session(model)
    loaded = time.perf_counter() - started
    np.savez(outputs, *run(arrays))
    for _ in range(2):
        run(arrays)
    print(json.dumps({"load": loaded, "memory": _resident() - before}), flush=True)
    for line in sys.stdin:
        end, times = CLOCK() + float(line), []
        while not times or CLOCK() < end:
            started = CLOCK()
            run(arrays)
            times.append(CLOCK() - started)
        print(json.dumps(times), flush=True)


def _resident() -> int:
    """The bytes of memory that this process holds; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class Contender:
    """A runtime's process.

    Attributes:
        load: seconds until it had loaded the model.
        memory: bytes that it holds for that.
        outputs: what the model computes there.
        times: of every run, in seconds.
    """

    def __init__(self, model: Path, inputs: Path, outputs: Path) -> None:
        command = [sys.executable, "-m", "benchmarks.models", "--serve", *map(str, (model, inputs, outputs))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = self._answer()
        self.load: float = ready["load"]
        self.memory: int = ready["memory"]
        self.times: list[float] = []
        with np.load(outputs) as file:
            self.outputs = [file[name] for name in file.files]

    def run(self, seconds: float) -> None:
        """One turn."""
        stream = _stream(self._process.stdin)
        stream.write(f"{seconds}\n")
        stream.flush()
        self.times += self._answer()

    def end(self) -> None:
        """End the process."""
        _stream(self._process.stdin).close()
        self._process.wait()

    def _answer(self) -> Any:
        line = _stream(self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"{' '.join(map(str, self._process.args))} ended")  # type: ignore[arg-type]
        return json.loads(line)


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


# -- the table ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A network's figures, by runtime; seconds and bytes.

    Attributes:
        error: the largest distance of our outputs from OpenVINO's, relative, in the L2 norm.
        nodes: how many the converted model has.
    """

    name: str
    seconds: dict[str, float]
    load: dict[str, float]
    memory: dict[str, int]
    error: float
    nodes: int

    def ratio(self, other: str) -> float:
        """Our time by another's."""
        return self.seconds["ours"] / self.seconds[other] if other in self.seconds else math.nan


def measure(name: str, folder: Path, rounds: int) -> Row:
    """Convert the network of a folder and let the runtimes take turns."""
    import onnx

    from converters.openvino import convert

    converted, _ = convert(folder / "model.xml", folder / RUNTIMES["ours"])
    nodes = len(onnx.load(folder / RUNTIMES["ours"], load_external_data=False).graph.node)
    del converted
    contenders = {
        runtime: Contender(folder / file, folder / "inputs.npz", folder / f"outputs_{runtime}.npz")
        for runtime, file in RUNTIMES.items()
        if (folder / file).exists()
    }
    order = list(contenders)
    for turn in range(rounds):
        for runtime in order if turn % 2 else order[::-1]:
            contenders[runtime].run(BLOCK)
    for contender in contenders.values():
        contender.end()
    expected = contenders["openvino"].outputs
    error = max(_distance(a, b) for a, b in zip(contenders["ours"].outputs, expected, strict=True))
    return Row(
        name,
        {runtime: statistics.median(contender.times) for runtime, contender in contenders.items()},
        {runtime: contender.load for runtime, contender in contenders.items()},
        {runtime: contender.memory for runtime, contender in contenders.items()},
        error,
        nodes,
    )


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    norm = float(np.linalg.norm(b.astype(np.float64)))
    return float(np.linalg.norm(a.astype(np.float64) - b)) / (norm or 1.0)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The lines of a table in Markdown."""
    yield "| network | ours, ms | / direct export | / OpenVINO | load, s: ours, direct, OpenVINO | MB | error |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        loads, memory = (", ".join(f"{by.get(r, math.nan) / unit:.{digits}f}" for r in RUNTIMES)
                         for by, unit, digits in ((row.load, 1, 2), (row.memory, 1e6, 0)))  # fmt: skip
        yield (
            f"| {row.name} | {1e3 * row.seconds['ours']:.1f} | {row.ratio('direct'):.2f} | {row.ratio('openvino'):.2f} "
            f"| {loads} | {memory} | {row.error:.0e} |"
        )
    for other in ("direct", "openvino"):
        if all(other in row.seconds for row in rows) and rows:
            total = sum(row.seconds["ours"] for row in rows) / sum(row.seconds[other] for row in rows)
            yield f"\nsummed, ours / {other}: {total:.2f}"


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[""], help="networks whose names contain one of these")
    parser.add_argument("--folder", type=Path, help="where the models are kept; default: nowhere")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each runtime (default: %(default)s)")
    parser.add_argument("--make-only", action="store_true", help="make the models, and measure nothing")
    parser.add_argument("--processor-time", action="store_true", help="one thread each, and the time of its processor")
    parser.add_argument("--json", action="store_true", help="print the figures for programs")
    parser.add_argument("--serve", nargs=3, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        _serve(*options.serve)
        return 0
    if options.processor_time:
        os.environ["BENCHMARK_THREADS"] = "1"
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in NETWORKS:
            if not any(word in name for word in options.only):
                continue
            folder = (options.folder or Path(temporary)) / name.split(" (")[0].replace(" ", "_")
            if not (folder / "inputs.npz").exists():
                # In a process of its own: torch's threads and memory go with it.
                subprocess.run([sys.executable, "-c", _MAKE.format(name=name, folder=str(folder))], check=True)
            if not options.make_only:
                rows.append(measure(name, folder, options.rounds))
                if not options.json:
                    print(list(table(rows[-1:]))[2], flush=True)
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    elif rows:
        print("\n" + "\n".join(table(rows)))
    return 0


_MAKE = "from pathlib import Path; from benchmarks.models import make; make({name!r}, Path({folder!r}))"


if __name__ == "__main__":
    sys.exit(main())
