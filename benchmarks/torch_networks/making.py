"""Networks by name, and the command line of the modules that write files of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import nn

from benchmarks.torch_networks import detection, images, sequences, volumes
from benchmarks.torch_networks.libraries import FILMS, TIMM, TORCHVISION
from benchmarks.torch_networks.parts import Input, Made, Tokens

BLOCKS = {**detection.NETWORKS, **images.NETWORKS, **volumes.NETWORKS, **sequences.NETWORKS}
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm)


def random_input(kind: Input, batch: int | None = None) -> torch.Tensor:
    """Return random numbers for an input, by default with its own batch."""
    shape = kind.shape if isinstance(kind, Tokens) else kind
    size = (batch or shape[0], *shape[1:])
    return torch.randint(0, kind.count, size) if isinstance(kind, Tokens) else torch.randn(size)


def made(name: str) -> Made:
    """Return the network with a given name, with statistics of random data, and the shape of its input."""
    torch.manual_seed(0)
    module, kind = _built(name)
    with_statistics(module, lambda: random_input(kind, 2))
    return module, kind


def with_statistics(module: nn.Module, draw: Callable[[], torch.Tensor]) -> None:
    """Set random scales of normalizations, and statistics of random inputs, like those of a trained network."""
    for part in module.modules():
        if isinstance(part, _NORMS) and part.weight is not None:
            nn.init.uniform_(part.weight, 0.8, 1.2)
            if part.bias is not None:
                nn.init.normal_(part.bias, 0, 0.1)
    module.train()
    with torch.no_grad():
        for _ in range(3):
            module(draw())
    module.eval()


def _built(name: str) -> Made:
    if name in TIMM:
        import timm

        return timm.create_model(name), (1, 3, TIMM[name], TIMM[name])
    if name not in TORCHVISION:
        return BLOCKS[name]()
    import torchvision

    size = TORCHVISION[name]
    if name in FILMS:
        return torchvision.models.get_model(name, weights=None), (1, 3, FILMS[name], size, size)
    if name.endswith("mobilenet_v3_large"):
        network = torchvision.models.get_model(name, weights=None, weights_backbone=None)

        class Segmentation(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.network = network

            def forward(self, x):
                return self.network(x)["out"]

        return Segmentation(), (1, 3, size, size)
    module = torchvision.models.get_model(name, weights=None)
    if hasattr(module, "aux_logits"):
        module.aux_logits = False
        module.aux1 = module.aux2 = None
    return module, (1, 3, size, size)


def make_files(module: str, description: str, names: Iterable[str], save: Callable[[str, Path], None]) -> int:
    """Create the files that the command line selects: a folder with ``model.xml`` for each network.

    Args:
        module: the module that is run.
        description: the description of the command.
        names: the folders that it can create.
        save: writes the file of a name into a folder.
    """
    parser = argparse.ArgumentParser(module, description=description)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[""], metavar="PART", help="networks whose names contain one of these")
    options = parser.parse_args()
    for name in names:
        folder = options.folder / name
        if (folder / "model.xml").exists() or not any(part in name for part in options.only):
            continue
        try:
            save(name, folder)
            print(name, flush=True)
        except Exception as error:  # any exception of a library; the other files are still created
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return 0
