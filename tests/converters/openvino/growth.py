"""The growth of conversion time and memory with the contents of an IR, for everything that a file may have many of.

``python -m tests.converters.openvino.growth [NAME...]`` converts 1,000, 4,000 and 16,000 of each kind in separate processes,
and prints time, memory and their growth relative to the number.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from converters.openvino import convert
from converters.openvino.sentencepiece_models import model_message
from tests.converters.openvino.reader.ir_text import const, edge, graph, layer, net, parameter, result, write
from tests.worker import reset_peak, status

SIZES = (1_000, 4_000, 16_000)
LARGE = 5_000  # elements that are not folded
COMPRESSED = (72, 72)  # of a matrix that is not folded
FILTERS = (24, 24, 3, 3)  # of a convolution that is not folded
OF_LARGE = ("large constants", "large constants of one value", "copied constants", "constants referred to")


def _one_layer(*, data: str = "", extra: str = "", attributes: str = "", tail: str = "", names: str = "") -> str:
    """Return a model of one layer, with the given parts."""
    ports = '<input><port id="0"><dim>2</dim></port></input>'
    ports += f'<output><port id="1" precision="FP32"{names}><dim>2</dim></port></output>'
    relu = f'<layer id="1" name="r" type="ReLU" version="opset1"{attributes}>{data}{ports}{extra}</layer>'
    return net([parameter(), relu, result(2)], [edge(0, 0, 1, 0), edge(1, 1, 2, 0)], extra=tail)


def _chain(n: int, kind: str = "ReLU", *, name: str | None = None, **keywords) -> str:
    layers = [parameter(), *(layer(i, kind, inputs=[(2,)], outputs=[(2,)], name=name, **keywords) for i in range(1, n + 1))]
    edges = [edge(i, min(i, 1), i + 1, 0) for i in range(n + 1)]
    return net([*layers, result(n + 1)], edges)


def _kinds(n: int) -> str:
    """Return a chain of layers of 16-bit floats of many kinds."""
    many = ("ReLU", "Sigmoid", "Tanh", "Abs", "Negative", "Floor", "Ceiling", "Exp", "Sin", "Cos", "Erf", "Sign", "Atan")
    layers = [layer(i, many[i % len(many)], inputs=[(2,)], outputs=[(2,)], precision="FP16") for i in range(1, n + 1)]
    edges = [edge(i, min(i, 1), i + 1, 0) for i in range(n + 1)]
    return net([parameter(element_type="f16", precision="FP16"), *layers, result(n + 1)], edges)


def _parameters(n: int) -> str:
    layers = [text for i in range(n) for text in (parameter(2 * i), result(2 * i + 1))]
    return net(layers, [edge(2 * i, 0, 2 * i + 1, 0) for i in range(n)])


def _results(n: int, through: bool = True) -> str:
    layers = [parameter(), layer(1, "ReLU", inputs=[(2,)], outputs=[(2,)]), *(result(i) for i in range(2, n + 2))]
    source = (1, 1) if through else (0, 0)
    return net(layers, [edge(0, 0, 1, 0), *(edge(*source, i, 0) for i in range(2, n + 2))])


def _constants(n: int, elements: int = 2, shared: bool = False) -> str:
    """Return a sum of ``n`` constants."""
    size = 4 * elements
    layers = [parameter(shape=(elements,))]
    edges = [edge(0, 0, 2, 0)]
    for i in range(n):
        value, add = 2 * i + 1, 2 * i + 2
        layers += [
            const(value, "f32", (elements,), size, 16 if shared else 16 + i * size),
            layer(add, "Add", inputs=[(elements,)] * 2, outputs=[(elements,)], data='auto_broadcast="numpy"'),
        ]
        edges += [edge(value, 0, add, 1), edge(add, 2, add + 2 if i + 1 < n else 2 * n + 1, 0)]
    return net([*layers, result(2 * n + 1, (elements,))], edges)


def _products(n: int) -> str:
    """Return products with a matrix, bias and activation, for the fusing passes."""
    layers, edges, last = [parameter(shape=(2, 2))], [], (0, 0)
    for i in range(n):
        start = 5 * i + 1
        layers += [
            const(start, "f32", (2, 2), 16, 16),
            layer(start + 1, "MatMul", inputs=[(2, 2)] * 2, outputs=[(2, 2)], data='transpose_b="true"'),
            const(start + 2, "f32", (1, 2), 8, 16),
            layer(start + 3, "Add", inputs=[(2, 2), (1, 2)], outputs=[(2, 2)], data='auto_broadcast="numpy"'),
            layer(start + 4, "Sigmoid", inputs=[(2, 2)], outputs=[(2, 2)]),
        ]
        edges += [edge(*last, start + 1, 0), edge(start, 0, start + 1, 1), edge(start + 1, 2, start + 3, 0)]
        edges += [edge(start + 2, 0, start + 3, 1), edge(start + 3, 2, start + 4, 0)]
        last = (start + 4, 1)
    return net([*layers, result(5 * n + 1, (2, 2))], [*edges, edge(*last, 5 * n + 1, 0)])


def _compressed(n: int) -> str:
    """Return products with 8-bit matrices and scales."""
    rows, columns = COMPRESSED
    layers, edges, last = [parameter(shape=(2, rows))], [], (0, 0)
    for i in range(n):
        start = 6 * i + 1
        layers += [
            const(start, "u8", COMPRESSED, rows * columns, 16 + i * rows * columns, precision="U8"),
            layer(start + 1, "Convert", inputs=[COMPRESSED], outputs=[COMPRESSED], data='destination_type="f32"'),
            const(start + 2, "f32", (rows, 1), 4 * rows, 16),
            layer(
                start + 3, "Multiply", inputs=[COMPRESSED, (rows, 1)], outputs=[COMPRESSED], data='auto_broadcast="numpy"'
            ),
            layer(start + 4, "MatMul", inputs=[(2, rows), COMPRESSED], outputs=[(2, columns)]),
            layer(start + 5, "Sigmoid", inputs=[(2, columns)], outputs=[(2, columns)]),
        ]
        edges += [edge(start, 0, start + 1, 0), edge(start + 1, 1, start + 3, 0), edge(start + 2, 0, start + 3, 1)]
        edges += [edge(*last, start + 4, 0), edge(start + 3, 2, start + 4, 1), edge(start + 4, 2, start + 5, 0)]
        last = (start + 5, 1)
    return net([*layers, result(6 * n + 1, (2, columns))], [*edges, edge(*last, 6 * n + 1, 0)])


def _pieces(n: int) -> bytes:
    """Return a SentencePiece model."""
    model = model_message()()
    model.pieces.add(piece=b"<unk>", type=2)
    for k in range(n):
        model.pieces.add(piece=b"t%d" % k, type=1, score=-float(k))
    return model.SerializeToString()


def _sentencepiece(n: int) -> str:
    size = len(_pieces(n))
    ports = [(None, 2), (None,), (2,)]
    layers = [
        parameter(0, (None,), "string", "STRING"),
        const(1, "u8", (size,), size, 0, precision="U8"),
        layer(2, "SentencepieceTokenizer", inputs=[(size,), (None,)], outputs=ports, version="extension",
              data='nbest_size="1" alpha="1" add_bos="false" add_eos="false" reverse="false"'),
        *(result(3 + k, shape) for k, shape in enumerate(ports)),
    ]  # fmt: skip
    return net(layers, [edge(1, 0, 2, 0), edge(0, 0, 2, 1), *(edge(2, 2 + k, 3 + k, 0) for k in range(3))])


def _tokens(n: int) -> tuple[list[bytes], list[bytes]]:
    """Return a vocabulary, and merges that build ``n`` of its tokens from two others each."""
    count = math.isqrt(n - 1) + 1
    parts = [b"%d" % k for k in range(count)]
    pairs = [(first + b"_", second) for first in parts for second in parts][:n]
    vocabulary = [*parts, *(part + b"_" for part in parts), *(first + second for first, second in pairs)]
    return vocabulary, [first + b" " + second for first, second in pairs]


def _packed(texts: list[bytes]) -> list[np.ndarray]:
    """Return begins, ends and bytes of strings."""
    ends = np.cumsum([len(text) for text in texts]).astype(np.int32)
    return [np.concatenate([[0], ends[:-1]]).astype(np.int32), ends, np.frombuffer(b"".join(texts), np.uint8)]


def _byte_pairs(n: int) -> str:
    arrays = [array for texts in _tokens(n) for array in _packed(texts)]
    layers = [parameter(k, (None,), "i32", "I32") for k in range(4)] + [parameter(4, (None,), "u8", "U8")]
    offset = 0
    for k, array in enumerate(arrays, 5):
        kind = "u8" if array.dtype == np.uint8 else "i32"
        layers.append(const(k, kind, array.shape, array.nbytes, offset, precision=kind.upper()))
        offset += array.nbytes
    data = 'unk_token="" fuse_unk="false" suffix_indicator="" end_suffix="" byte_fallback="false" cache_capacity="20000"'
    inputs = [(None,)] * 5 + [array.shape for array in arrays]
    ports = {"inputs": inputs, "outputs": [(None,)] * 3, "precision": "I32"}
    layers += [
        layer(11, "BPETokenizer", version="extension", data=data, **ports),
        *(result(12 + k, (None,)) for k in range(3)),
    ]
    edges = [edge(k, 0, 11, k) for k in range(11)] + [edge(11, 11 + k, 12 + k, 0) for k in range(3)]
    return net(layers, edges)


def _quantized(n: int) -> str:
    """Return layers with 8-bit quantization between them."""
    layers = [parameter(), *(const(k, "f32", (), 4, 16 + 4 * (k % 2)) for k in range(1, 5))]
    edges, last = [], (0, 0)
    for i in range(n):
        start = 2 * i + 5
        data = 'levels="256" auto_broadcast="numpy"'
        layers += [
            layer(start, "FakeQuantize", inputs=[(2,), *[()] * 4], outputs=[(2,)], data=data),
            layer(start + 1, "ReLU", inputs=[(2,)], outputs=[(2,)]),
        ]
        edges += [edge(*last, start, 0), *(edge(k, 0, start, k) for k in range(1, 5)), edge(start, 5, start + 1, 0)]
        last = (start + 1, 1)
    return net([*layers, result(2 * n + 5)], [*edges, edge(*last, 2 * n + 5, 0)])


def _convolutions(n: int) -> str:
    """Return convolutions quantized by NNCF, with bias and activation."""
    image, scales, bias = (1, FILTERS[1], 3, 3), (FILTERS[0], 1, 1, 1), (1, FILTERS[0], 1, 1)
    size = math.prod(FILTERS)
    levels = 'levels="256" auto_broadcast="numpy"'
    window = 'strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1" auto_pad="explicit"'
    layers = [
        parameter(shape=image),
        *(const(k, "f32", (), 4, 16 + 4 * (k % 2)) for k in (1, 2)),
        const(3, "f32", scales, 4 * FILTERS[0], 20),
        const(4, "f32", bias, 4 * FILTERS[0], 20),
    ]
    edges, last = [], (0, 0)
    for i in range(n):
        start = 7 * i + 5
        layers += [
            layer(start, "FakeQuantize", inputs=[image, *[()] * 4], outputs=[image], data=levels),
            const(start + 1, "i8", FILTERS, size, 16 + i * size, precision="I8"),
            layer(start + 2, "Convert", inputs=[FILTERS], outputs=[FILTERS], data='destination_type="f32"'),
            layer(start + 3, "Multiply", inputs=[FILTERS, scales], outputs=[FILTERS], data='auto_broadcast="numpy"'),
            layer(start + 4, "Convolution", inputs=[image, FILTERS], outputs=[image], data=window),
            layer(start + 5, "Add", inputs=[image, bias], outputs=[image], data='auto_broadcast="numpy"'),
            layer(start + 6, "ReLU", inputs=[image], outputs=[image]),
        ]
        edges += [edge(*last, start, 0), *(edge(1 + k % 2, 0, start, k) for k in range(1, 5))]
        edges += [edge(start + 1, 0, start + 2, 0), edge(start + 2, 1, start + 3, 0), edge(3, 0, start + 3, 1)]
        edges += [edge(start, 5, start + 4, 0), edge(start + 3, 2, start + 4, 1), edge(start + 4, 2, start + 5, 0)]
        edges += [edge(4, 0, start + 5, 1), edge(start + 5, 2, start + 6, 0)]
        last = (start + 6, 1)
    return net([*layers, result(7 * n + 5, image)], [*edges, edge(*last, 7 * n + 5, 0)])


def _split(n: int) -> str:
    layers = [
        parameter(shape=(n,)),
        const(1, "i64", (), 8, 8, precision="I64"),
        layer(2, "Split", inputs=[(n,), ()], outputs=[(1,)] * n, data=f'num_splits="{n}"'),
        *(result(i + 3, (1,)) for i in range(n)),
    ]
    return net(layers, [edge(0, 0, 2, 0), edge(1, 0, 2, 1), *(edge(2, i + 2, i + 3, 0) for i in range(n))])


def _concat(n: int) -> str:
    layers = [parameter(), layer(1, "Concat", inputs=[(2,)] * n, outputs=[(2 * n,)], data='axis="0"'), result(2, (2 * n,))]
    return net(layers, [*(edge(0, 0, 1, i) for i in range(n)), edge(1, n, 2, 0)])


def _branches(n: int) -> str:
    """Return a value with many consumers, and a layer that consumes their results."""
    layers = [parameter(), *(layer(i, "ReLU", inputs=[(2,)], outputs=[(2,)]) for i in range(1, n + 1))]
    layers += [layer(n + 1, "Concat", inputs=[(2,)] * n, outputs=[(2 * n,)], data='axis="0"'), result(n + 2, (2 * n,))]
    edges = [part for i in range(1, n + 1) for part in (edge(0, 0, i, 0), edge(i, 1, n + 1, i - 1))]
    return net(layers, [*edges, edge(n + 1, n, n + 2, 0)])


def _bodies(n: int) -> str:
    """Return operators of the domain with different bodies."""
    layers, edges = [parameter(shape=(2, 3)), const(1, "i64", (), 8, precision="I64")], []
    for i in range(n):
        place = 2 * i + 2
        data = f'convert_type="i64" with_replacement="true" log_probs="false" global_seed="{i}" op_seed="1"'
        ports = {"inputs": [(2, 3), ()], "outputs": [(2, 1)], "precision": "I64"}
        layers += [layer(place, "Multinomial", data=data, version="opset13", **ports), result(place + 1, (2, 1))]
        edges += [edge(0, 0, place, 0), edge(1, 0, place, 1), edge(place, 2, place + 1, 0)]
    return net(layers, edges)


def _variables(n: int) -> str:
    layers, edges = [], []
    for i in range(n):
        start = 5 * i
        data = f'variable_id="v{i}" variable_type="f32" variable_shape="2"'
        layers += [
            parameter(start),
            layer(start + 1, "ReadValue", outputs=[(2,)], data=data, version="opset6"),
            layer(start + 2, "Add", inputs=[(2,)] * 2, outputs=[(2,)], data='auto_broadcast="numpy"'),
            layer(start + 3, "Assign", inputs=[(2,)], outputs=[(2,)], data=f'variable_id="v{i}"', version="opset6"),
            result(start + 4),
        ]
        edges += [edge(start, 0, start + 2, 0), edge(start + 1, 0, start + 2, 1)]
        edges += [edge(start + 2, 2, start + 3, 0), edge(start + 2, 2, start + 4, 0)]
    return net(layers, edges)


def _nested(n: int) -> str:
    """Return nested Ifs of maximum depth, as often as ``n`` requires."""
    depth = 16

    def body(level: int) -> str:
        if level == 0:
            inner = [parameter(), layer(1, "ReLU", inputs=[(2,)], outputs=[(2,)]), result(2)]
            return graph(inner, [edge(0, 0, 1, 0), edge(1, 1, 2, 0)])
        inner = [parameter(), const(1, "boolean", (), 1, precision="BOOL"), choice(2, level - 1), result(3)]
        return graph(inner, [edge(0, 0, 2, 1), edge(1, 0, 2, 0), edge(2, 2, 3, 0)])

    def choice(id: int, level: int) -> str:
        maps = (
            "<{0}_port_map><input external_port_id='1' internal_layer_id='0'/>"
            f"<output external_port_id='2' internal_layer_id='{3 if level else 2}'/></{{0}}_port_map>"
        )
        extra = maps.format("then") + maps.format("else")
        extra += f"<then_body>{body(level)}</then_body><else_body>{body(0) if level else body(level)}</else_body>"
        extra = extra.replace("internal_layer_id='3'/></else", "internal_layer_id='2'/></else")
        return layer(id, "If", inputs=[(), (2,)], outputs=[(2,)], version="opset8", extra=extra)

    count = max(1, n // depth)
    condition = parameter(0, (), "boolean", "BOOL")
    layers = [condition, parameter(1), *(choice(i + 2, depth - 1) for i in range(count)), result(count + 2)]
    edges = [part for i in range(count) for part in (edge(0, 0, i + 2, 0), edge(i + 1, 2 if i else 0, i + 2, 1))]
    return net(layers, [*edges, edge(count + 1, 2, count + 2, 0)])


def _reversed(text: str) -> str:
    start, end = text.index("<layers>\n") + 9, text.index("</layers>")
    parts = text[start:end].split("</layer>\n")[:-1]
    return text[:start] + "".join(f"{part}</layer>\n" for part in reversed(parts)) + text[end:]


def _many(template: str, n: int) -> str:
    return "".join(template.format(i) for i in range(n))


def _attributes(n: int) -> str:
    return _many(" a{0}='1'", n)


def _information(template: str, n: int) -> str:
    return f"<rt_info>{_many(template, n)}</rt_info>"


def _dead(n: int) -> str:
    dead = _many("<layer id='1{0}' name='x' type='ReLU' version='opset1'/>", n)
    return _results(1).replace("</layers>", f"{dead}</layers>")


def _numbers(n: int) -> str:
    """Return integers in an attribute."""
    data = f'eps="1" eps_mode="add" axes="{_many("0,", n)[:-1]}"'
    layers = [parameter(shape=(1, 1)), layer(1, "Reshape", inputs=[(1, 1)], outputs=[(1, 1)], data=data), result(2, (1, 1))]
    return net(layers, [edge(0, 0, 1, 0), edge(1, 1, 2, 0)])


SUBJECTS: dict[str, Callable[[int], str]] = {
    "layers": _chain,
    "layers of one name": lambda n: _chain(n, name="same"),
    "layers of 16-bit floats": lambda n: _chain(n, precision="FP16").replace('"f32"', '"f16"'),
    "layers in reverse order": lambda n: _reversed(_chain(n)),
    "layers that lead nowhere": _dead,
    "parameters": _parameters,
    "results": _results,
    "results of a parameter": lambda n: _results(n, through=False),
    "constants": _constants,
    "constants of one value": lambda n: _constants(n, shared=True),
    "large constants": lambda n: _constants(n, LARGE),
    "large constants of one value": lambda n: _constants(n, LARGE, shared=True),
    "matrix multiplications with biases": _products,
    "matrix multiplications with compressed weights": _compressed,
    "quantized layers": _quantized,
    "quantized convolutions": _convolutions,
    "outputs of a layer": _split,
    "inputs of a layer": _concat,
    "layers that take a value": _branches,
    "nested bodies": _nested,
    "variables": _variables,
    "pieces of a tokenizer": _sentencepiece,
    "tokens and merges of a tokenizer": _byte_pairs,
    "layers in another opset": _chain,
    "layers in float16": _chain,
    "layers in float32": lambda n: _chain(n, precision="FP16").replace('"f32"', '"f16"'),
    "layers of many kinds": _kinds,
    "layers of many kinds in float32": _kinds,
    "shapes": _chain,
    "copied constants": lambda n: _constants(n, LARGE),
    "constants referred to": lambda n: _constants(n, LARGE),
    "bodies in an older opset": _bodies,
    "bodies of operators": _bodies,
    "attributes of a layer's data": lambda n: _one_layer(data=f"<data{_attributes(n)}/>"),
    "attributes of a layer": lambda n: _one_layer(attributes=_attributes(n)),
    "attributes of the net": lambda n: _one_layer().replace("<net ", f"<net {_attributes(n)} "),
    "attributes of an edge": lambda n: _one_layer().replace("<edge ", f"<edge {_attributes(n)} "),
    "attributes of a port": lambda n: _one_layer(names=_attributes(n)),
    "attributes of information": lambda n: _one_layer(extra=f"<rt_info><attribute name='x'{_attributes(n)}/></rt_info>"),
    "information": lambda n: _one_layer(tail=_information("<x{0} value='1'/>", n)),
    "information of one name": lambda n: _one_layer(tail=_information("<x value='{0}'/>", n)),
    "information of a layer": lambda n: _one_layer(extra=_information("<x{0} value='1'/>", n)),
    "tensor names": lambda n: _one_layer(names=f" names='{_many('t{0},', n)}'"),
    "unknown elements of a layer": lambda n: _one_layer(extra=_many("<x{0}/>", n)),
    "unknown elements of the net": lambda n: _one_layer(tail=_many("<x{0}/>", n)),
    "unknown elements of one name": lambda n: _one_layer(tail=_many("<x/>", n)),
}


# The options for converting them.
KEYWORDS: dict[str, dict[str, Any]] = {
    "layers in another opset": {"opset": 13},
    "layers in float16": {"precision": "float16"},
    "layers in float32": {"precision": "float32"},
    "layers of many kinds in float32": {"precision": "float32"},
    "copied constants": {"weights": "copy"},
    "constants referred to": {"weights": "reference"},
    "bodies in an older opset": {"opset": 17},
    "shapes": {"input_shapes": {"Parameter_0": [2]}},
}


# Their weights; the others have numbers after a one and a zero.
WEIGHTS: dict[str, Callable[[int], bytes]] = {
    "matrix multiplications with compressed weights": lambda n: _numbered(n * math.prod(COMPRESSED) // 4),
    "quantized convolutions": lambda n: _numbered(n * math.prod(FILTERS) // 4),
    "pieces of a tokenizer": _pieces,
    "tokens and merges of a tokenizer": lambda n: b"".join(a.tobytes() for texts in _tokens(n) for a in _packed(texts)),
}


def _numbered(count: int) -> bytes:
    return np.array([1, 0]).tobytes() + np.arange(max(8, count), dtype=np.float32).tobytes()


def make(name: str, n: int, folder: Path) -> Path:
    """Write the .xml of ``n`` of the named kind; return its path."""
    if name in WEIGHTS:
        weights = WEIGHTS[name](n)
    else:
        elements = LARGE if name in OF_LARGE else 2
        weights = _numbered(elements * (n if "constants" in name else 1))
    return write(folder, SUBJECTS[name](n), weights)


def measure(name: str, xml: Path) -> tuple[float, float]:
    """Return the processor time of a conversion in seconds, and the growth of the process in MiB."""
    with contextlib.suppress(OSError, AttributeError):  # otherwise free memory hides allocations
        ctypes.CDLL(None).malloc_trim(0)
    before, started = reset_peak(), time.process_time()
    convert(xml, xml.with_suffix(".onnx"), with_weights=False, **KEYWORDS.get(name, {}))
    return time.process_time() - started, (status("VmHWM") - before) / 2**20


def measured_apart(name: str, n: int) -> tuple[float, float]:
    """Run `measure` in a separate process after a warm-up; for few layers return the median of several runs."""
    code = "import sys; from pathlib import Path; from tests.converters.openvino.growth import measure\n"
    code += "found = [measure(sys.argv[1], Path(argument)) for argument in sys.argv[2:]][1:]\n"
    code += "print(sorted(seconds for seconds, _ in found)[len(found) // 2], max(memory for _, memory in found))"
    with tempfile.TemporaryDirectory() as small, tempfile.TemporaryDirectory() as large:
        files = [str(make(name, 3, Path(small))), *[str(make(name, n, Path(large)))] * (1 if n > SIZES[0] else 5)]
        done = subprocess.run([sys.executable, "-c", code, name, *files], stdout=subprocess.PIPE, text=True, check=True)
    seconds, memory = done.stdout.split()
    return float(seconds), float(memory)


def main() -> None:
    print(f"{'':32}" + "".join(f"{n:>12,} of them  " for n in SIZES) + "  growth beyond the number: time, memory")
    for name in sys.argv[1:] or SUBJECTS:
        found = [measured_apart(name, n) for n in SIZES]
        shown = [f"{seconds:9.2f} s {memory:6.0f} MiB " for seconds, memory in found]
        beyond = [
            [
                max(b[k], least) / max(a[k], least) / (m / n)
                for (a, n), (b, m) in itertools.pairwise(zip(found, SIZES, strict=True))
            ]
            for k, least in ((0, 0.1), (1, 8.0))  # smaller values are noise
        ]
        print(f"{name:32}", *shown, *(f"{rate:5.2f}" for rates in beyond for rate in rates), flush=True)


if __name__ == "__main__":
    main()
