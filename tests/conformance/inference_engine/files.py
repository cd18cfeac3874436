"""Compare conversions of IR files of versions 2 to 7 with the Inference Engine.

::

    SPECOPS_INFERENCE_ENGINE=/path/to/python python -m tests.conformance.inference_engine.files FOLDER

Files without a .bin get made-up weights: numbers around 0 that keep the values of the layers in bounds.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from lxml import etree

from converters.errors import ConversionError
from converters.inference_engine.baseline import BaselineError, EngineProcess, python
from converters.openvino import convert
from tests.conformance.inference_engine.check import KERNELS, compare, run

_TYPES = {"FP32": np.float32, "FP16": np.float16, "I32": np.int32, "I64": np.int64, "U8": np.uint8, "I8": np.int8}
_MOST = 1 << 30
_SELECTIONS = frozenset(("ArgMax", "DetectionOutput"))


def made_up(xml: Path) -> bytes:
    """Return weights for a file."""
    root = etree.parse(str(xml)).getroot()
    rng = np.random.default_rng(0)
    parts = []
    for layer in root.iter("layer"):
        blobs = [blob for tag in ("weights", "biases") for blob in layer.findall(tag)]
        blobs += [blob for parent in layer.findall("blobs") for blob in parent]
        parts += [(int(blob.get("offset", 0)), int(blob.get("size", 0)), layer, blob) for blob in blobs]
    end = max((offset + size for offset, size, *_ in parts), default=0)
    if end > _MOST:
        raise ValueError(f"{end} bytes of weights")
    data = np.zeros(end, np.uint8)
    limits = _limits(root)
    for offset, size, layer, blob in parts:
        kind = _TYPES.get(blob.get("precision") or layer.get("precision") or root.get("precision") or "FP32", np.float32)
        count = size // np.dtype(kind).itemsize
        values = _values(rng, count, layer, str(blob.tag))
        if layer.get("id") in limits:
            values = np.full(count, limits[layer.get("id")])
        data[offset : offset + count * np.dtype(kind).itemsize] = values.astype(kind).view(np.uint8)
    return data.tobytes()


def _limits(root: etree._Element) -> dict[str | None, float]:
    """Return numbers for the Const layers that are limits of Quantize layers, by layer id."""
    levels = {}
    for layer in root.iter("layer"):
        data = layer.find("data")
        if layer.get("type") in ("Quantize", "FakeQuantize") and data is not None:
            levels[layer.get("id")] = int(data.get("levels", 2))
    found: dict[str | None, float] = {}
    for edge in root.iter("edge"):
        to, port = edge.get("to-layer"), int(edge.get("to-port", 0))
        if to in levels and port:
            low = 0.0 if levels[to] == 2 else -1.0
            found[edge.get("from-layer")] = 1.0 if port == 4 or (port == 2 and levels[to] > 2) else low
    return found


def _values(rng: np.random.Generator, count: int, layer: etree._Element, name: str) -> np.ndarray:
    numbers = rng.standard_normal(count)
    kind = layer.get("type")
    if kind == "BatchNormalization" and name == "weights":
        return np.abs(numbers) + 0.5
    data = layer.find("data")
    outputs = 0 if data is None else int(data.get("output") or data.get("out-size") or data.get("hidden_size") or 0)
    if name == "weights" and outputs:
        return numbers / np.sqrt(max(count / outputs, 1.0))
    if kind == "ScaleShift" and name == "weights":
        return 0.5 + 0.2 * numbers
    return 0.1 * numbers


def check(xml: Path, engine: EngineProcess, folder: Path) -> str:
    """Return ``"agrees"``, or the difference."""
    place = folder / "net.xml"
    place.write_bytes(xml.read_bytes())
    weights = xml.with_suffix(".bin")
    try:
        place.with_suffix(".bin").write_bytes(weights.read_bytes() if weights.exists() else made_up(xml))
    except (ValueError, etree.XMLSyntaxError) as error:
        return f"no weights: {error}"
    return _compared(place, engine)


def _compared(place: Path, engine: EngineProcess, before: str = "") -> str:
    refusal = report = None
    try:
        report = convert(place, place.with_suffix(".onnx")).report
    except ConversionError as error:
        refusal = f"not converted: {error}"
    noted = " without <statistics>" if etree.parse(str(place)).find("statistics") is not None else ""
    try:
        feeds, expected = _expected(place, engine)
    except BaselineError as error:
        return f"rejected by both: {error}; {refusal}" if refusal else f"rejected by the Inference Engine: {error}"
    if report is None:
        return refusal or ""
    for kernels in KERNELS if report.custom_operators else KERNELS[:1]:
        try:
            got: dict[str, np.ndarray] | str = run(place.with_suffix(".onnx"), feeds, kernels)
        except Exception as error:  # ONNX Runtime raises many kinds of exceptions
            got = f"{type(error).__name__}: {error}"
        if problem := compare(expected, got if isinstance(got, str) else _in_order(got, expected)):
            if not before and (removed := _without_selections(place)):
                return _compared(place, engine, f" before {removed}")
            if not isinstance(got, str) and _differs_from_itself(place, engine, feeds, expected, _in_order(got, expected)):
                return f"agrees{noted} as the Inference Engine with itself, for inputs changed by 1e-6: {problem}"
            return f"differs ({kernels}): {problem}"
    return f"agrees{noted}{before}"


Arrays = dict[str, np.ndarray]


def _expected(place: Path, engine: EngineProcess) -> tuple[Arrays, Arrays]:
    """Return inputs, and the Inference Engine's results for them."""
    declared = engine.interface(place, place.with_suffix(".bin"))["inputs"]
    rng = np.random.default_rng(1)
    feeds = {name: rng.uniform(-1, 1, dims).astype(np.float32) for name, dims in declared.items()}
    for value in feeds.values():  # the size of an image, and its scale
        if value.ndim == 2 and value.shape[1] in (3, 4, 6):
            value[...] = np.array([300, 300, 1, 1, 1, 1][: value.shape[1]], np.float32)
    return feeds, engine.run(place, place.with_suffix(".bin"), feeds)


def _differs_from_itself(place: Path, engine: EngineProcess, feeds: Arrays, expected: Arrays, got: Arrays) -> bool:
    """Whether the Inference Engine's own results change by as much for inputs that differ in the last bits.

    A binary layer uses the sign of its input, and the choice of boxes the order of scores. Both may depend on the last bit.
    """
    if set(got) != set(expected) or any(got[name].shape != expected[name].shape for name in got):
        return False
    far = dict.fromkeys(expected, 0.0)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        changed = {
            name: (value * (1 + rng.uniform(-1e-6, 1e-6, value.shape))).astype(np.float32) if value.ndim > 2 else value
            for name, value in feeds.items()
        }
        other = _in_order(engine.run(place, place.with_suffix(".bin"), changed), expected)
        far = {name: max(most, _distance(other[name], expected[name])) for name, most in far.items()}
    return all(_distance(got[name], expected[name]) <= max(2 * far[name], 1e-4) for name in got)


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a.astype(np.float64) - b).max(initial=0))


def _without_selections(xml: Path) -> str:
    """Remove DetectionOutput and ArgMax layers with the layers after them, so that their inputs become outputs.

    With nearly equal scores, the last bit determines the selection.

    Returns:
        The types of the removed layers; ``""`` for none, or if nothing would be left.
    """
    root = etree.parse(str(xml)).getroot()
    chosen = {layer.get("id"): layer.get("type") for layer in root.iter("layer") if layer.get("type") in _SELECTIONS}
    removed, size = {*chosen}, 0
    while size < len(removed):
        size = len(removed)
        removed |= {edge.get("to-layer") for edge in root.iter("edge") if edge.get("from-layer") in removed}
    for element in [*root.iter("layer"), *root.iter("edge")]:
        if (element.get("id") in removed and element.tag == "layer") or element.get("to-layer") in removed:
            element.getparent().remove(element)
    if not removed or root.find("layers/layer") is None:
        return ""
    xml.write_bytes(etree.tostring(root))
    return " and ".join(sorted({kind or "" for kind in chosen.values()}))


def _in_order(got: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return detections in the Inference Engine's order, because made-up weights give many nearly equal scores."""
    ordered = {}
    for name, value in got.items():
        want = expected.get(name)
        if (
            want is not None
            and value.shape == want.shape
            and value.ndim == 4
            and (*value.shape[:2], value.shape[3]) == (1, 1, 7)
        ):
            rows, left = value.reshape(-1, 7), [*range(value.size // 7)]
            places = []
            for row in want.reshape(-1, 7):
                nearest = min(left, key=lambda place: float(np.abs(rows[place] - row).max()))
                left.remove(nearest)
                places.append(nearest)
            value = rows[places].reshape(value.shape)
        ordered[name] = value
    return ordered


def main(arguments: list[str]) -> int:
    executable = python()
    if executable is None or not arguments:
        raise SystemExit(__doc__)
    counts: Counter[str] = Counter()
    with EngineProcess(executable) as engine:
        for xml in sorted(Path(arguments[0]).rglob("*.xml")):
            if len(arguments) > 1 and arguments[1] not in xml.name:
                continue
            with tempfile.TemporaryDirectory() as folder:
                outcome = check(xml, engine, Path(folder))
            counts[outcome.partition(":")[0].partition(" (")[0]] += 1
            print(f"{xml.name}: {outcome}", flush=True)
    print(dict(counts))
    return counts["differs"] + counts["not converted"]


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
