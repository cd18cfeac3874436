"""Compare each network with Model API on all images, in ONNX Runtime and in onnxruntime-web under Node: results.json.

python -m tests.converters.model_api [NETWORK ...] && python -m docs.make
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import openvino as ov

from converters.openvino import convert
from tests.converters.model_api.compared import compared, in_onnxruntime
from tests.converters.model_api.networks import NETWORKS
from tests.converters.model_api.web import in_node, missing

RESULTS = Path(__file__).with_name("results.json")


def main(names: list[str]) -> None:
    """Compare the networks with these names, or all."""
    told: dict[str, Any] = json.loads(RESULTS.read_text()) if names and RESULTS.exists() else {}
    runs = {"onnxruntime": in_onnxruntime}
    if reason := missing():
        print(reason, file=sys.stderr)
    else:
        runs["onnxruntime-web"] = in_node
    for name in names or NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.xml")
            model = NETWORKS[name]()
            ov.save_model(model, path, compress_to_fp16=False)
            converted = convert(path, model_api="bgr").model
            row: dict[str, Any] = {"model_type": model.get_rt_info(["model_info", "model_type"]).astype(str)}
            for runtime, run in runs.items():
                found = compared(name, converted, run)
                iou = round(min(found.iou), 5) if found.iou else None
                row[runtime] = {"images": found.images, "labels": found.labels, "iou": iou, "wrong": found.wrong}
            told[name] = row
            print(name, row, flush=True)
    RESULTS.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
