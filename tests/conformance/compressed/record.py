"""Write files.zip: a small network in every compression of NNCF, with the outputs of OpenVINO's CPU plugin.

    python -m tests.conformance.compressed.record     # with openvino and nncf

The network consists of an embedding and two matrix multiplications, one of them with a transposed matrix. Its outputs are
recorded with float activations (``DYNAMIC_QUANTIZATION_GROUP_SIZE=0``) and with default settings.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FILES = Path(__file__).with_name("files.zip")
ROWS, COLUMNS = 96, 256
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
SHIPPED = {"INFERENCE_PRECISION_HINT": "f32"}


def network() -> Any:
    """Build the network; the rows of its matrices repeat, for a small archive."""
    import openvino as ov
    from openvino import opset13 as ops

    rng = np.random.default_rng(0)

    def matrix() -> Any:
        few = rng.standard_normal((6, COLUMNS)).astype(np.float32)
        return ops.constant(few[np.arange(ROWS) * 7 % 6] * np.float32(0.25))

    ids = ops.parameter([-1, -1], np.int64, name="ids")
    rows = ops.gather(matrix(), ids, np.int64(0))
    hidden = ops.matmul(rows, matrix(), False, True)
    return ov.Model([ops.matmul(hidden, matrix(), False, False)], [ids])


def compressions() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every mode, with groups if it supports them and, for the common modes, without."""
    import nncf

    modes = nncf.CompressWeightsMode
    # (The adaptive codebook has the form of the codebook, and NNCF 3.4 requires a data set for it.)
    for mode in (modes.INT8_SYM, modes.INT8_ASYM):
        yield mode.value, {"mode": mode}
    grouped = [mode for mode in modes if mode not in (modes.INT8_SYM, modes.INT8_ASYM, modes.ADAPTIVE_CODEBOOK)]
    for mode in grouped:
        size = 16 if mode.value == "nvfp4" else 32
        more = nncf.AdvancedCompressionParameters()
        if mode is modes.CODEBOOK:
            more.codebook = np.linspace(-1, 1, 16).astype(np.float16)
        yield mode.value, {"mode": mode, "ratio": 1.0, "all_layers": True, "group_size": size, "advanced_parameters": more}
    for mode in (modes.INT4_SYM, modes.INT4_ASYM, modes.NF4):
        yield f"{mode.value}_channel", {"mode": mode, "ratio": 1.0, "all_layers": True, "group_size": -1}


def main() -> None:
    import nncf
    import openvino as ov

    core = ov.Core()
    ids = np.random.default_rng(1).integers(0, ROWS, (2, 7))
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(FILES, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
    ):
        path = Path(folder) / "model.xml"

        def add(name: str, model: Any, halves: bool = False) -> None:
            ov.save_model(model, path, compress_to_fp16=halves)
            written = core.read_model(path)
            outputs = {
                key: next(iter(core.compile_model(written, "CPU", settings)({"ids": ids}).values()))
                for key, settings in (("exact", EXACT), ("shipped", SHIPPED))
            }
            buffer = io.BytesIO()
            np.savez_compressed(buffer, ids=ids, **outputs)
            for suffix, data in (
                (".xml", path.read_bytes()), (".bin", path.with_suffix(".bin").read_bytes()), (".npz", buffer.getvalue())
            ):  # fmt: skip
                archive.writestr(zipfile.ZipInfo(name + suffix), data, zipfile.ZIP_DEFLATED)
            print(name)

        add("f16", network(), halves=True)
        for name, settings in compressions():
            try:
                add(name, nncf.compress_weights(network(), **settings))
            except nncf.ValidationError as error:
                print(f"{name}: NNCF refuses: {error}")


if __name__ == "__main__":
    main()
