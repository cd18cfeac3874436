"""The command ``specops``."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point: names the remedy where the command's own packages are not installed."""
    try:
        from converters.openvino.cli.app import app
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in ("typer", "rich", "lxml", "onnx_ir"):
            print(f'specops needs {error.name}: pip install "onnx-specops[convert]"', file=sys.stderr)
            raise SystemExit(2) from None
        raise
    app()
