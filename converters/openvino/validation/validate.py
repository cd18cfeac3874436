"""Cross-runtime validation of an IR and its ONNX model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

import onnx_specops
from onnx_specops.domain import find
from converters.openvino.conversion import convert
from converters.openvino.errors import ConversionError, Problem
from converters.openvino.graph import Model
from converters.openvino.ir import read
from converters.openvino.validation.compare import Comparison, Tolerance, compare
from converters.openvino.validation.inputs import InputSpec, load_inputs, positional, random_inputs
from converters.openvino.validation.openvino_process import OpenVINOError, run_openvino
from converters.openvino.validation.runtimes import RUNTIMES, run, unavailable

OPENVINO = "openvino"
NAMES = {OPENVINO: "OpenVINO, CPU"} | RUNTIMES


@dataclass
class RuntimeResult:
    """What one runtime did with the model.

    Attributes:
        runtime: ``"openvino"``, ``"native"``, ``"python"``, ``"none"`` or ``"reference"``.
        skipped: why it did not run, where it cannot run here or need not.
        error: what it raised.
        seconds: the time of one inference.
        outputs: output name -> how it compares with the baseline's.
    """

    runtime: str
    skipped: str = ""
    error: str = ""
    seconds: float | None = None
    outputs: dict[str, Comparison] = field(default_factory=dict)

    @property
    def agrees(self) -> bool:
        """Whether nothing that ran differs."""
        return not self.error and all(comparison.agrees for comparison in self.outputs.values())


@dataclass(frozen=True)
class LayerDifference:
    """The first layer, in the graph's order, whose output parts from the baseline's."""

    runtime: str
    layer_id: int
    layer_name: str
    layer_type: str
    line: int
    output: int
    comparison: Comparison


@dataclass
class Validation:
    """The result of `validate`.

    Attributes:
        path: the IR.
        baseline: the runtime that the others are compared with: OpenVINO, or the first that ran where it is not there.
        results: every runtime's result, the baseline's first.
        first_differences: with ``per_layer``: for each runtime that differs the first layer where it does.
        layers_compared: with ``per_layer``: how many layer outputs could be compared.
    """

    path: Path
    baseline: str
    results: list[RuntimeResult]
    first_differences: list[LayerDifference] = field(default_factory=list)
    layers_compared: int = 0

    @property
    def agrees(self) -> bool:
        """Whether at least two runtimes ran and none differs or failed."""
        ran = [result for result in self.results if not result.skipped]
        return len(ran) > 1 and all(result.agrees for result in ran)


def validate(
    model_path: str | Path,
    onnx_path: str | Path | None = None,
    *,
    inputs: str | Path | Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
    tolerance: Tolerance = Tolerance(),
    per_layer: bool = False,
    runtimes: Sequence[str] = tuple(NAMES),
    progress: Callable[[str], None] = lambda step: None,
) -> Validation:
    """Run the same inputs through every runtime that is installed and compare the outputs.

    Args:
        model_path: the IR's .xml.
        onnx_path: its conversion; converted anew where ``None``.
        inputs: an .npz file or arrays by input name; by default ``inputs.npz`` beside the .xml, else random ones.
        seed: for the random inputs.
        tolerance: how far floats may part.
        per_layer: compare every layer's output too, and name the first that differs.
        runtimes: which of ``"openvino"``, ``"native"``, ``"python"``, ``"none"``, ``"reference"`` to run.
        progress: called with each step's name.

    Raises:
        ConversionError: when the IR cannot be converted.
        ValueError: when the inputs do not fit the model.
    """
    path = Path(model_path)
    with tempfile.TemporaryDirectory(prefix="specops-") as folder:
        progress("converting")
        source = read(path)
        target = Path(onnx_path) if onnx_path is not None else Path(folder) / "model.onnx"
        values: dict[tuple[int, int], str] = {}
        if onnx_path is None or per_layer:
            converted = convert(path, target if onnx_path is None else None)
            values = converted.report.values
        proto = onnx.load(target, load_external_data=False)
        specs = _specs(proto)
        arrays = _inputs(inputs, path, specs, seed)
        names = [output.name for output in proto.graph.output]
        exposed = _exposed_layers(source, values, proto) if per_layer else []
        if exposed:
            target = _with_outputs(target, proto, [values[layer_id, index] for layer_id, _, index in exposed])
        custom = {node.op_type for node in _all_nodes(proto.graph) if node.domain == onnx_specops.DOMAIN}
        without_body = sorted(custom - {f.name for f in proto.functions if f.domain == onnx_specops.DOMAIN})
        random = _random_values(proto)
        wanted = names + [values[layer_id, index] for layer_id, _, index in exposed]

        outcomes: dict[str, tuple[RuntimeResult, dict[str, np.ndarray]]] = {}
        for runtime in NAMES:
            if runtime not in runtimes:
                continue
            progress(NAMES[runtime])
            if runtime == OPENVINO:
                outcomes[runtime] = _openvino(path, positional(specs, arrays), names, exposed, values)
            else:
                outcomes[runtime] = _onnx(runtime, target, arrays, wanted, bool(custom), without_body)
        if onnx_path is not None and target != Path(onnx_path):
            target.unlink()
    return _compared(path, source, names, exposed, values, outcomes, random, tolerance)


def _openvino(
    path: Path,
    arrays: list[np.ndarray],
    names: list[str],
    exposed: list[tuple[int, str, int]],
    values: Mapping[tuple[int, int], str],
) -> tuple[RuntimeResult, dict[str, np.ndarray]]:
    result = RuntimeResult(OPENVINO)
    try:
        outputs, layer_values, result.seconds = run_openvino(path, arrays, exposed)
    except ModuleNotFoundError:
        result.skipped = 'openvino is not installed: pip install "onnx-specops[openvino]"'
        return result, {}
    except OpenVINOError as error:
        result.error = str(error)
        return result, {}
    arrays_by_name = dict(zip(names, outputs, strict=True))
    for (layer_id, _, index), value in zip(exposed, layer_values, strict=True):
        if value is not None:
            arrays_by_name[values[layer_id, index]] = value
    return result, arrays_by_name


def _onnx(
    runtime: str, model: Path, feeds: Mapping[str, np.ndarray], wanted: list[str], custom: bool, without_body: list[str]
) -> tuple[RuntimeResult, dict[str, np.ndarray]]:
    result = RuntimeResult(runtime, skipped=unavailable(runtime, custom, without_body))
    if result.skipped:
        return result, {}
    try:
        arrays, result.seconds = run(runtime, model, feeds, wanted)
    except Exception as error:
        result.error = f"{type(error).__name__}: {error}"
        return result, {}
    return result, arrays


def _compared(
    path: Path,
    source: Model,
    names: list[str],
    exposed: list[tuple[int, str, int]],
    values: Mapping[tuple[int, int], str],
    outcomes: Mapping[str, tuple[RuntimeResult, dict[str, np.ndarray]]],
    random: set[str],
    tolerance: Tolerance,
) -> Validation:
    ran = [runtime for runtime, (_, arrays) in outcomes.items() if arrays]
    baseline = ran[0] if ran else OPENVINO
    expected = outcomes[baseline][1] if ran else {}
    validation = Validation(path, baseline, [result for result, _ in outcomes.values()])
    layers = {layer.id: layer for layer in source.layers}
    for runtime, (result, arrays) in outcomes.items():
        unequal = random if {runtime, baseline} & {"none", "reference"} and runtime != baseline else set()
        for name in names:
            if name in arrays and name in expected:
                result.outputs[name] = compare(arrays[name], expected[name], tolerance, random=name in unequal)
        found = False
        for layer_id, _, index in exposed:
            name = values[layer_id, index]
            if runtime == baseline or name not in arrays or name not in expected:
                continue
            if runtime == ran[1]:
                validation.layers_compared += 1
            comparison = compare(arrays[name], expected[name], tolerance, random=name in unequal)
            if not comparison.agrees and not found:
                layer = layers[layer_id]
                validation.first_differences.append(
                    LayerDifference(runtime, layer_id, layer.name, layer.type, layer.line, index, comparison)
                )
                found = True
    return validation


def _specs(proto: onnx.ModelProto) -> list[InputSpec]:
    specs = []
    for value in proto.graph.input:
        tensor = value.type.tensor_type
        dims = tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)
        specs.append(InputSpec(value.name, onnx.TensorProto.DataType.Name(tensor.elem_type).lower(), dims))
    return specs


def _inputs(
    inputs: str | Path | Mapping[str, np.ndarray] | None, path: Path, specs: Sequence[InputSpec], seed: int
) -> dict[str, np.ndarray]:
    if isinstance(inputs, Mapping):
        return dict(inputs)
    if inputs is not None:
        return load_inputs(inputs, specs)
    beside = path.with_name("inputs.npz")
    return load_inputs(beside, specs) if beside.is_file() else random_inputs(specs, seed)


def _exposed_layers(
    source: Model, values: Mapping[tuple[int, int], str], proto: onnx.ModelProto
) -> list[tuple[int, str, int]]:
    """The layers' outputs that the ONNX model holds by name: ``(layer id, friendly name, output index)``, in order."""
    known = {name for node in proto.graph.node for name in node.output}
    return [
        (layer.id, layer.name, port.index)
        for layer in source.layers
        if layer.type not in ("Parameter", "Const", "Result")
        for port in layer.outputs
        if values.get((layer.id, port.index)) in known
    ]


def _with_outputs(model: Path, proto: onnx.ModelProto, names: Sequence[str]) -> Path:
    """A copy of the model, beside it, that hands out the named values too."""
    extended = onnx.ModelProto()
    extended.CopyFrom(proto)
    present = {output.name for output in extended.graph.output}
    for name in dict.fromkeys(names):
        if name not in present:
            extended.graph.output.append(onnx.ValueInfoProto(name=name))
    target = model.with_name(f".{model.stem}.per-layer.onnx")
    target.write_bytes(extended.SerializeToString())
    return target


def _all_nodes(graph: onnx.GraphProto):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _all_nodes(attribute.g)


_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}


def _random_values(proto: onnx.ModelProto) -> set[str]:
    """The values that depend on numbers which bodies draw otherwise than kernels."""
    tainted: set[str] = set()
    for node in proto.graph.node:
        inner = list(_all_nodes(onnx.GraphProto(node=[node])))
        draws = any(
            find(n.op_type).random_body if n.domain == onnx_specops.DOMAIN else n.op_type in _RANDOM
            for n in inner
        )
        if draws or any(name in tainted for n in inner for name in n.input):
            tainted.update(node.output)
    return tainted
