"""The metadata of an IR as names and texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from converters.metadata_keys import LAYOUT
from converters.openvino.reader import ir10
from converters.openvino.reader.graph import InputPort, Model, OutputPort


def information(source: Model) -> dict[str, str]:
    """Return the run-time information, or the meta data of early files. Nested names are joined by a blank (``model_info
    model_type``).
    """
    return dict(_flat(ir10.run_time_information(source)))


def _flat(told: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in told.items():
        key = f"{path} {name}" if path else name
        if isinstance(value, Mapping):
            yield from _flat(value, key)
        elif isinstance(value, list):  # a repeated name
            yield from _flat({str(place): item for place, item in enumerate(value)}, key)
        else:
            yield key, str(value)


def layout(*ports: InputPort | OutputPort) -> str:
    """Return the first layout in the file for these ports, such as ``[N,C,H,W]``, or an empty text."""
    for port in ports:
        found = port.rt_info.get(LAYOUT)
        text = found.get(LAYOUT) if isinstance(found, dict) else None
        if text and isinstance(text, str):
            return text
    return ""
