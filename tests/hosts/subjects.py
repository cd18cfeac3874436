"""Small models of each operator that has a body, the domain's and ONNX Runtime's own, with inputs, for JavaScript.

The reference is ONNX Runtime in Python with the same files and their bodies. The conformance cases compare the bodies with
OpenVINO.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from converters.openvino import convert
from converters.openvino.coverage.table import coverage
from onnx_specops.bodies import add_bodies
from onnx_specops.domain import CONTRIB_DOMAIN, DOMAIN, declared, find, operators
from onnx_specops.runtime.extensions import adapt
from tests.conformance.case import Case
from tests.conformance.operations.cases import CASES
from tests.onnx_specops.contrib.cases import CASES as CONTRIB_CASES
from tests.onnx_specops.contrib.test_contrib import model_of
from tests.onnx_specops.native import nodes
from tests.onnx_specops.native.random_attention import group_query_attention_compressed
from tests.onnx_specops.native.random_elementwise import elementwise
from tests.onnx_specops.native.random_in_place_attention import attention as cached_attention
from tests.onnx_specops.native.random_products import (
    attention,
    mat_mul_compressed,
    quantized_attention,
    quantized_group_moments,
    quantized_layer_normalization,
)
from tests.onnx_specops.native.random_tokenizers import dense
from tests.onnx_specops.native.test_random_layers import (
    causal_conv,
    depthwise_conv,
    gated_delta_rule,
    selective_scan,
    state_space_scan,
    volume_conv,
)
from tests.onnx_specops.ops import cases_quantized_conv

MOST = 6
"""Returns models of an operator."""

# The tensor types of JavaScript, by ONNX Runtime's names.
TYPES = {
    "float32": "float32",
    "float64": "float64",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "bool": "bool",
}


@dataclass(frozen=True)
class Subject:
    """A model of an operator, its inputs, and the results of ONNX Runtime in Python with bodies.

    Attributes:
        key: its name.
        operator: the operator.
        model: the file's bytes.
        inputs, outputs: arrays by name.
        values: whether to compare values; otherwise only types and shapes, for random values.
    """

    key: str
    operator: str
    model: bytes
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]
    values: bool


def with_bodies() -> list[str]:
    """Return the domain's operators that have a body, then ONNX Runtime's own."""
    own = [operator.name for operator in operators() if operator.emit_body is not None]
    return own + [operator.name for operator in declared(CONTRIB_DOMAIN)]


def subjects(folder: Path, names: Sequence[str] = ()) -> Iterator[Subject]:
    """Iterate over a few models of each operator (or of ``names``); ``folder`` is for IR files."""
    layers: dict[str, set[tuple[str, str]]] = {}
    for row in coverage():
        for name in row.custom:
            layers.setdefault(name, set()).add((row.operation.name, row.operation.version))
    for name in names or with_bodies():
        found = 0
        if name in _NODES:
            candidates = _of_nodes(name)
        elif name in layers:
            candidates = _of_layers(name, layers[name], folder)
        else:
            candidates = _of_contrib(name)
        for subject in candidates:
            found += 1
            yield subject
            if found == MOST:
                break
        if not found:
            raise LookupError(f"no case has a {name} that programs in JavaScript can be handed")


def _of_layers(name: str, layers: set[tuple[str, str]], folder: Path) -> Iterator[Subject]:
    cases = [case for case in CASES if (case.operation, case.version) in layers and not case.state]
    # The first models of a list tend to be similar, so they are spread.
    for case in cases[:: max(1, len(cases) // (2 * MOST))] + cases:
        place = folder / case.id
        if place.exists():
            continue
        place.mkdir(parents=True)
        model = _converted(case, place)
        if not any(node.op_type == name for node in adapt.domain_nodes(model)):
            continue
        if (subject := _answered(case.id, name, model, case.inputs[0], case.seeded_body)) is not None:
            yield subject


def _converted(case: Case, place: Path) -> onnx.ModelProto:
    return convert(case.save(place), place / "model.onnx").model


def _vocabulary(rng: np.random.Generator) -> nodes.Node:
    keys = rng.integers(0, 30, (2, 5)).astype(np.int64)
    words = rng.permutation(30)[:12].astype(np.int64)
    attributes = {"num_oov_buckets": 0, "default_value": -1}
    return "VocabularyTable", [keys, words], [onnx.TensorProto.INT64], attributes


def _over_a_compressed_cache(rng: np.random.Generator) -> nodes.Node:
    """Return a node that ONNX Runtime's own kernel in the body accepts: small, one row, with extra capacity."""
    while True:
        node = group_query_attention_compressed(rng)
        query, past, total = node[1][0], node[1][3], node[1][6]
        assert query is not None and past is not None and total is not None
        if len(query) == 1 and query.size < 5000 and past.shape[2] >= total and past.dtype == np.uint8:
            return node


def _quantized_conv(rng: np.random.Generator) -> nodes.Node:
    """A case whose weights need not be constants."""
    cases = [case for case in cases_quantized_conv.CASES if not case.error and not case.body_error]
    case = cases[rng.integers(len(cases))]
    arrays = [case.inputs.get(name) for name in find(case.op).inputs]
    return "QuantizedConv", arrays, [nodes.element_type(case.inputs["y_zero_point"])], dict(case.attributes)


def _short(make: Callable[[np.random.Generator], nodes.Node]) -> Callable[[np.random.Generator], nodes.Node]:
    """Scans of few tokens: the sums of many lose digits, which differ between runtimes."""

    def made(rng: np.random.Generator) -> nodes.Node:
        while True:
            node = make(rng)
            x = node[1][0]
            assert x is not None
            if x.shape[1] <= 8:
                return node

    return made


# Operators that only combinations of layers, or passes, emit.
_NODES = {
    "Attention": attention,
    "CausalConv": _short(causal_conv),
    "DepthwiseConv": depthwise_conv,
    "Elementwise": elementwise,
    "GatedDeltaRule": _short(gated_delta_rule),
    "GroupQueryAttentionCompressed": _over_a_compressed_cache,
    "MatMulCompressed": mat_mul_compressed,
    "QuantizedAttention": quantized_attention,
    "QuantizedConv": _quantized_conv,
    "QuantizedGroupMoments": quantized_group_moments,
    "QuantizedLayerNormalization": quantized_layer_normalization,
    "RaggedToDense": dense,
    "ScaledDotProductAttentionWithKVCache": cached_attention,
    "SelectiveScan": _short(selective_scan),
    "StateSpaceScan": _short(state_space_scan),
    "VocabularyTable": _vocabulary,
    "VolumeConv": volume_conv,
}


def _of_nodes(name: str) -> Iterator[Subject]:
    for seed in range(100):
        _, inputs, outputs, attributes = _NODES[name](np.random.default_rng(seed))
        try:
            model = add_bodies(onnx.load_from_string(nodes.model(name, inputs, outputs, attributes)))
        except ValueError:
            continue
        arrays = [array for array in inputs if array is not None]
        if (subject := _answered(f"{name}-{seed}", name, model, arrays, True)) is not None:
            yield subject


def _of_contrib(name: str) -> Iterator[Subject]:
    for case in (case for case in CONTRIB_CASES if case.op == name):
        arrays = [array for input_name, array in case.inputs.items() if input_name not in case.constants]
        if (subject := _answered(case.id, name, model_of(case), arrays, True)) is not None:
            yield subject


def _answered(key: str, name: str, model: onnx.ModelProto, inputs: Sequence[Any], values: bool) -> Subject | None:
    """Add the results of Python; return ``None`` if JavaScript lacks a type."""
    bodies = {(f.name, f.overload) for f in model.functions if f.domain == DOMAIN}
    if any((node.op_type, node.overload) not in bodies for node in adapt.domain_nodes(model)):
        return None
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options)
    feeds = {i.name: np.asarray(array) for i, array in zip(session.get_inputs(), inputs, strict=True)}
    if any(str(array.dtype) not in TYPES for array in feeds.values()):
        return None
    if "float16" in str([value.type for value in (*session.get_inputs(), *session.get_outputs())]):
        return None
    names = [output.name for output in session.get_outputs()]
    outputs = {n: np.asarray(a) for n, a in zip(names, session.run(names, feeds), strict=True)}
    if any(str(array.dtype) not in TYPES for array in outputs.values()):
        return None
    return Subject(key, name, model.SerializeToString(), feeds, outputs, values)


def write(found: Sequence[Subject], folder: Path) -> Path:
    """Write the models, and the manifest that cases.mjs reads; return the manifest."""
    entries = []
    for number, subject in enumerate(found):
        (folder / f"{number}.onnx").write_bytes(subject.model)
        entry = {"key": subject.key, "model": f"{number}.onnx", "values": subject.values}
        entries.append(entry | {kind: _plain(getattr(subject, kind)) for kind in ("inputs", "outputs")})
    path = folder / "manifest.json"
    path.write_text(json.dumps(entries))
    return path


def _plain(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {
        name: {
            "type": TYPES[str(array.dtype)],
            "dims": list(array.shape),
            "data": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode(),
        }
        for name, array in arrays.items()
    }
