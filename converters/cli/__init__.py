"""The command ``specops``."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point: names the remedy where the command's own packages are not installed."""
    try:
        from converters.cli.app import app
    except ModuleNotFoundError as error:
        from onnx_specops.runtime.errors import as_missing_extra

        missing = as_missing_extra(error, "specops")
        if missing is None:
            raise
        print(f"error: {missing}", file=sys.stderr)
        raise SystemExit(2) from None
    app()
