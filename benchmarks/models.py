"""Compare converted networks in ONNX Runtime with OpenVINO and with a direct export to ONNX.

    python -m benchmarks.models                      # a table of ratios of medians, load times and memory
    python -m benchmarks.models --only bert swin     # networks whose names contain one of these
    python -m benchmarks.models --folder MADE        # keep the created models, and reuse existing ones
    python -m benchmarks.models --make-only --folder MADE
    python -m benchmarks.models --processor-time
    python -m benchmarks.models --json

The networks are built from their libraries' classes (the extra ``networks``) with random weights; nothing is downloaded.
OpenVINO imports and saves them with default settings (float16 weights). The direct export is ``torch.onnx.export``, with its
optimizer.

Each runtime has a separate process with two threads, because several sessions in one process disturb each other. The
processes take turns in blocks, in a different order each time. A figure is the median of all runs of a process, and a ratio
is that of two medians. OpenVINO computes in float32. *Ours* uses the plugin's kernels. *Error* is the distance between our
outputs and OpenVINO's. Load times and memory are listed for ours, ours without the plugin, the direct export, and OpenVINO.

On a shared machine, ``--processor-time`` gives each runtime one thread and measures the processor time of its process, which
excludes waiting.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.networks import made, medians, parser, take_turns
from converters.validation.compare import relative_l2
from tests.conformance.models.from_torch import quiet, randomize, timm_model, torchvision_model

RUNTIMES = {"ours": "converted.onnx", "no plugin": "converted.onnx", "direct": "direct.onnx", "openvino": "model.xml"}


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
        """BERT with six layers, whose arguments are the tokens and the attention mask."""

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
        """The encoder of Whisper base, for thirty seconds of audio."""

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
"""Name -> a function that returns the module and example arguments."""


def make(name: str, folder: Path) -> None:
    """Write the compared files: ``model.xml``, ``direct.onnx`` and the inputs, ``inputs.npz``."""
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
    # Written last: its presence implies the other files.
    np.savez(folder / "inputs.npz", *(argument.numpy() for argument in arguments))


# -- the table ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A network's figures, by runtime, in seconds and bytes.

    Attributes:
        error: the largest relative distance of our outputs from OpenVINO's, in the L2 norm.
        nodes: the number of nodes in the converted model.
    """

    name: str
    seconds: dict[str, float]
    load: dict[str, float]
    memory: dict[str, int]
    error: float
    nodes: int

    def ratio(self, other: str) -> float:
        """Return the ratio of our time to another's."""
        return self.seconds["ours"] / self.seconds[other] if other in self.seconds else math.nan


def measure(name: str, folder: Path, rounds: int) -> Row:
    """Convert the network in a folder and measure the runtimes in turns."""
    import onnx

    from converters.openvino import convert

    converted, _ = convert(folder / "model.xml", folder / RUNTIMES["ours"])
    nodes = len(onnx.load(folder / RUNTIMES["ours"], load_external_data=False).graph.node)
    del converted
    present = {runtime: file for runtime, file in RUNTIMES.items() if (folder / file).exists()}
    contenders = take_turns(folder, present, rounds)
    expected = contenders["openvino"].outputs
    error = max(relative_l2(a, b) for a, b in zip(contenders["ours"].outputs, expected, strict=True))
    return Row(
        name,
        medians(contenders),
        {runtime: contender.load for runtime, contender in contenders.items()},
        {runtime: contender.memory for runtime, contender in contenders.items()},
        error,
        nodes,
    )


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Iterate over the lines of a Markdown table."""
    yield "| network | ours, ms | / direct export | / OpenVINO | no plugin / OpenVINO | load, s | MB | error |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        loads, memory = (", ".join(f"{by.get(r, math.nan) / unit:.{digits}f}" for r in RUNTIMES)
                         for by, unit, digits in ((row.load, 1, 2), (row.memory, 1e6, 0)))  # fmt: skip
        yield (
            f"| {row.name} | {1e3 * row.seconds['ours']:.1f} | {row.ratio('direct'):.2f} | {row.ratio('openvino'):.2f} "
            f"| {row.seconds['no plugin'] / row.seconds['openvino']:.2f} | {loads} | {memory} | {row.error:.0e} |"
        )
    for other in ("direct", "openvino"):
        if all(other in row.seconds for row in rows) and rows:
            total = sum(row.seconds["ours"] for row in rows) / sum(row.seconds[other] for row in rows)
            yield f"\nsummed, ours / {other}: {total:.2f}"


def main() -> int:
    """Run the command line."""
    arguments = parser("benchmarks.models", __doc__.partition("\n")[0], "one thread each, and the time of its processor")
    arguments.add_argument("--make-only", action="store_true", help="create the models without measuring")
    options = arguments.parse_args()
    if options.processor_time:
        os.environ["BENCHMARK_THREADS"] = "1"
    rows = []
    for name, folder in made("benchmarks.models", NETWORKS, options.only, options.folder):
        if not options.make_only:
            rows.append(measure(name, folder, options.rounds))
            if not options.json:
                print(list(table(rows[-1:]))[2], flush=True)
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    elif rows:
        print("\n" + "\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
