"""Opening of an IR in files or memory, or of an ``openvino.Model``."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from converters.openvino.reader.graph import Model
from converters.openvino.reader.read import read

if TYPE_CHECKING:
    import openvino


@contextmanager
def opened(
    model: str | Path | bytes | openvino.Model, bin_path: str | Path | bytes | None = None, *, without_weights: bool = False
) -> Iterator[Model]:
    """Open the typed graph of an IR. An IR in memory and an ``openvino.Model`` are written to temporary files.

    Raises:
        MalformedError: a file cannot be read or is not an IR.
        ValueError: a .bin is given with an ``openvino.Model``.
    """
    if isinstance(model, (str, Path)):
        if isinstance(bin_path, (bytes, bytearray, memoryview)):
            raise ValueError("the weights of an IR in a file must be in a file too: bin must be a path")
        yield read(model, bin_path, without_weights=without_weights)
        return
    if isinstance(model, (bytes, bytearray, memoryview)):
        with tempfile.TemporaryDirectory(prefix="specops-") as folder:
            path = Path(folder) / "model.xml"
            path.write_bytes(model)
            if isinstance(bin_path, (bytes, bytearray, memoryview)):
                path.with_suffix(".bin").write_bytes(bin_path)
                bin_path = None
            yield read(path, bin_path, without_weights=without_weights, name="model")
        return
    if bin_path is not None:
        raise ValueError("a .bin belongs to an .xml; an openvino.Model contains its weights")
    import openvino

    with tempfile.TemporaryDirectory(prefix="specops-") as folder:
        path = Path(folder) / "model.xml"
        openvino.serialize(model, str(path), str(path.with_suffix(".bin")))
        # Problems name the model, because the file is temporary.
        yield read(path, name=model.friendly_name)


def is_in_memory(model: object) -> bool:
    """Return whether the model is in memory, without files to refer to."""
    return not isinstance(model, (str, Path))
