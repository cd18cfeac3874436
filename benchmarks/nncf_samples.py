"""Create quantized IR files of randomly selected timm networks, with random NNCF options.

    python -m benchmarks.nncf_samples FOLDER SEED COUNT   # a folder of .xml and .bin for each network

Families that `benchmarks.nncf_files` does not contain are selected first. Weights are random, and nothing is downloaded.
Requires torch, timm, nncf and openvino. ``options.json`` next to a model contains its options.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import timm
import torch
from torch import nn

from benchmarks.nncf_files import is_transformer, normal, quantize
from benchmarks.torch_networks.libraries import TIMM
from benchmarks.torch_networks.making import with_statistics

_MOST_WEIGHTS, _MOST_PIXELS = 30_000_000, 300**2


def names(rng: random.Random) -> Iterator[list[str]]:
    """Iterate over families in random order: some of the networks of each."""
    families: dict[str, list[str]] = {}
    for name in timm.list_models():
        if name not in TIMM:
            families.setdefault(name.split("_")[0], []).append(name)
    known = {name.split("_")[0] for name in TIMM}
    order = sorted(families)
    rng.shuffle(order)
    for family in sorted(order, key=lambda name: name in known):
        yield rng.sample(families[family], min(4, len(families[family])))


def options(rng: random.Random, module: nn.Module) -> dict[str, str]:
    """Return the names of random options of ``nncf.quantize``."""
    found: dict[str, str] = {}
    if is_transformer(module) and rng.random() < 0.7:
        found["model_type"] = "TRANSFORMER"
    if rng.random() < 0.6:
        found["preset"] = "MIXED"
    if rng.random() < 0.3:
        found["target_device"] = rng.choice(("ANY", "CPU", "GPU", "NPU"))
    if rng.random() < 0.3:
        found["overflow_fix"] = rng.choice(("DISABLE", "ENABLE"))
    for tensors in ("weights", "activations"):
        if rng.random() < 0.2:
            found[f"{tensors}_quantization_params"] = "one scale"
    return found


def save(name: str, rng: random.Random, folder: Path) -> bool:
    """Quantize a network. Return whether it was small enough for that."""
    import nncf
    from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, OverflowFix, QuantizationParameters

    module = timm.create_model(name)
    size = module.default_cfg.get("input_size", (3, 224, 224))
    weights = sum(parameter.numel() for parameter in module.parameters())
    if weights > _MOST_WEIGHTS or size[1] * size[2] > _MOST_PIXELS or size[0] != 3:
        return False
    torch.manual_seed(0)
    with_statistics(module, lambda: torch.randn(2, *size))
    chosen = options(rng, module)
    advanced: dict[str, Any] = {}
    if "overflow_fix" in chosen:
        advanced["overflow_fix"] = OverflowFix[chosen["overflow_fix"]]
    for key in chosen:
        if key.endswith("_params"):
            advanced[key] = QuantizationParameters(per_channel=False)
    enumerations = {
        "model_type": nncf.ModelType, "preset": nncf.QuantizationPreset, "target_device": nncf.TargetDevice,
    }  # fmt: skip
    given: dict[str, Any] = {key: enumeration[chosen[key]] for key, enumeration in enumerations.items() if key in chosen}
    given["advanced_parameters"] = AdvancedQuantizationParameters(**advanced)
    quantize(module, normal((1, *size), rng.choice((0, 0, 0.5))), folder, **given)
    (folder / "options.json").write_text(json.dumps(chosen))
    return True


def main() -> int:
    parser = argparse.ArgumentParser("benchmarks.nncf_samples", description=str(__doc__).partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    arguments = parser.parse_args()
    rng, count = random.Random(arguments.seed), 0
    for candidates in names(rng):
        if count == arguments.count:
            break
        for name in candidates:
            try:
                if not save(name, rng, arguments.folder / name):
                    continue
            except Exception as error:  # any exception of a library; another network of the family is tried
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                continue
            print(name, flush=True)
            count += 1
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
