"""Models of one layer, built with OpenVINO's Python API from arrays that say what each input is."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.conformance.case import Case


@dataclass(frozen=True)
class Input:
    """A Parameter of the dimensions ``dims`` (-1 for a dynamic one, ``None`` for any rank), with its value for each run."""

    arrays: tuple[np.ndarray, ...]
    dims: tuple[int, ...] | None


def static(*arrays: Any) -> Input:
    """A Parameter of the arrays' own shape."""
    arrays = tuple(np.asarray(a) for a in arrays)
    return Input(arrays, arrays[0].shape)


def dynamic(*arrays: Any, dims: Sequence[int] | None = None) -> Input:
    """A Parameter whose dimensions are all dynamic, or ``dims``."""
    arrays = tuple(np.asarray(a) for a in arrays)
    return Input(arrays, (-1,) * arrays[0].ndim if dims is None else tuple(dims))


def unranked(*arrays: Any) -> Input:
    """A Parameter of unknown rank."""
    return Input(tuple(np.asarray(a) for a in arrays), None)


def model(opset: str, make: str | Callable[..., Any], inputs: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """An ``openvino.Model`` of one layer.

    Args:
        opset: ``"opset8"``: the module whose factory makes the layer.
        make: the factory's name, the operation's own name (any number of inputs), or ``make(module, *nodes, **attributes)``.
        inputs: `Input` for a Parameter, an array or a number for a constant, ``None`` for one left out, a type as it is.
        attributes: the factory's keywords.
    """
    import openvino as ov
    from openvino.utils.node_factory import NodeFactory

    module = importlib.import_module(f"openvino.{opset}")
    parameters, nodes = [], []
    for given in inputs:
        if isinstance(given, Input):
            first = given.arrays[0]
            kind = ov.Type.string if first.dtype.kind in "OU" else ov.Type(first.dtype)
            shape = ov.PartialShape.dynamic() if given.dims is None else ov.PartialShape(list(given.dims))
            parameters.append(module.parameter(shape, kind))
            nodes.append(parameters[-1])
        elif given is None or isinstance(given, str):
            nodes.append(given)
        elif np.size(given) and np.asarray(given).dtype.kind not in "OU":
            nodes.append(module.constant(np.asarray(given)))
        else:
            array = np.asarray(given)
            nodes.append(ov.op.Constant(ov.Tensor(array.astype(str) if array.dtype.kind == "O" else array)))
    if callable(make):
        layer = make(module, *nodes, **attributes)
    elif make[0].isupper():
        layer = NodeFactory(opset).create(make, nodes, attributes)
    else:
        layer = getattr(module, make)(*nodes, **attributes)
    outputs = layer if isinstance(layer, list) else layer.outputs()
    return ov.Model(outputs, parameters)


def layer_case(
    operation: str,
    version: str,
    name: str,
    make: str | Callable[..., Any],
    inputs: Iterable[Any],
    attributes: dict[str, Any] | None = None,
    *,
    factory_opset: str | None = None,
    **settings: Any,
) -> Case:
    """A `Case` of one layer; ``settings`` are the case's own."""
    inputs, attributes = list(inputs), attributes or {}
    given = [i.arrays for i in inputs if isinstance(i, Input)]
    runs = list(zip(*given, strict=True)) if given else [()]
    opset = factory_opset or version
    return Case(operation, version, name, lambda: model(opset, make, inputs, attributes), runs, **settings)


def ramp(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Distinct values 0, 1, ... in the shape; for booleans alternating."""
    values = np.arange(int(np.prod(shape)))
    return (values % 2 if dtype in (bool, np.bool_) else values).astype(dtype).reshape(shape)


def mixed(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Values without order, some equal, some negative (where the type has them)."""
    generator = np.random.default_rng(seed)
    low = 0 if np.dtype(dtype).kind in "ub" else -9
    values = generator.integers(low, 2 if dtype in (bool, np.bool_) else 10, shape)
    return (values / 2 if np.dtype(dtype).kind == "f" else values).astype(dtype)
