"""The networks' IR in a folder, each with the inputs of its runs: what takes long to make is made once."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from tests.conformance.models.network import Network


def place(network: Network, folder: Path) -> Path:
    """The .xml of a network in a folder of networks."""
    return folder / re.sub(r"[^\w.-]+", "_", network.name) / "model.xml"


def save(network: Network, folder: Path) -> Path:
    """Make a network anew and write its IR, and as ``model.npz`` and ``inputs.npz`` the arrays of its first run, by name, in
    the order of the model's inputs.

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
    """The .xml of a network in a folder of networks, where it is made if it is missing."""
    path = place(network, folder)
    return path if path.with_name("inputs.npz").exists() else save(network, folder)
