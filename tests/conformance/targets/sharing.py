"""Files that several drivers of the matrix write at the same time."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.locking import locked


def add_results(path: Path, found: Mapping[str, Any]) -> dict[str, Any]:
    """Add nested results to those in a JSON file, and return all. Results that other processes added stay."""
    with locked(path.with_suffix(".lock")):
        results = json.loads(path.read_text()) if path.exists() else {}
        _merge(results, found)
        written = path.with_suffix(".new")
        written.write_text(json.dumps(results, indent=1, sort_keys=True))
        os.replace(written, path)
    return results


def _merge(results: dict[str, Any], found: Mapping[str, Any]) -> None:
    for key, value in found.items():
        if isinstance(value, Mapping):
            _merge(results.setdefault(key, {}), value)
        else:
            results[key] = value
