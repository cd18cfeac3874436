"""Quantized IR files of networks of many kinds: style transfer, diffusion, point clouds, speech, volumes and others.

    python -m benchmarks.quantized_kinds FOLDER              # a folder of .xml and .bin for each network
    python -m benchmarks.quantized_kinds FOLDER --only style # networks whose names contain one of these

They are the networks of `benchmarks.float_files` that are not of a library and that `benchmarks.nncf_files` does not
quantize. NNCF quantizes half of them with limits around zero, the others with any limits. Needs torch, nncf and openvino.
Nothing is downloaded. Existing files are kept.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.nncf_files import NAMES as QUANTIZED
from benchmarks.nncf_files import is_transformer, quantize
from benchmarks.torch_networks.making import BLOCKS, made, make_files, random_input

SAMPLES = 4
NAMES = [name for name in BLOCKS if name not in QUANTIZED]


def save(name: str, folder: Path) -> None:
    """Quantize a network and write ``model.xml`` into the folder."""
    import nncf

    module, kind = made(name)
    torch.manual_seed(1)
    samples = [(np.asarray(random_input(kind)),) for _ in range(SAMPLES)]
    rng = random.Random(name)
    options: dict[str, Any] = {"preset": rng.choice(list(nncf.QuantizationPreset))}
    if is_transformer(module):
        options["model_type"] = nncf.ModelType.TRANSFORMER
    quantize(module, samples, folder, halves=False, **options)


if __name__ == "__main__":
    sys.exit(make_files("benchmarks.quantized_kinds", str(__doc__).partition("\n")[0], NAMES, save))
