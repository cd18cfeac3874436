"""Random networks of IR 2 to 7, compared with the Inference Engine.

::

    SPECOPS_INFERENCE_ENGINE=/path/to/python python -m tests.conformance.inference_engine.random --seed 1 --count 1000
    SPECOPS_INFERENCE_ENGINE=/path/to/python python -m tests.conformance.inference_engine.random --record
    SPECOPS_INFERENCE_ENGINE=/path/to/python python -m tests.conformance.inference_engine.random --model 4711

``--record`` stores the results of the sample that is part of pytest.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from lxml import etree

from converters.inference_engine.baseline import BaselineError, EngineProcess, python
from tests.conformance.inference_engine.case import Case
from tests.conformance.inference_engine.check import KERNELS, compare, converted
from tests.conformance.inference_engine.model import Net, Port

SAMPLE = Path(__file__).with_name("random.npz")
SAMPLES = 24
_MOST_ELEMENTS = 6000
_FUNCTIONS = (
    "Sigmoid",
    "TanH",
    "ELU",
    "Abs",
    "Exp",
    "Sin",
    "Cos",
    "Erf",
    "Softsign",
    "Softplus",
    "Floor",
    "Neg",
    "Sinh",
    "Atan",
)


def network(seed: int, number: int) -> Case:
    """Return the network with that number, of one to twelve layers."""
    rng = np.random.default_rng([seed, number])
    version = int(rng.choice([2, 3, 4, 5, 6, 6, 7, 7]))
    precision = "FP16" if rng.random() < 0.2 else "FP32"
    state = int(rng.integers(2**31))
    tolerance = 1e-4 if precision == "FP32" else 1e-3

    def make(net: Net) -> None:
        _Maker(net, np.random.default_rng(state)).network()

    return Case("random", str(number), make, version, precision, tolerance=tolerance)


class _Maker:
    """Adds random layers to a network."""

    def __init__(self, net: Net, rng: np.random.Generator) -> None:
        self.net, self.rng = net, rng
        self.values: list[Port] = []

    def network(self) -> None:
        for _ in range(int(self.rng.integers(1, 3))):
            rank = int(self.rng.choice([2, 3, 4, 4, 4, 4, 5]))
            if rank == 4:
                dims = (int(self.rng.choice([1, 1, 2])), self.pick(1, 9), self.pick(4, 11), self.pick(4, 11))
            else:
                dims = tuple(self.pick(1, 7) for _ in range(rank))
            self.values.append(self.net.input(*dims))
        wanted, tries = int(self.rng.integers(1, 13)), 0
        while wanted and tries < 200:
            tries += 1
            x = self.values[-1] if self.rng.random() < 0.7 else self.values[int(self.rng.integers(len(self.values)))]
            made = self.rng.choice(_LAYERS)(self, x)  # type: ignore[arg-type]
            if made is not None:
                wanted -= 1
                self.values += made if isinstance(made, list) else [made]

    def pick(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def numbers(self, *dims: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
        return self.rng.uniform(low, high, dims).astype(np.float32)

    def add(self, kind: str, inputs: list[Port], dims: tuple[int, ...], data: dict, **options) -> Port | None:
        if np.prod(dims) > _MOST_ELEMENTS or min(dims) < 1:
            return None
        return self.net.layer(kind, inputs, [dims], data, **options)

    def window(self, x: Port, kernel: list[int], strides: list[int], begin: list[int], end: list[int]) -> dict:
        """Return the attributes in the spelling of the version."""
        if self.net.version > 2 or len(kernel) != 2:
            return {"kernel": kernel, "strides": strides, "pads_begin": begin, "pads_end": end}
        names = ("kernel", "stride", "pad")
        data = {
            f"{name}-{axis}": v[i]
            for name, v in zip(names, (kernel, strides, begin), strict=True)
            for i, axis in ((0, "y"), (1, "x"))
        }
        return {**data, "pad-b": end[0], "pad-r": end[1]}

    def spatial(self, x: Port) -> tuple[list[int], list[int], list[int], list[int]]:
        rank = len(x.dims) - 2
        kernel = [self.pick(1, min(4, x.dims[2 + k] + 1)) for k in range(rank)]
        strides = [self.pick(1, 3) for _ in range(rank)]
        begin = [self.pick(0, kernel[k]) if self.rng.random() < 0.5 else 0 for k in range(rank)]
        end = [self.pick(0, kernel[k]) if self.rng.random() < 0.5 else 0 for k in range(rank)]
        return kernel, strides, begin, end

    def convolution(self, x: Port) -> Port | None:
        if len(x.dims) not in (4, 5) or (len(x.dims) == 5 and self.net.version < 3):
            return None
        kernel, strides, begin, end = self.spatial(x)
        channels = x.dims[1]
        group = (
            int(self.rng.choice([g for g in range(1, channels + 1) if channels % g == 0])) if self.rng.random() < 0.4 else 1
        )
        output = group * self.pick(1, 5)
        sizes = [(x.dims[2 + k] + begin[k] + end[k] - kernel[k]) // strides[k] + 1 for k in range(len(kernel))]
        blobs = {"weights": self.numbers(output, channels // group, *kernel) / np.sqrt(channels * np.prod(kernel) / group)}
        if self.rng.random() < 0.7:
            blobs["biases"] = self.numbers(output)
        data = {**self.window(x, kernel, strides, begin, end), "output": output, "group": group}
        return self.add(
            "Convolution", [x], (x.dims[0], output, *sizes), data, blobs=blobs, legacy_blobs=self.net.version == 2
        )

    def deconvolution(self, x: Port) -> Port | None:
        if len(x.dims) != 4:
            return None
        kernel = [self.pick(2, 4) for _ in range(2)]
        strides = [self.pick(1, 3) for _ in range(2)]
        begin, end = ([self.pick(0, 2) for _ in range(2)] for _ in range(2))
        output = self.pick(1, 5)
        sizes = [(x.dims[2 + k] - 1) * strides[k] + kernel[k] - begin[k] - end[k] for k in range(2)]
        blobs = {"weights": self.numbers(x.dims[1], output, *kernel) / np.sqrt(x.dims[1] * 2)}
        data = {**self.window(x, kernel, strides, begin, end), "output": output, "group": 1}
        return self.add("Deconvolution", [x], (x.dims[0], output, *sizes), data, blobs=blobs)

    def pooling(self, x: Port) -> Port | None:
        if len(x.dims) != 4:
            return None
        kernel, strides, begin, end = self.spatial(x)
        ceil = bool(self.rng.random() < 0.4)
        if ceil:
            begin = end = [0, 0]
        up = [s - 1 if ceil else 0 for s in strides]
        sizes = [(x.dims[2 + k] + begin[k] + end[k] - kernel[k] + up[k]) // strides[k] + 1 for k in range(2)]
        if any((sizes[k] - 1) * strides[k] >= x.dims[2 + k] + begin[k] for k in range(2)):
            return None
        data = {**self.window(x, kernel, strides, begin, end), "pool-method": str(self.rng.choice(["max", "avg"]))}
        data |= {"exclude-pad": str(self.rng.choice(["true", "false"])), "rounding_type": "ceil" if ceil else "floor"}
        return self.add("Pooling", [x], (*x.dims[:2], *sizes), data)

    def function(self, x: Port) -> Port | None:
        return self.add(str(self.rng.choice(_FUNCTIONS)), [x], x.dims, {})

    def relu(self, x: Port) -> Port | None:
        return self.add("ReLU", [x], x.dims, {"negative_slope": round(float(self.rng.choice([0.0, 0.1, 0.3])), 3)})

    def clamp(self, x: Port) -> Port | None:
        return self.add("Clamp", [x], x.dims, {"min": -0.5, "max": round(float(self.rng.uniform(0, 1)), 3)})

    def prelu(self, x: Port) -> Port | None:
        if len(x.dims) not in (2, 4):
            return None
        return self.add("PReLU", [x], x.dims, {"channel_shared": 0}, blobs={"weights": self.numbers(x.dims[1])})

    def power(self, x: Port) -> Port | None:
        data = {"power": int(self.rng.choice([1, 2, 3])), "scale": 0.5, "shift": round(float(self.rng.uniform(-1, 1)), 3)}
        return self.add("Power", [x], x.dims, data)

    def scale_shift(self, x: Port) -> Port | None:
        if len(x.dims) not in (2, 4):
            return None
        blobs = {"weights": self.numbers(x.dims[1]), "biases": self.numbers(x.dims[1])}
        return self.add("ScaleShift", [x], x.dims, {}, blobs=blobs)

    def batch_norm(self, x: Port) -> Port | None:
        if len(x.dims) != 4:
            return None
        blobs = {"weights": self.numbers(x.dims[1], low=0.5, high=2), "biases": self.numbers(x.dims[1])}
        return self.add("BatchNormalization", [x], x.dims, {"epsilon": 1e-3}, blobs=blobs)

    def normalization(self, x: Port) -> Port | None:
        if len(x.dims) != 4:
            return None
        kind = str(self.rng.choice(["Norm", "MVN", "GRN", "Normalize"]))
        if kind == "Norm":
            return self.add(
                kind,
                [x],
                x.dims,
                {"local-size": 3, "alpha": 0.2, "beta": 0.75, "k": 1, "region": str(self.rng.choice(["across", "same"]))},
            )
        if kind == "MVN":
            return self.add(kind, [x], x.dims, {"across_channels": self.pick(0, 2), "normalize_variance": 1, "eps": 0.01})
        if kind == "GRN":
            return self.add(kind, [x], x.dims, {"bias": 0.5})
        data = {"across_spatial": self.pick(0, 2), "channel_shared": 0, "eps": 0.01}
        return self.add(kind, [x], x.dims, data, blobs={"weights": self.numbers(x.dims[1])})

    def eltwise(self, x: Port) -> Port | None:
        same = [v for v in self.values if v.dims == x.dims]
        other = same[int(self.rng.integers(len(same)))]
        return self.add(
            "Eltwise", [x, other], x.dims, {"operation": str(self.rng.choice(["sum", "mul", "max", "sub", "min"]))}
        )

    def concat(self, x: Port) -> Port | None:
        if len(x.dims) < 2:
            return None
        axis = self.pick(1, len(x.dims))
        fitting = [
            v
            for v in self.values
            if len(v.dims) == len(x.dims) and v.dims[:axis] == x.dims[:axis] and v.dims[axis + 1 :] == x.dims[axis + 1 :]
        ]
        other = fitting[int(self.rng.integers(len(fitting)))]
        dims = (*x.dims[:axis], x.dims[axis] + other.dims[axis], *x.dims[axis + 1 :])
        return self.add("Concat", [x, other], dims, {"axis": axis})

    def split(self, x: Port) -> list[Port] | None:
        axis = self.pick(0, len(x.dims))
        if x.dims[axis] < 2:
            return None
        first = self.pick(1, x.dims[axis])
        parts = [(*x.dims[:axis], size, *x.dims[axis + 1 :]) for size in (first, x.dims[axis] - first)]
        return self.net.layer(str(self.rng.choice(["Split", "Slice"])), [x], parts, {"axis": axis})

    def crop(self, x: Port) -> Port | None:
        if len(x.dims) != 4:
            return None
        sizes = [self.pick(1, d + 1) for d in x.dims[1:]]
        offset = [self.pick(0, d - s + 1) for d, s in zip(x.dims[1:], sizes, strict=True)]
        return self.add("Crop", [x], (x.dims[0], *sizes), {"axis": (1, 2, 3), "offset": offset, "dim": sizes})

    def permute(self, x: Port) -> Port | None:
        order = [0, *(1 + self.rng.permutation(len(x.dims) - 1))]
        moved = [i for i in order if x.dims[i] > 1]
        if moved == sorted(moved):  # otherwise the Inference Engine reads wrong elements of a Split's parts
            return None
        return self.add("Permute", [x], tuple(x.dims[i] for i in order), {"order": [int(i) for i in order]})

    def reshape(self, x: Port) -> Port | None:
        rest = int(np.prod(x.dims[1:]))
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        first = int(self.rng.choice(divisors))
        choices = [(x.dims[0], rest), (x.dims[0], first, rest // first), (x.dims[0], first, rest // first, 1)]
        dims = choices[self.pick(0, 3)]
        if self.rng.random() < 0.5:
            return self.add("Reshape", [x], dims, {"dim": dims})
        return self.add("Flatten", [x], (x.dims[0], rest), {"axis": 1, "end_axis": -1})

    def fully_connected(self, x: Port) -> Port | None:
        if len(x.dims) not in (2, 4):
            return None
        size, outputs = int(np.prod(x.dims[1:])), self.pick(1, 9)
        blobs = {"weights": self.numbers(outputs, size) / np.sqrt(size), "biases": self.numbers(outputs)}
        return self.add("FullyConnected", [x], (x.dims[0], outputs), {"out-size": outputs}, blobs=blobs)

    def softmax(self, x: Port) -> Port | None:
        return self.add("SoftMax", [x], x.dims, {"axis": self.pick(1, len(x.dims))}) if len(x.dims) in (2, 4) else None

    def resample(self, x: Port) -> Port | None:
        if len(x.dims) != 4:
            return None
        kind = str(self.rng.choice(["Resample", "Interp"]))
        dims = (*x.dims[:2], x.dims[2] * 2, x.dims[3] * 2)
        if kind == "Resample":
            which = str(self.rng.choice(["NEAREST", "LINEAR"]))
            return self.add(kind, [x], dims, {"type": f"caffe.ResampleParameter.{which}", "antialias": 0, "factor": 2})
        data = {"pad_beg": 0, "pad_end": 0, "align_corners": self.pick(0, 2), "height": dims[2], "width": dims[3]}
        return self.add(kind, [x], dims, data)

    def tile(self, x: Port) -> Port | None:
        axis, tiles = self.pick(1, len(x.dims)) if len(x.dims) > 1 else 0, self.pick(2, 4)
        return self.add(
            "Tile", [x], tuple(d * tiles if k == axis else d for k, d in enumerate(x.dims)), {"axis": axis, "tiles": tiles}
        )

    def pad(self, x: Port) -> Port | None:
        if len(x.dims) != 4:
            return None
        begin, end = ([0, 0, self.pick(0, 3), self.pick(0, 3)] for _ in range(2))
        mode = str(self.rng.choice(["constant", "edge", "reflect", "symmetric"]))
        if min(x.dims[2:]) < 3:
            return None
        dims = tuple(d + b + e for d, b, e in zip(x.dims, begin, end, strict=True))
        return self.add("Pad", [x], dims, {"pads_begin": begin, "pads_end": end, "pad_mode": mode, "pad_value": 0.5})

    def shuffle(self, x: Port) -> Port | None:
        if len(x.dims) != 4 or x.dims[1] % 2:
            return None
        return self.add("ShuffleChannels", [x], x.dims, {"axis": 1, "group": 2})


_LAYERS: list[Callable[[_Maker, Port], object]] = [
    _Maker.convolution, _Maker.convolution, _Maker.convolution, _Maker.deconvolution, _Maker.pooling, _Maker.pooling,
    _Maker.function, _Maker.function, _Maker.relu, _Maker.relu, _Maker.clamp, _Maker.prelu, _Maker.power, _Maker.scale_shift,
    _Maker.batch_norm, _Maker.normalization, _Maker.eltwise, _Maker.eltwise, _Maker.concat, _Maker.split, _Maker.crop,
    _Maker.permute, _Maker.reshape, _Maker.fully_connected, _Maker.softmax, _Maker.resample, _Maker.tile, _Maker.pad,
    _Maker.shuffle,
]  # fmt: skip


def check(case: Case, engine: EngineProcess, folder: Path, answers: dict[str, np.ndarray] | None = None) -> str:
    """Return ``"agrees"``, or the difference."""
    net = case.net()
    xml, weights = net.save(folder)
    try:
        expected = engine.run(xml, weights, case.inputs(net))
    except BaselineError as error:
        return f"refused: {error}"
    if answers is not None:
        answers |= {f"{case.name}/{name}": value for name, value in expected.items()}
    if not all(np.isfinite(value).all() and np.abs(value).max(initial=0) < 1e6 for value in expected.values()):
        return "too large"
    (got,) = converted(case, xml, KERNELS[:1]).values()
    problem = compare(expected, got, case.tolerance)
    if problem and not isinstance(got, str) and _contradicts_itself(case, xml, engine, expected, got):
        return f"contradicts itself: {problem}"
    return problem or "agrees"


def _contradicts_itself(
    case: Case, xml: Path, engine: EngineProcess, expected: dict[str, np.ndarray], got: dict[str, np.ndarray]
) -> bool:
    """Whether the Inference Engine agrees with the converted model on a file with only the layers of one output.

    It computes some layers in place although their inputs have other consumers. Some layers after a Split read elements of
    another part.
    """
    whole, inputs = xml.read_bytes(), case.inputs(case.net())
    for name, value in expected.items():
        if compare({name: value}, {name: got[name]}, case.tolerance):
            alone = _alone(whole, name, xml, engine, inputs)
            wanted = {key: alone[key] for key in alone if key in got}
            if name not in wanted or compare(wanted, {key: got[key] for key in wanted}, case.tolerance):
                return False
    return True


def _alone(
    whole: bytes, name: str, xml: Path, engine: EngineProcess, inputs: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the outputs of a file with only the layers that one output depends on; parts of a Split become inputs."""
    cut, splits = _only(whole, name)
    feeds = dict(inputs)
    for split in splits:
        if split != name:
            parts = _alone(whole, split, xml, engine, inputs)
            feeds |= {f"part of {key}": parts[key] for key in parts if key.startswith(f"{split}.")}
    xml.write_bytes(cut)
    return engine.run(xml, xml.with_suffix(".bin"), feeds)


def _only(xml: bytes, name: str) -> tuple[bytes, list[str]]:
    """Return that file, and the names of the Splits whose parts are its inputs."""
    root = etree.fromstring(xml)
    layers = {layer.get("id"): layer for layer in root.iterfind("layers/layer")}
    edges = root.findall("edges/edge")
    numbers = {layer.get("name"): number for number, layer in layers.items()}
    first = numbers[name if name in numbers else name.rpartition(".")[0]]
    kept, queue, splits = set(), [first], []
    while queue:
        number = queue.pop()
        if number != first and layers[number].get("type") in ("Split", "Slice"):
            splits += [number] if number not in splits else []
            continue
        kept.add(number)
        queue += [edge.get("from-layer") for edge in edges if edge.get("to-layer") == number]
    for split in splits:
        for place, port in enumerate(layers[split].findall("output/port")):
            taken = [e for e in edges if (e.get("from-layer"), e.get("from-port")) == (split, port.get("id"))]
            taken = [edge for edge in taken if edge.get("to-layer") in kept]
            if taken:
                label = f"part of {layers[split].get('name')}.{place}"
                number = f"{split}00{place}"
                made = etree.SubElement(
                    root.find("layers"),
                    "layer",
                    id=number,
                    name=label,
                    type="Input",
                    precision=layers[split].get("precision"),
                )
                etree.SubElement(made, "output").append(copy.deepcopy(port))
                kept.add(number)
                for edge in taken:
                    edge.set("from-layer", number)
    for element in [*root.iterfind("layers/layer"), *edges]:
        if element.get("id", element.get("to-layer")) not in kept:
            element.getparent().remove(element)
    return etree.tostring(root), [str(layers[split].get("name")) for split in splits]


_KINDS = ("agrees", "refused", "too large", "contradicts itself")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.inference_engine.random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--model", type=int)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    executable = python()
    if executable is None:
        raise SystemExit("SPECOPS_INFERENCE_ENGINE has to name a Python that has opencv-python-inference-engine")
    numbers = range(given.first, given.first + given.count) if given.model is None else [given.model]
    seed, answers, kept = (0, {}, []) if given.record else (given.seed, None, [])
    counts: Counter[str] = Counter()
    with EngineProcess(executable) as engine:
        for number in range(10 * SAMPLES) if given.record else numbers:
            if given.record and len(kept) == SAMPLES:
                break
            found: dict[str, np.ndarray] = {}
            with tempfile.TemporaryDirectory() as folder:
                outcome = check(network(seed, number), engine, Path(folder), found)
            if outcome == "agrees" and given.record:
                answers |= found  # type: ignore[operator]
                kept.append(number)
            kind = outcome.partition(":")[0]
            counts[kind if kind in _KINDS else "differs"] += 1
            if kind not in _KINDS[:3]:
                print(f"{number}: {outcome}", flush=True)
    if given.record:
        np.savez_compressed(SAMPLE, **answers)  # type: ignore[arg-type]
    print(dict(counts))
    return int(counts["differs"] > 0)


if __name__ == "__main__":
    sys.exit(main())
