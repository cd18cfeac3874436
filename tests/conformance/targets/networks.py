"""The networks of the matrix: IR with static shapes, inputs, OpenVINO's outputs and the direct export."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.models import kept
from tests.conformance.models.from_torch import Imported, quiet
from tests.conformance.models.network import Network
from tests.conformance.models.table import NETWORKS
from tests.conformance.targets.reference import plugin, reference
from tests.locking import locked
from tests.processor import SATURATES

QUANTIZED = Path(__file__).parents[1] / "quantized" / "files"
COMPRESSED = Path(__file__).parents[1] / "compressed" / "files.zip"

DEPARTURE = "departure.txt"
"""The file with the departure of OpenVINO's plugin from the expected results, in a network's folder, if there is one."""

KEPT = [network.name for network in NETWORKS if network.kept]
"""Networks in the repository as IR."""


def find(name: str) -> Network | None:
    """Return the network of the table with a given name."""
    return next((network for network in NETWORKS if network.name == name), None)


def folder_of(name: str, root: Path) -> Path:
    """Return the folder to which `make` writes a network."""
    return root / name.replace(", ", "_").replace(" ", "_").replace("/", "_")


def make(name: str, root: Path) -> Path:
    """Write model.xml, inputs.npz, expected.npz and, for PyTorch modules, direct.onnx; return their folder."""
    folder = folder_of(name, root)
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not (folder / "expected.npz").exists():
            _make(name, folder)
    return folder


def _make(name: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.xml"
    import openvino as ov

    core = ov.Core()
    network = find(name)
    if network is None:
        arrays = _from_file(name, folder, path, core)
    else:
        arrays = network.runs()[-1]
        shapes: Any = {index: list(array.shape) for index, array in enumerate(arrays.values())}
        if network.kept:
            with tempfile.TemporaryDirectory() as temporary:
                model = core.read_model(kept.unpack(network, Path(temporary)))
                model.reshape(shapes)
                ov.save_model(model, path, compress_to_fp16=False)
        else:
            model = network.build(arrays)
            model.reshape(shapes)
            ov.save_model(model, path, compress_to_fp16=False)
            _export(network, arrays, folder / "direct.onnx")
    np.savez(folder / "inputs.npz", **arrays)
    given = list(arrays.values())
    if "/" in name:  # its results depend on rewrites of the plugin, which dynamic shapes prevent
        outputs, departure = plugin(path, given), ""
        if SATURATES and name.startswith("quantized/"):  # without VNNI, OpenVINO's sums of 8-bit integers saturate
            _save(folder / "specified.npz", plugin(path, given, LP_TRANSFORMS_MODE="NO"))
    else:
        outputs, departure = reference(path, given)
    if departure:
        (folder / DEPARTURE).write_text(departure)
    _save(folder / "expected.npz", outputs)


def _save(path: Path, arrays: Sequence[np.ndarray]) -> None:
    np.savez(path, **{str(index): array for index, array in enumerate(arrays)})


def _from_file(name: str, folder: Path, path: Path, core: Any) -> dict[str, np.ndarray]:
    """Prepare a quantized or compressed network with static shapes."""
    import openvino as ov

    kind, _, stem = name.partition("/")
    with tempfile.TemporaryDirectory() as temporary:
        archive = COMPRESSED if kind == "compressed" else QUANTIZED / f"{stem}.zip"
        with zipfile.ZipFile(archive) as file:
            file.extractall(temporary)
        xml = Path(temporary) / (f"{stem}.xml" if kind == "compressed" else "model.xml")
        model = core.read_model(xml)
        generator, arrays = np.random.default_rng(0), {}
        for index, port in enumerate(model.inputs):
            shape = [d.get_length() if d.is_static else 8 if index else 2 for d in port.partial_shape]
            arrays[port.any_name] = generator.standard_normal(shape).astype(port.element_type.to_dtype())
        model.reshape({index: list(array.shape) for index, array in enumerate(arrays.values())})
        ov.save_model(model, path, compress_to_fp16=False)
    return arrays


def _export(network: Network, arrays: dict[str, np.ndarray], path: Path) -> None:
    """Write PyTorch's own export at opset 17, or the reason for its failure."""
    import torch

    if not isinstance(network.build, Imported):
        return
    try:
        module, tensors = network.build.prepared(arrays)
        with torch.no_grad(), quiet():
            names = [f"input_{index}" for index in range(len(tensors))]
            torch.onnx.export(module, tensors, str(path), input_names=names, opset_version=17, dynamo=False)
    except Exception as error:  # any exception of the exporter is the result
        path.with_suffix(".txt").write_text(f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")
