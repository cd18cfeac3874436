"""Create the networks: ``python -m tests.conformance.quantized.record [NAME...]``, with NNCF and PyTorch."""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path

FILES = Path(__file__).parent / "files"
_DATE = (1980, 1, 1, 0, 0, 0)


def unpack(name: str, folder: Path) -> Path:
    """Write a network's IR into ``folder``; return the path of the .xml."""
    with zipfile.ZipFile(FILES / f"{name}.zip") as file:
        file.extractall(folder)
    return folder / "model.xml"


def main(names: list[str]) -> None:
    """Write the networks' files."""
    import openvino as ov

    from tests.conformance.quantized.networks import MODELS

    for name in names or list(MODELS):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.xml"
            ov.save_model(MODELS[name](), path)
            with zipfile.ZipFile(FILES / f"{name}.zip", "w") as file:
                for part in (path, path.with_suffix(".bin")):
                    file.writestr(zipfile.ZipInfo(part.name, _DATE), part.read_bytes(), zipfile.ZIP_LZMA)
        print(name, (FILES / f"{name}.zip").stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
