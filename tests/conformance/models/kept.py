"""Networks that are stored as compressed IR: every pytest run converts them, with no library except OpenVINO."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

from tests.conformance.models.network import Network

FILES = Path(__file__).parent / "files"
_DATE = (1980, 1, 1, 0, 0, 0)


def archive(network: Network) -> Path:
    """Return the path of the network's IR."""
    return FILES / f"{network.name.replace(', ', '_').replace(' ', '_')}.zip"


def unpack(network: Network, folder: Path) -> Path:
    """Write the network's IR into ``folder``; return the path of the .xml."""
    with zipfile.ZipFile(archive(network)) as file:
        file.extractall(folder)
    return folder / "model.xml"


def keep(network: Network) -> None:
    """Build the network and store it."""
    import openvino as ov

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "model.xml"
        ov.save_model(network.model(), path)
        with zipfile.ZipFile(archive(network), "w") as file:
            for part in (path, path.with_suffix(".bin")):
                file.writestr(zipfile.ZipInfo(part.name, _DATE), part.read_bytes(), zipfile.ZIP_LZMA)
