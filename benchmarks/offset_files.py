"""Create copies of quantized IR files in which zero is between two levels: the limits of each FakeQuantize are moved by a
fraction of a level.

    python -m benchmarks.offset_files SOURCE FOLDER     # every model.xml in a folder of SOURCE, as nncf_files makes them
    python -m benchmarks.offset_files SOURCE FOLDER --only yolo resnet

Quantization tools choose limits for which zero is a level. In files with learned, rounded or edited limits, zero may be
between two levels. Requires openvino.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

_MOST = 0.45
"""The largest distance that limits are moved, in levels."""


def move_limits(source: Path, to: Path) -> int:
    """Write a copy of an IR whose activations have other limits. Return the number of FakeQuantize layers that changed.

    Limits that are equal in the source stay equal, as layers that share a scale require.
    """
    import openvino as ov
    from openvino import opset13 as ops

    model, count = ov.Core().read_model(source), 0
    for node in model.get_ordered_ops():
        if node.get_type_name() != "FakeQuantize":
            continue
        data, *limits = (node.input_value(i).get_node() for i in range(5))
        if data.get_type_name() == "Constant" or any(limit.get_type_name() != "Constant" for limit in limits):
            continue
        low, high = (np.array(limit.get_data(), np.float32) for limit in limits[:2])
        part = np.random.default_rng(int(abs(low.reshape(-1)[0]) * 1e6)).uniform(-_MOST, _MOST)
        step = (high - low) / (node.get_attributes()["levels"] - 1)
        for i, limit in enumerate((low, high) * 2, 1):
            node.input(i).replace_source_output(ops.constant((limit + part * step).astype(np.float32)).output(0))
        count += 1
    to.parent.mkdir(parents=True, exist_ok=True)
    ov.save_model(model, to, compress_to_fp16=False)
    return count


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks.offset_files", description=str(__doc__).partition("\n")[0])
    parser.add_argument("source", type=Path, help="a folder of folders with model.xml")
    parser.add_argument("folder", type=Path, help="where the copies go")
    parser.add_argument("--only", nargs="+", default=[""], metavar="PART", help="networks whose names contain one of these")
    options = parser.parse_args()
    for source in sorted(options.source.glob("*/model.xml")):
        if any(part in source.parent.name for part in options.only):
            print(source.parent.name, move_limits(source, options.folder / source.parent.name / source.name))


if __name__ == "__main__":
    main()
