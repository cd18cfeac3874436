"""The storage of results in a small file: masks as bits, large arrays as samples."""

from __future__ import annotations

from typing import Any

import numpy as np

_MASKS = ("masks", "pred_mask", "hard_predictions")
_MOST = 1500


def stored(key: str, value: np.ndarray) -> dict[str, np.ndarray]:
    """Return the stored form of a result."""
    field = key.rpartition("/")[2]
    if field in _MASKS:
        return {key: np.packbits(value.astype(bool)), f"{key}#shape": np.array(value.shape)}
    if value.size > _MOST and field != "mask":
        return {key: sampled(value), f"{key}#shape": np.array(value.shape)}
    return {key: value.astype(np.uint8) if field == "mask" else value}


def sampled(value: np.ndarray) -> np.ndarray:
    """Return elements sampled from a large array."""
    return value.reshape(-1)[:: -(-value.size // _MOST)]


class Answers:
    """The recorded results, by network and image."""

    def __init__(self, path: Any) -> None:
        self._file = np.load(path)

    def of(self, name: str, number: int) -> dict[str, tuple[np.ndarray, tuple[int, ...] | None]]:
        """Return each field, with the shape of the complete array if it was sampled."""
        start, found = f"{name}/{number}/", {}
        for key in self._file.files:
            if key.startswith(start) and not key.endswith("#shape"):
                field, value, shape = key.removeprefix(start), self._file[key], None
                if f"{key}#shape" in self._file.files:
                    shape = tuple(self._file[f"{key}#shape"].tolist())
                if field in _MASKS and shape is not None:
                    value, shape = np.unpackbits(value, count=int(np.prod(shape))).reshape(shape), None
                found[field] = value, shape
        return found
