"""The networks' IR in a folder with the inputs of its runs, so that each is built once."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from tests.conformance.models.network import Network


def place(network: Network, folder: Path) -> Path:
    """Return the .xml of a network in a folder of networks."""
    return folder / re.sub(r"[^\w.-]+", "_", network.name) / "model.xml"


def save(network: Network, folder: Path) -> Path:
    """Build a network and write its IR, and the arrays of its first run as ``model.npz`` and ``inputs.npz``.

    Arrays are stored by name, in the order of the model's inputs.

    ``python -m tests.conformance.random --near --networks FOLDER`` reads the former.
    """
    import openvino as ov

    path = place(network, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    ov.save_model(network.model(), path)
    for name in ("model.npz", "inputs.npz"):
        np.savez_compressed(path.with_name(name), **network.runs()[0])
    return path


def saved(network: Network, folder: Path) -> Path:
    """Return the .xml of a network in a folder of networks, building it if it is missing."""
    path = place(network, folder)
    return path if path.with_name("inputs.npz").exists() else save(network, folder)
