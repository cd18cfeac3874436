"""Hostile nodes of the domain's operators: all kernels give the same result or a clear error, quickly and with little
memory.
"""

from __future__ import annotations

import functools
import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto

import onnx_specops
from converters.validation.ort_values import run_session
from onnx_specops.domain import Operator, find, operators
from onnx_specops.runtime import library
from tests.fuzz import texts
from tests.fuzz.engine import Finding, Target
from tests.native import BUILT, OF_PCRE2
from tests.onnx_specops.native import nodes, test_random_layers, test_random_nodes
from tests.onnx_specops.native.nodes import Node
from tests.onnx_specops.native.sanitizing import environment
from tests.onnx_specops.ops import cases_quantized_conv

INTEGERS = (-(2**63), -1, 0, 1, 2**31 - 1, 2**31, 2**62, 2**63 - 1)
NUMBERS = (float("nan"), float("inf"), float("-inf"), 1e30, -1e30, 1e-30, 0.0, -1.0)
_SECONDS, _MEMORY = 20.0, 2 * 2**30

# -- nodes -----------------------------------------------------------------------------------------------------------------


def _string_nodes() -> Iterator[Node]:
    some = np.array(["a", "bc"], object)
    yield "StringToHashBucket", [some], [TensorProto.INT64], {"num_buckets": 3}
    yield "VocabularyTable", [some, some[1:]], [TensorProto.INT64], {"num_oov_buckets": 3}


def _fake_quantize(rng: np.random.Generator) -> Node:
    data = rng.standard_normal(rng.integers(0, 5, rng.integers(0, 4))).astype(rng.choice([np.float32, np.float64]))
    ends = [np.array(end, data.dtype) for end in (-1, 1, -2, 2)]
    return "FakeQuantize", [data, *ends], [nodes.element_type(data)], {"levels": int(rng.integers(2, 300))}


def _quantized_conv(rng: np.random.Generator) -> Node:
    """Return one of the operator's cases."""
    cases = [case for case in cases_quantized_conv.CASES if not case.error]
    case = cases[rng.integers(len(cases))]
    arrays = [case.inputs.get(name) for name in find(case.op).inputs]
    return case.op, arrays, [nodes.element_type(case.inputs["y_zero_point"])], dict(case.attributes)


def _of_one_type(make: Callable[..., Any], rng: np.random.Generator) -> Node:
    name, arrays, attributes = make(rng)
    type_ = TensorProto.INT64 if name == "Multinomial" else nodes.element_type(arrays[0])
    return name, arrays, [type_], attributes


def makers() -> list[Callable[[np.random.Generator], Node]]:
    """Return functions that create random valid nodes of each operator."""
    typed = (test_random_nodes.scatter, test_random_nodes.multinomial, test_random_nodes.embedding_bag)
    strings = [lambda rng, node=node: node for node in _string_nodes()]
    return [
        *test_random_layers.MAKERS,
        *texts.MAKERS,
        _fake_quantize,
        _quantized_conv,
        *(functools.partial(_of_one_type, make) for make in typed),
        *strings,
    ]


def valid_nodes(rng: np.random.Generator) -> dict[str, Node]:
    """Return a node of each operator with all optional parts, which is not empty and not too large."""
    found: dict[str, Node] = {}
    for make in makers():
        candidates = [make(rng) for _ in range(20)]
        node = max(candidates, key=lambda node: min(sum(np.size(a) for a in node[1] if a is not None), 4000))
        found[node[0]] = node
    return found


def hostile_values(operator: Operator, name: str) -> Iterator[Any]:
    """Iterate over invalid values and the ends of the valid range."""
    attribute = operator.attributes[name]
    if attribute.type is float:
        yield from NUMBERS
    elif attribute.type is int:
        yield from INTEGERS
        if attribute.limits is not None:
            yield from {attribute.limits.least, attribute.limits.most} - {None}
    else:
        yield from ("x" * 100_000, "(a+)+$", "(")


def hostile_nodes(rng: np.random.Generator, share: float) -> Iterator[Node]:
    """Iterate over a fraction of the nodes with one hostile attribute."""
    valid = valid_nodes(rng)
    for operator in filter(lambda operator: operator.attributes, operators()):
        name, arrays, types, attributes = valid[operator.name]
        for attribute in operator.attributes:
            for value in hostile_values(operator, attribute):
                if rng.random() < share:
                    yield name, arrays, types, {**attributes, attribute: value}


# -- damage ----------------------------------------------------------------------------------------------------------------


def _attribute(rng: np.random.Generator, node: Node) -> Node:
    """Change the value of an attribute."""
    name, arrays, types, attributes = node
    operator = find(name)
    if not operator.attributes:
        return node
    chosen = str(rng.choice(list(operator.attributes)))
    values = list(hostile_values(operator, chosen))
    return name, arrays, types, {**attributes, chosen: values[rng.integers(len(values))]}


def _elements(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Replace some elements by unusual ones."""
    if not array.size:
        return array
    damaged = array.copy().reshape(-1)
    for _ in range(rng.integers(1, 4)):
        damaged[rng.integers(damaged.size)] = _hostile_element(rng, array.dtype)
    return damaged.reshape(array.shape)


def _hostile_element(rng: np.random.Generator, dtype: np.dtype) -> Any:
    if dtype.kind == "O":
        return ["", "x" * 10_000, "é", "a b"][rng.integers(4)]
    if dtype.kind == "b":
        return bool(rng.integers(2))
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = (limits.min, limits.max, -1, 0, 1, 2, limits.max // 2, 1000)
        return np.array(min(max(values[rng.integers(len(values))], limits.min), limits.max), dtype)
    with np.errstate(all="ignore"):
        limits = ml_dtypes.finfo(dtype)
        values = (*NUMBERS, float(limits.max), -float(limits.max), float(limits.tiny), 0.5)
        return np.array(values[rng.integers(len(values))]).astype(dtype)


def _shape(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Change dimensions or the rank."""
    shape = list(array.shape)
    match rng.integers(6):
        case 0:
            shape = [max(0, d + int(rng.integers(-1, 3))) for d in shape]
        case 1:
            shape.insert(int(rng.integers(len(shape) + 1)), int(rng.integers(0, 3)))
        case 2 if shape:
            del shape[rng.integers(len(shape))]
        case 3 if shape:
            shape[rng.integers(len(shape))] = 0
        case 4:
            return array.T
        case 5:
            shape = []
    return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)


def _disorder(rng: np.random.Generator, at: int, arrays: list[Any]) -> list[Any]:
    """Reorder or perturb elements, or swap two inputs, so that begins exceed ends."""
    array = arrays[at]
    alike = [k for k, other in enumerate(arrays) if other is not None and k != at and other.dtype == array.dtype]
    changed = list(arrays)
    match rng.integers(4):
        case 0:
            changed[at] = array[rng.permutation(len(array))] if array.ndim else array
        case 1:
            changed[at] = array[::-1].copy() if array.ndim else array
        case 2 if array.dtype.kind in "iu":
            with np.errstate(over="ignore"):
                changed[at] = array + rng.choice([-1, 1], array.shape).astype(array.dtype)
        case 3 if alike:
            other = alike[rng.integers(len(alike))]
            changed[at], changed[other] = arrays[other], array
    return changed


def _typed(rng: np.random.Generator, operator: Operator, at: int, arrays: list[Any]) -> list[Any]:
    """Change the type of an input to another valid one, also where it must be the same."""
    variables = list(operator.inputs.values())
    names = [name for name in operator.element_types(variables[at]) if name != "string"]
    if not names:
        return arrays
    dtype = onnx.helper.tensor_dtype_to_np_dtype(getattr(TensorProto, names[rng.integers(len(names))].upper()))
    with np.errstate(all="ignore"):
        return [
            array.astype(dtype) if array is not None and variable == variables[at] and array.dtype.kind != "O" else array
            for array, variable in zip(arrays, variables, strict=False)
        ]


def damaged(rng: np.random.Generator, node: Node) -> Node:
    """Return the node with up to three changes."""
    name, arrays, types, attributes = node
    operator, arrays = find(name), list(arrays)
    for _ in range(rng.integers(1, 4)):
        kind = rng.random()
        at = int(rng.integers(len(arrays)))
        array = arrays[at]
        if kind < 0.3 or array is None:
            _, _, _, attributes = _attribute(rng, (name, arrays, types, attributes))
        elif kind < 0.6:
            arrays[at] = _elements(rng, array)
        elif kind < 0.7:
            arrays = _disorder(rng, at, arrays)
        elif kind < 0.9:
            arrays[at] = _shape(rng, array)
        elif kind < 0.95 and operator.optional[at]:
            arrays[at] = None
        else:
            arrays = _typed(rng, operator, at, arrays)
    return name, arrays, _output_types(operator, arrays, types), attributes


def _output_types(operator: Operator, arrays: list[Any], types: list[int]) -> list[int]:
    """Return the types of the outputs, which follow those of the inputs."""
    bound = {
        variable: nodes.element_type(array)
        for variable, array in reversed(list(zip(operator.inputs.values(), arrays, strict=False)))
        if array is not None
    }
    return [bound.get(variable, type_) for variable, type_ in zip(operator.outputs.values(), types, strict=True)]


@functools.cache
def _makers_of(names: tuple[str, ...]) -> list[Callable[[np.random.Generator], Node]]:
    """Return the makers of the operators with these names, or all makers; each creates nodes of one operator."""
    rng = np.random.default_rng(0)
    return [make for make in makers() if not names or make(rng)[0] in names]


def node(seed: int, number: int, names: tuple[str, ...] = ()) -> Node:
    """Return the node with that number, of one of the named operators if any; one in ten is valid."""
    rng = np.random.default_rng([seed, number])
    choice = _makers_of(names)
    made = choice[rng.integers(len(choice))](rng)
    return made if rng.random() < 0.1 else damaged(rng, made)


# -- outcomes --------------------------------------------------------------------------------------------------------------


def run(form: str, node: Node) -> list[np.ndarray]:
    """Run the node in a form."""
    name, arrays, types, attributes = node
    if form == "native":
        return nodes.run(name, arrays, types, attributes)
    if form == "body":
        return nodes.run_body(name, arrays, types, attributes)
    if form == "python":
        session = onnx_specops.InferenceSession(nodes.model(name, arrays, types, attributes), kernels="python")
        return run_session(session, {f"i{k}": array for k, array in enumerate(arrays) if array is not None})
    operator = find(name)
    if form == "left out":
        arrays = _left_out(operator, arrays)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = operator(*arrays, **attributes)
    return list(results) if isinstance(results, tuple) else [results]


def _left_out(operator: Operator, arrays: list[Any]) -> list[Any]:
    """Return the inputs with ``None`` for empty optional ones, which represent omitted inputs in Python custom ops."""
    optional = zip(arrays, operator.optional, strict=False)
    return [None if may_be and np.size(array) == 0 else array for array, may_be in optional]


def outcome(form: str, node: Node) -> list[np.ndarray] | str:
    """Return the result of a form, or its error message; raise `Finding` if it exhausts the memory."""
    try:
        return run(form, node)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        if isinstance(error, MemoryError) or "memory" in message or "alloc" in message:
            raise Finding(f"{form}: {message}\n{described(node)}") from error
        return message


def described(node: Node) -> str:
    """Return the node as text."""
    name, arrays, types, attributes = node
    lines = [f"{name} {types} {str(attributes)[:500]}"]
    for array in arrays:
        values = "" if array is None else " ".join(np.array2string(array, threshold=60).split())[:600]
        lines.append("  left out" if array is None else f"  {array.dtype} {list(array.shape)} {values}")
    return "\n".join(lines)


def dump(node: Node) -> str:
    """Return the node as JSON, for the corpus."""
    name, arrays, types, attributes = node
    inputs = [
        None if array is None else {"type": array.dtype.name, "shape": array.shape, "values": _plain(array)}
        for array in arrays
    ]
    return json.dumps({"operator": name, "inputs": inputs, "outputs": types, "attributes": attributes})


def _plain(array: np.ndarray) -> list[Any]:
    wide = array.astype(np.float64) if array.dtype.kind == "V" else array
    return wide.reshape(-1).tolist()


def load(text: str) -> Node:
    """Return the node that `dump` wrote."""
    given = json.loads(text)
    arrays = [
        None if i is None else np.array(i["values"], _DTYPES.get(i["type"], i["type"])).reshape(i["shape"])
        for i in given["inputs"]
    ]
    return given["operator"], arrays, given["outputs"], given["attributes"]


_DTYPES = {"bfloat16": ml_dtypes.bfloat16}


def agreeing(form: str, node: Node) -> str:
    """Run the node in a form and with the NumPy kernel: both must give the same result, or both must reject it.

    Raises:
        Finding: they disagree.
    """
    got = outcome(form, node)
    # Empty optional inputs may represent omitted ones.
    expected = [outcome(reference, node) for reference in ("numpy", "left out")]
    if any(isinstance(answer, str) and "pattern" in answer for answer in (got, *expected)):
        return "refused"  # PCRE2 and the Python kernels do not accept exactly the same patterns
    unrepresentable = (
        "which the strings of Python kernels must be",
        "contains a NUL, which ends a string in Python kernels",
    )
    if isinstance(got, str) and (got.startswith("UnicodeDecodeError") or any(text in got for text in unrepresentable)):
        return "answered"  # by bytes that ONNX Runtime's Python interface, or onnxruntime-extensions, cannot return
    if not any(_alike(got, answer) for answer in expected):
        said = [f"{name}: {_said(o)}" for name, o in zip((form, "numpy"), (got, expected[0]), strict=True)]
        raise Finding("\n".join([*said, described(node)]))
    return "refused" if isinstance(got, str) else "answered"


def _alike(one: list[np.ndarray] | str, other: list[np.ndarray] | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    return [(a.shape, a.dtype) for a in one] == [(b.shape, b.dtype) for b in other]


def _said(outcome: list[np.ndarray] | str) -> str:
    return outcome if isinstance(outcome, str) else ", ".join(f"{array.dtype} {list(array.shape)}" for array in outcome)


def run_native(seed: int, number: int, names: tuple[str, ...] = ()) -> str:
    """Compare the native kernels with the NumPy kernels, sometimes also the body."""
    return try_native(node(seed, number, names), with_body=number % 10 == 0)


def try_native(node: Node, with_body: bool = True) -> str:
    """Run the native and NumPy kernels, optionally also the body; raise `Finding` like `agreeing`."""
    if node[0] in OF_PCRE2 - BUILT:
        return "lacking"
    kind = agreeing("native", node)
    # A body is standard ONNX, whose operators have no memory limits; kernels do.
    if with_body and kind == "answered" and find(node[0]).emit_body is not None:
        outcome("body", node)
    return kind


def run_sanitized(seed: int, number: int, names: tuple[str, ...] = ()) -> str:
    """Run the native kernels with sanitizers."""
    library._PATH = Path(os.environ["ONNX_SPECOPS_TEST_LIBRARY"])
    return "refused" if isinstance(outcome("native", node(seed, number, names)), str) else "answered"


def run_python(seed: int, number: int, names: tuple[str, ...] = ()) -> str:
    """Run the NumPy kernels as custom ops of ONNX Runtime."""
    return agreeing("python", node(seed, number, names))


def targets() -> dict[str, Callable[[], Target]]:
    """Return the targets by name. The sanitizer target first builds the library."""
    return {
        "nodes": lambda: Target("nodes", run_native, _SECONDS, _MEMORY),
        "python": lambda: Target("python", run_python, _SECONDS, _MEMORY),
        "sanitized": lambda: Target("sanitized", run_sanitized, 4 * _SECONDS, None, environment()),
    }
