"""Create docs/report.png: the page of a conversion of models/recommender with a wrong weight, rendered by Chromium.

python docs/report_picture.py   # with the extras validate, report and images, and chromium on the PATH
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from PIL import Image

from converters.openvino import convert

DOCS = Path(__file__).parent
MODEL = Path("models", "recommender", "model.xml")
SIZE = (1000, 1620)


def main() -> None:
    """Write the image."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("there is no chromium on the PATH")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wrong, page, picture = folder / "wrong.onnx", folder / "report.html", folder / "report.png"
        convert(DOCS.parent / MODEL, wrong)
        spoil(wrong)
        command = [sys.executable, "-m", "converters.cli", "validate", str(MODEL), str(wrong), "--report", str(page)]
        subprocess.run(
            [*command, "--runtime", "openvino", "--runtime", "native"], cwd=DOCS.parent, stdout=subprocess.DEVNULL
        )
        quiet = ("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync")
        subprocess.run(
            [
                *(chromium, "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-component-update", *quiet),
                *(f"--user-data-dir={folder / 'profile'}", f"--window-size={SIZE[0]},{SIZE[1]}"),
                *(f"--screenshot={picture}", page.as_uri()),
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        with Image.open(picture) as image:
            image.convert("RGB").quantize(64).save(DOCS / "report.png", optimize=True)


def spoil(path: Path) -> None:
    """Change a column of the weights of the second product."""
    model = onnx.load(path)
    _, node, *_ = (node for node in model.graph.node if node.op_type in ("Gemm", "MatMul"))
    for tensor in model.graph.initializer:
        if tensor.name == node.input[1]:
            weights = onnx.numpy_helper.to_array(tensor).copy()
            weights[0] += np.float32(0.02)
            tensor.CopyFrom(onnx.numpy_helper.from_array(weights, tensor.name))
    onnx.save(model, path)


if __name__ == "__main__":
    main()
