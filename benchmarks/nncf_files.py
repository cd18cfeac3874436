"""Quantized IR files for benchmarks: networks with random weights in their real dimensions, quantized by NNCF.

    python -m benchmarks.nncf_files FOLDER              # a folder of .xml and .bin for each network
    python -m benchmarks.nncf_files FOLDER --only yolo  # networks whose names contain one of these

Needs torch, timm, torchvision, nncf and openvino. Nothing is downloaded. Existing files are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.torch_networks.libraries import TIMM
from benchmarks.torch_networks.making import made, make_files

SAMPLES = 4
BLOCKS = tuple(
    f"{family}_{function}"
    for family, functions in {
        "yolo": ("silu", "hardswish", "relu", "leaky", "mish"),
        "ssd": ("relu", "relu6", "elu"),
        "hand": ("prelu", "relu"),
        "resolution": ("prelu", "relu"),
        "unet": ("relu", "leaky"),
        "volume": ("relu", "silu"),
        "signal": ("relu", "gelu"),
        "groups": ("relu", "hardswish"),
    }.items()
    for function in functions
)
NAMES = (*BLOCKS, *TIMM, "shufflenet_v2_x1_0", "squeezenet1_1", "googlenet")


def is_transformer(module: torch.nn.Module) -> bool:
    return any(isinstance(part, torch.nn.LayerNorm) for part in module.modules())


def normal(shape: Sequence[int], mean: float = 0.0) -> list[tuple[np.ndarray]]:
    """Return samples of one input: normal numbers with a mean."""
    rng = np.random.default_rng(0)
    return [((rng.standard_normal(shape) + mean).astype(np.float32),) for _ in range(SAMPLES)]


def quantize(
    module: torch.nn.Module, samples: Sequence[tuple[np.ndarray, ...]], folder: Path, *, halves: bool = True, **options: Any
) -> None:
    """Quantize a network with options of NNCF, and write ``model.xml`` into a folder, with weights in 16 bits by default."""
    import nncf
    import openvino as ov

    with torch.no_grad():
        example = tuple(torch.from_numpy(array) for array in samples[0])
        model = ov.convert_model(module, example_input=example, input=[array.shape for array in samples[0]])
    quantized = nncf.quantize(model, nncf.Dataset(samples), subset_size=len(samples), **options)
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(quantized, folder / "model.xml", compress_to_fp16=halves)


def save(name: str, folder: Path) -> None:
    """Quantize a network and write ``model.xml`` into the folder."""
    import nncf

    module, shape = made(name)
    assert isinstance(shape, tuple)
    options: dict[str, Any] = {"model_type": nncf.ModelType.TRANSFORMER} if is_transformer(module) else {}
    # Asymmetric activations get asymmetric limits, as NNCF recommends.
    if "relu" not in name:
        options["preset"] = nncf.QuantizationPreset.MIXED
    quantize(module, normal(shape), folder, **options)


if __name__ == "__main__":
    sys.exit(make_files("benchmarks.nncf_files", str(__doc__).partition("\n")[0], NAMES, save))
