"""The networks that lie here as IR, compressed: every run of pytest converts them, with no library but OpenVINO."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

from tests.conformance.models.network import Network

FILES = Path(__file__).parent / "files"
_DATE = (1980, 1, 1, 0, 0, 0)


def archive(network: Network) -> Path:
    """Where the network's IR lies."""
    return FILES / f"{network.name.replace(', ', '_').replace(' ', '_')}.zip"


def unpack(network: Network, folder: Path) -> Path:
    """Write the network's IR into ``folder``; returns the .xml's path."""
    with zipfile.ZipFile(archive(network)) as file:
        file.extractall(folder)
    return folder / "model.xml"


def keep(network: Network) -> None:
    """Make the network anew and put it there."""
    import openvino as ov

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "model.xml"
        ov.save_model(network.model(), path)
        with zipfile.ZipFile(archive(network), "w") as file:
            for part in (path, path.with_suffix(".bin")):
                file.writestr(zipfile.ZipInfo(part.name, _DATE), part.read_bytes(), zipfile.ZIP_LZMA)
