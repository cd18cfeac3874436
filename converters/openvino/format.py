"""OpenVINO IR as a source format. The reader and the rules are loaded when a model is opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from converters.inspection import Inspection
    from converters.openvino.coverage.table import Coverage
    from converters.openvino.source import OpenVINOSource

_SNIFFED = 4096  # bytes of a file that are searched for <net


class OpenVINOFormat:
    """OpenVINO IR in files or in memory, or an ``openvino.Model``; see `converters.source.Format`."""

    name = "OpenVINO IR (.xml, with the .bin in the same folder)"
    suffixes = (".xml",)

    def load(self) -> None:
        """Register the rules of OpenVINO's operations."""
        from converters.openvino import walk  # noqa: F401

    def recognizes(self, model: object) -> bool:
        """Return whether a model is a file with the root of an IR, the bytes of one, or an ``openvino.Model``."""
        if isinstance(model, (bytes, bytearray, memoryview)):
            return b"<net" in bytes(model[:_SNIFFED])
        if not isinstance(model, (str, Path)):
            return type(model).__module__.partition(".")[0] == "openvino"
        try:
            with open(model, "rb") as file:
                return b"<net" in file.read(_SNIFFED)
        except (OSError, ValueError):
            return False

    @contextmanager
    def open(
        self, model: Any, bin: str | Path | bytes | None = None, *, without_weights: bool = False
    ) -> Iterator[OpenVINOSource]:
        """Open the typed graph of an IR; see `converters.openvino.opened.opened`."""
        from converters.openvino.opened import is_in_memory, opened
        from converters.openvino.source import OpenVINOSource

        with opened(model, bin, without_weights=without_weights) as graph:
            yield OpenVINOSource(graph, in_memory=is_in_memory(model), own_bin=bin is None)

    def inspect(self, path: Path, bin: str | Path | None = None) -> Inspection:
        """See `converters.openvino.inspection.inspect`."""
        from converters.openvino.inspection import inspect

        return inspect(path, bin)

    def coverage(self) -> tuple[str, Sequence[Coverage]]:
        """See `converters.openvino.coverage.table`."""
        from converters.openvino.coverage.table import coverage, openvino_version

        return f"OpenVINO {openvino_version()}", coverage()


FORMAT = OpenVINOFormat()
