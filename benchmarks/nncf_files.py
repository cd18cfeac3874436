"""Quantized IR files for benchmarks: networks with random weights in their real dimensions, quantized by NNCF.

    python -m benchmarks.nncf_files FOLDER              # a folder of .xml and .bin for each network
    python -m benchmarks.nncf_files FOLDER --only yolo  # networks whose names contain one of these

Needs torch, timm, torchvision, nncf and openvino. Nothing is downloaded. Existing files are kept.
"""

from __future__ import annotations

import sys
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


def save(name: str, folder: Path) -> None:
    """Quantize a network and write ``model.xml`` into the folder."""
    import nncf
    import openvino as ov

    module, shape = made(name)
    assert isinstance(shape, tuple)
    rng = np.random.default_rng(0)
    samples = [rng.standard_normal(shape).astype(np.float32) for _ in range(SAMPLES)]
    with torch.no_grad():
        model = ov.convert_model(module, example_input=torch.randn(shape), input=list(shape))
    is_transformer = any(isinstance(part, torch.nn.LayerNorm) for part in module.modules())
    options: dict[str, Any] = {"model_type": nncf.ModelType.TRANSFORMER} if is_transformer else {}
    # Asymmetric activations get asymmetric limits, as NNCF recommends.
    if "relu" not in name:
        options["preset"] = nncf.QuantizationPreset.MIXED
    quantized = nncf.quantize(model, nncf.Dataset(samples), subset_size=SAMPLES, **options)
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(quantized, folder / "model.xml")


if __name__ == "__main__":
    sys.exit(make_files("benchmarks.nncf_files", str(__doc__).partition("\n")[0], NAMES, save))
