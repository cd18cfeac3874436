"""Cases built with OpenVINO's Python API, from a function that creates the layer and a description of each input."""

from __future__ import annotations

import dataclasses
import importlib
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, IRText, Oracle

Run = Sequence[Any]

TYPES = {
    "boolean": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
"""NumPy's number types, by OpenVINO's names."""


@dataclasses.dataclass(frozen=True)
class Input:
    """A Parameter with its array for each run.

    Attributes:
        arrays: the arrays.
        dims: its dimensions: -1 for a dynamic one, ``None`` for any rank.
    """

    arrays: tuple[np.ndarray, ...]
    dims: tuple[int, ...] | None


def static(*arrays: Any) -> Input:
    """Return a Parameter with the first array's shape."""
    return Input(tuple(map(np.asarray, arrays)), np.shape(arrays[0]))


def dynamic(*arrays: Any, dims: Sequence[int] | None = None) -> Input:
    """Return a Parameter whose dimensions are all dynamic, or ``dims``."""
    return Input(tuple(map(np.asarray, arrays)), (-1,) * np.ndim(arrays[0]) if dims is None else tuple(dims))


def unranked(*arrays: Any) -> Input:
    """Return a Parameter of unknown rank."""
    return Input(tuple(map(np.asarray, arrays)), None)


def statics(*runs: Run) -> list[Input]:
    """Return a Parameter of static shape for each input; a run has the arrays of all inputs."""
    return [static(*arrays) for arrays in zip(*runs, strict=True)]


def dynamics(*runs: Run) -> list[Input]:
    """Return a Parameter with dynamic dimensions for each input."""
    return [dynamic(*arrays) for arrays in zip(*runs, strict=True)]


def shaped(shapes: Sequence[Sequence[int] | None], *runs: Run) -> list[Input]:
    """Return a Parameter for each input with the dimensions in ``shapes``, ``None`` for any rank."""
    inputs = zip(zip(*runs, strict=True), shapes, strict=True)
    return [unranked(*arrays) if dims is None else dynamic(*arrays, dims=dims) for arrays, dims in inputs]


def layer_case(
    operation: str,
    version: str,
    make: str | Callable[..., Any],
    name: str,
    inputs: Iterable[Any] = (),
    attributes: dict[str, Any] | None = None,
    *,
    opset: str | None = None,
    **settings: Any,
) -> Case:
    """Return a case of one operation, or of the small graph that ``make`` builds around it.

    Args:
        operation: its name in the specification.
        version: its opset in the IR.
        make: the name of the factory, or of the operation, which accepts any inputs and attributes, with the prefix of
            another opset if necessary (``"opset1.add"``). Or a function ``make(ops, *nodes, **attributes)`` with the opset's
            module, which returns a node, or the results and sinks.
        name: a description of the case.
        inputs: `Input` for a Parameter, an array or a number for a constant, ``None`` for an omitted input, the name of a
            type unchanged, or a function that returns the node.
        attributes: keyword arguments of the layer.
        opset: the opset whose module creates it, if it is not ``version``.
        settings: further fields of `Case`.
    """
    inputs, attributes = list(inputs), attributes or {}
    given = [i.arrays for i in inputs if isinstance(i, Input)]
    runs = list(zip(*given, strict=True)) if given else [()]
    return Case(operation, version, name, lambda: _model(opset or version, make, inputs, attributes), runs, **settings)


def _model(opset: str, make: str | Callable[..., Any], inputs: Sequence[Any], attributes: dict[str, Any]) -> Any:
    import openvino as ov

    parameters, nodes = [], []
    for given in inputs:
        if isinstance(given, Input):
            nodes.append(_parameter(given))
            parameters.append(nodes[-1])
        else:
            nodes.append(_node(given))
    made = _layer(opset, make, nodes, attributes)
    outputs = [
        output
        for node in (made if isinstance(made, (list, tuple)) else [made])
        for output in (node.outputs() if hasattr(node, "outputs") else [node])
    ]
    sinks = [_is_sink(output) for output in outputs]
    results = [output for output, sink in zip(outputs, sinks, strict=True) if not sink]
    return ov.Model(results, [output.node for output, sink in zip(outputs, sinks, strict=True) if sink], parameters)


def _is_sink(output: Any) -> bool:
    return output.node.get_type_name() == "Assign"


def _node(given: Any) -> Any:
    if given is None or isinstance(given, str):
        return given
    return given() if callable(given) else constant(np.asarray(given))


def _layer(opset: str, make: str | Callable[..., Any], nodes: list[Any], attributes: dict[str, Any]) -> Any:
    from openvino.utils.node_factory import NodeFactory

    if callable(make):
        return make(importlib.import_module(f"openvino.{opset}"), *nodes, **attributes)
    module, _, factory = make.rpartition(".")
    module = module or opset
    if factory[0].isupper():
        return NodeFactory(module).create(factory, [node.output(0) for node in nodes], attributes)
    return getattr(importlib.import_module(f"openvino.{module}"), factory)(*nodes, **attributes)


def _parameter(given: Input) -> Any:
    import openvino as ov
    from openvino import opset1

    shape = ov.PartialShape.dynamic() if given.dims is None else ov.PartialShape(list(given.dims))
    return opset1.parameter(shape, element_type(given.arrays[0]))


def constant(array: np.ndarray) -> Any:
    """Return a constant, also for strings and empty arrays."""
    import openvino as ov

    kind = element_type(array)
    if kind == ov.Type.string:
        return ov.op.Constant(ov.Tensor(array.astype(str)), shared_memory=False)
    if kind != ov.Type.bf16:
        return ov.op.Constant(ov.Tensor(np.ascontiguousarray(array).reshape(array.shape)), shared_memory=False)
    tensor = ov.Tensor(kind, ov.Shape(list(array.shape)))
    tensor.data[...] = array.view(tensor.data.dtype)
    return ov.op.Constant(tensor, shared_memory=False)


def of_no_bytes(dtype: Any) -> Callable[[], Any]:
    """Return an input: an empty constant for which the IR has no byte; OpenVINO writes one byte for other empty
    constants.
    """

    def make() -> Any:
        import openvino as ov

        return ov.op.Constant(ov.Tensor(np.zeros(0, dtype)), shared_memory=True)

    return make


def element_type(array: np.ndarray) -> Any:
    """Return OpenVINO's element type for the array's type."""
    import openvino as ov

    if array.dtype.kind in "OU":
        return ov.Type.string
    return ov.Type.bf16 if array.dtype.name == "bfloat16" else ov.Type(array.dtype)


def decided(oracle: Oracle, reason: str, *expected: np.ndarray, runs: Sequence[Sequence[np.ndarray]] = ()) -> dict[str, Any]:
    """Return the settings of a case that one oracle decides; with ``"expected"``, the outputs of its one run or of
    ``runs``.
    """
    outputs = [list(run) for run in runs] or ([list(expected)] if expected else None)
    return {"oracle": oracle, "reason": reason} | ({} if outputs is None else {"expected": outputs})


def edited(model: Case, edit: Callable[[str, bytes], tuple[str, bytes]]) -> Case:
    """Return the case with its IR changed by ``edit``, which receives the text of the .xml and the .bin."""

    def build() -> IRText:
        with tempfile.TemporaryDirectory() as folder:
            path = model.save(Path(folder))
            return IRText(*edit(path.read_text(), path.with_suffix(".bin").read_bytes()))

    return dataclasses.replace(model, build=build)


def replaced(model: Case, old: str, new: str) -> Case:
    """Return the case with a part of its .xml replaced."""

    def edit(text: str, weights: bytes) -> tuple[str, bytes]:
        assert old in text
        return text.replace(old, new), weights

    return edited(model, edit)


def ramp(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Return distinct values 0, 1, ... in the shape; alternating values for booleans."""
    values = np.arange(int(np.prod(shape)))
    return (values % 2 if dtype in (bool, np.bool_) else values).astype(dtype).reshape(shape)


def mixed(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Return unordered values, some equal, some negative (if the type supports them)."""
    generator = np.random.default_rng(seed)
    low = 0 if np.dtype(dtype).kind in "ub" else -9
    values = generator.integers(low, 2 if dtype in (bool, np.bool_) else 10, shape)
    return (values / 2 if np.dtype(dtype).kind == "f" else values).astype(dtype)
