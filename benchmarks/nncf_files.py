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


def quantize(module: torch.nn.Module, shape: Sequence[int], folder: Path, mean: float = 0.0, **options: Any) -> None:
    """Quantize a network with options of NNCF, for normal numbers with a mean, and write ``model.xml`` into a folder."""
    import nncf
    import openvino as ov

    rng = np.random.default_rng(0)
    samples = [(rng.standard_normal(shape) + mean).astype(np.float32) for _ in range(SAMPLES)]
    with torch.no_grad():
        model = ov.convert_model(module, example_input=torch.randn(shape), input=list(shape))
    quantized = nncf.quantize(model, nncf.Dataset(samples), subset_size=SAMPLES, **options)
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(quantized, folder / "model.xml")


def save(name: str, folder: Path) -> None:
    """Quantize a network and write ``model.xml`` into the folder."""
    import nncf

    module, shape = made(name)
    assert isinstance(shape, tuple)
    options: dict[str, Any] = {"model_type": nncf.ModelType.TRANSFORMER} if is_transformer(module) else {}
    # Asymmetric activations get asymmetric limits, as NNCF recommends.
    if "relu" not in name:
        options["preset"] = nncf.QuantizationPreset.MIXED
    quantize(module, shape, folder, **options)


if __name__ == "__main__":
    sys.exit(make_files("benchmarks.nncf_files", str(__doc__).partition("\n")[0], NAMES, save))
