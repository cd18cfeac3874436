"""Damaged files and files that are not IR raise a `MalformedError` with a description, never anything worse."""

from __future__ import annotations

import os
import random
import re
import time
import tracemalloc

import pytest

from converters.errors import ConversionError, MalformedError, Problem
from converters.openvino.reader.read import read

from . import ir_text
from .agreement import assert_agrees
from .ir_text import const, edge, layer, net, parameter, result

CHAIN = [parameter(), layer(1, "ReLU", inputs=[(2,)], outputs=[(2,)]), result(2)]
RELU = layer(1, "ReLU", inputs=[(2,)], outputs=[(2,)])
ADD = layer(1, "Add", inputs=[(2,), (2,)], outputs=[(2,)])
EDGES = [edge(0, 0, 1, 0), edge(1, 1, 2, 0)]
GOOD = net(CHAIN, EDGES)

BODY = (
    '<port_map><input external_port_id="0" internal_layer_id="0"/>'
    '<output external_port_id="1" internal_layer_id="2"/></port_map>'
    '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
    f"<body>{ir_text.graph([parameter(), RELU, result(2)], EDGES)}</body>"
)


def with_body(body=BODY):
    iterator = layer(1, "TensorIterator", inputs=[(2,)], outputs=[(2,)], extra=body)
    return net([parameter(), iterator, result(2)], EDGES)


def with_constant(data, shape=(2,)):
    node = layer(0, "Const", outputs=[shape], data=data)
    return net([node, result(1, shape)], [edge(0, 0, 1, 0)])


def refusal(tmp_path, text, weights=bytes(16)):
    with pytest.raises(MalformedError) as error:
        read(ir_text.write(tmp_path, text, weights))
    for line in str(error.value).splitlines():
        assert line.startswith(str(tmp_path / "model.")), line
    return error.value


def test_the_undamaged_files_are_read(tmp_path):
    constant = with_constant('element_type="f32" shape="2" offset="8" size="8"')
    for text, types in (
        (GOOD, ["Parameter", "ReLU", "Result"]),
        (with_body(), ["Parameter", "TensorIterator", "Result"]),
        (constant, ["Const", "Result"]),
    ):
        assert [layer.type for layer in read(ir_text.write(tmp_path, text, bytes(16))).layers] == types


NO_IR = {
    "empty": (b"", "the file is empty"),
    "blank": (b" \n\t", "the file is empty"),
    "zeros": (bytes(1000), "not well-formed XML"),
    "noise": (random.Random(0).randbytes(10_000), "not well-formed XML"),
    "text": (b"hello", "not well-formed XML"),
    "half": (GOOD[: len(GOOD) // 2].encode(), "not well-formed XML"),
    "utf-16": (GOOD.encode("utf-16"), "not well-formed XML"),
    "windows-1252": (b'<?xml version="1.0" encoding="windows-1252"?><net/>', "the encoding windows-1252 is not UTF-8"),
    "bad utf-8": (GOOD.replace("Parameter_0", "\xff").encode("latin-1"), "not well-formed XML"),
    "another root": (b"<html/>", "the root element is <html>, not <net>"),
    "namespace": (b'<net xmlns="urn:x" version="11"/>', "the root element is <{urn:x}net>"),
    "no version": (b"<net/>", "the IR version is missing"),
    "old version": (b'<net version="1"/>', "IR version 1 is not supported; expected 2 to 7, 10 or 11"),
    "new version": (b'<net version="12"/>', "IR version 12 is not supported"),
    "no layers": (b'<net version="11"/>', "no <layers> in <net>"),
    "deep": (b'<net version="11">' + b"<a>" * 100_000, "not well-formed XML"),
    "deep information": (
        GOOD.replace("</net>", "<rt_info>" + "<a>" * 3000 + "</a>" * 3000 + "</rt_info></net>").encode(),
        "not well-formed XML",
    ),
    "huge name": (GOOD.replace("Parameter_0", "n" * 11_000_000).encode(), "not well-formed XML"),
    "document type": (b"<!DOCTYPE net><net version='11'/>", "it declares a document type"),
    "entities": (
        b'<?xml version="1.0"?>\n<!DOCTYPE net [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
        b'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><net name="&c;" version="11"/>',
        "it declares a document type",
    ),
    "file entity": (
        b'<!DOCTYPE net [<!ENTITY a SYSTEM "file:///etc/passwd">]><net name="n" version="11">&a;</net>',
        "it declares a document type",
    ),
    "unknown entity": (GOOD.replace("Parameter_0", "&a;").encode(), "not well-formed XML"),
}


@pytest.mark.parametrize("case", NO_IR)
def test_files_that_are_not_ir(tmp_path, case):
    text, message = NO_IR[case]
    assert message in str(refusal(tmp_path, text))


def test_paths_that_are_not_files(tmp_path):
    with pytest.raises(MalformedError, match="No such file"):
        read(tmp_path / "absent.xml")
    with pytest.raises(MalformedError, match="is a directory"):
        read(tmp_path)
    with pytest.raises(MalformedError, match="cannot be read"):
        read("null\0byte")
    path = ir_text.write(tmp_path, GOOD)
    with pytest.raises(MalformedError, match="No such file"):
        read(path, tmp_path / "absent.bin")
    with pytest.raises(MalformedError, match="is a directory"):
        read(path, tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(MalformedError, match="not a regular file"):
            read(tmp_path / "pipe")


def replaced(text, old, new, count=1):
    assert old in text
    return text.replace(old, new, count)


DAMAGES = {
    "same id": (
        net([parameter(), parameter(), result(2)], EDGES),
        ':9: layer "Parameter_0" (Parameter, id 0): layer "Parameter_0" has the same id',
    ),
    "same id, other ports": (net([parameter(), result(0)], [edge(0, 0, 0, 0)]), '"Parameter_0" has the same id'),
    "no id": (replaced(GOOD, 'id="1"', ""), "a layer must have an integer id"),
    "negative id": (replaced(GOOD, 'layer id="1"', 'layer id="-1"'), "a layer must have an integer id"),
    "huge id": (replaced(GOOD, 'layer id="1"', f'layer id="{10**30}"'), "a layer must have an integer id"),
    "digits of another script": (replaced(GOOD, 'layer id="1"', 'layer id="\u0661"'), "a layer must have an integer id"),
    "underscore": (replaced(GOOD, 'layer id="1"', 'layer id="1_0"'), "a layer must have an integer id"),
    "no version": (replaced(GOOD, ' version="opset1"', ""), "a layer must have an integer id, a name, a type"),
    "edges twice": (replaced(GOOD, "<edges>", "<edges/><edges>"), "a second <edges> in <net>"),
    "data twice": (replaced(GOOD, "<output>", "<data/><data/><output>"), "a second <data>"),
    "no precision": (replaced(GOOD, ' precision="FP32"', ""), 'precision "" of output port 0 is not a known element type'),
    "bad precision": (replaced(GOOD, "FP32", "FP31"), 'precision "FP31" of output port 0'),
    "bad element type": (replaced(GOOD, '"f32"', '"f31"'), 'element_type "f31" is not a known element type'),
    "no element type": (replaced(GOOD, 'element_type="f32"', ""), "the attribute element_type is missing"),
    "no shape": (replaced(GOOD, 'shape="2"', ""), "the attribute shape is missing"),
    "bad shape": (replaced(GOOD, 'shape="2"', 'shape="2,x"'), 'the attribute shape: "x" is not a valid dimension'),
    "negative shape": (replaced(GOOD, 'shape="2"', 'shape="-2"'), '"-2" is not a valid dimension'),
    "empty interval": (replaced(GOOD, 'shape="2"', 'shape="3..2"'), '"3..2" is not a valid dimension'),
    "bad dim": (replaced(GOOD, "<dim>2</dim>", "<dim>two</dim>"), '"two" is not a valid dimension'),
    "empty dim": (replaced(GOOD, "<dim>2</dim>", "<dim/>"), '"" is not a valid dimension'),
    "negative dim": (replaced(GOOD, "<dim>2</dim>", "<dim>-2</dim>"), '"-2" is not a valid dimension'),
    "huge dim": (replaced(GOOD, "<dim>2</dim>", f"<dim>{2**63}</dim>"), "is not a valid dimension"),
    "port without id": (replaced(GOOD, '<port id="0"', "<port"), "the id of a port must be an integer"),
    "same input port": (
        replaced(GOOD, '<input><port id="0"', '<input><port id="0"/><port id="0"'),
        "a second input port 0",
    ),
    "edge from nowhere": (net(CHAIN, [edge(9, 0, 1, 0), EDGES[1]]), "output 0 of layer 9, which does not exist"),
    "edge from no port": (net(CHAIN, [edge(0, 7, 1, 0), EDGES[1]]), "output 7 of layer 0, which does not exist"),
    "edge to an output": (net(CHAIN, [*EDGES, edge(0, 0, 1, 1)]), "input 1 of layer 1, which does not exist"),
    "edge without ends": (replaced(GOOD, 'from-layer="0"', ""), "the ends of an edge must be integers"),
    "two edges into one port": (
        net(CHAIN, [*EDGES, edge(0, 0, 1, 0)]),
        ':9: layer "ReLU_1" (ReLU, id 1): its input port has a second edge: port 0',
    ),
    "no edge": (net(CHAIN, EDGES[:1]), 'layer "Result_2" (Result, id 2): no edge is connected to its input'),
    "no edges": (replaced(GOOD, "<edges>", "<edges/><!--").replace("</edges>", "-->"), "no edge is connected to its input"),
    "cycle": (
        net(
            [parameter(), ADD, layer(3, "ReLU", inputs=[(2,)], outputs=[(2,)]), result(2)],
            [edge(0, 0, 1, 0), edge(3, 1, 1, 1), edge(1, 2, 3, 0), edge(1, 2, 2, 0)],
        ),
        "it depends on its own result: the graph has a cycle",
    ),
    "result that feeds a layer": (
        net([parameter(), layer(1, "Result", inputs=[(2,)], outputs=[(2,)]), result(2)], EDGES),
        'layer "Result_1" (Result, id 1): an edge connects it to layer 2',
    ),
    "layer that feeds itself": (
        net([parameter(), ADD, result(2)], [edge(0, 0, 1, 0), edge(1, 2, 1, 1), edge(1, 2, 2, 0)]),
        'layer "Add_1" (Add, id 1): it depends on its own result',
    ),
    "parameter with an input": (
        net([layer(0, "Parameter", inputs=[(2,)], outputs=[(2,)]), result(1)], [edge(0, 1, 1, 0), edge(0, 1, 0, 0)]),
        "it has 1 inputs and 1 outputs; expected 0 and 1",
    ),
    "convert to nothing": (
        net([parameter(), layer(1, "Convert", inputs=[(2,)], outputs=[(2,)]), result(2)], EDGES),
        "the attribute destination_type is missing",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGES)
def test_damaged_graphs(tmp_path, case):
    text, message = DAMAGES[case]
    assert message in str(refusal(tmp_path, text))


BEYOND = "the .bin file has 16 bytes, but 1 constant reaches byte"
CONSTANTS = {
    "beyond the file": ('element_type="f32" shape="2" offset="12" size="8"', BEYOND),
    "offset beyond the file": ('element_type="f32" shape="2" offset="4096" size="8"', BEYOND),
    "offset beyond all files": (f'element_type="f32" shape="2" offset="{2**63 - 1}" size="8"', "the .bin file has 16 bytes"),
    "negative offset": ('element_type="f32" shape="2" offset="-8" size="8"', "offset and size must be integers"),
    "negative size": ('element_type="f32" shape="2" offset="0" size="-8"', "offset and size must be integers"),
    "no offset": ('element_type="f32" shape="2" size="8"', "offset and size must be integers"),
    "too small": ('element_type="f32" shape="2" offset="0" size="7"', "f32 of shape [2] takes 8 bytes, but size is 7"),
    "too small for its bits": ('element_type="u3" shape="9" offset="0" size="4"', "u3 of shape [9] takes 6 bytes"),
    "many elements": ('element_type="u1" shape="1000000000000" offset="0" size="8"', "but size is 8"),
    "more than any memory": (f'element_type="u1" shape="{2**62},{2**62}" offset="0" size="8"', "is too large"),
    "nothing of much": (f'element_type="f32" shape="0,{2**62},{2**62}" offset="0" size="0"', "is too large"),
    "many dimensions": (f'element_type="f32" shape="{",".join("1" * 70)}" offset="0" size="4"', "70 dimensions"),
    "very many dimensions": (f'element_type="f32" shape="{",".join("9" * 99999)}" offset="0" size="4"', "99999 dimensions"),
    "unknown dimension": ('element_type="f32" shape="?" offset="0" size="8"', "the shape of a constant must be known"),
    "unknown rank": ('element_type="f32" shape="..." offset="0" size="8"', "the shape of a constant must be known"),
    "interval": ('element_type="f32" shape="1..2" offset="0" size="8"', "the shape of a constant must be known"),
    "dynamic": ('element_type="dynamic" shape="2" offset="0" size="8"', "a constant cannot be of dynamic type"),
    "string": ('element_type="string" shape="2" offset="0" size="0"', "a string constant requires at least 4 bytes"),
    "no data": ("", "offset and size must be integers"),
    "no element type": ('shape="2" offset="0" size="8"', "the attribute element_type is missing"),
    "no shape": ('element_type="f32" offset="0" size="8"', "the attribute shape is missing"),
}  # fmt: skip


@pytest.mark.parametrize("case", CONSTANTS)
def test_damaged_constants(tmp_path, case):
    data, message = CONSTANTS[case]
    assert message in str(refusal(tmp_path, replaced(with_constant(data), "<dim>2</dim>", "", 2)))


def test_missing_weights(tmp_path):
    text = with_constant('element_type="f32" shape="2" offset="0" size="8"')
    error = refusal(tmp_path, text, None)
    assert "1 constant has its value in the .bin file, which is missing; put the .bin file next to the .xml" in str(error)
    assert "the .bin file has 0 bytes" in str(refusal(tmp_path, text, b""))


def test_a_common_cause_of_many_layers_is_reported_once(tmp_path):
    constants = [const(i, "f32", (2,), 8, 8 * i) for i in range(50)]
    results = [result(100 + i) for i in range(50)]
    text = net([*constants, *results], [edge(i, 0, 100 + i, 0) for i in range(50)])
    missing = refusal(tmp_path, text, None)
    assert [problem.layer_name for problem in missing.problems] == ["Const_0"]
    assert "50 constants have their values in the .bin file, which is missing" in str(missing)
    assert "the .bin file has 100 bytes, but 38 constants reach byte 400" in str(refusal(tmp_path, text, bytes(100)))


BODIES = {
    "no input": (replaced(BODY, 'input external_port_id="0"', 'input external_port_id="3"'), "layer 1 has no input 3"),
    "no such parameter": (
        replaced(BODY, 'internal_layer_id="0"', 'internal_layer_id="1"'),
        "the port map names layer 1, which is not a Parameter of the body",
    ),
    "no such result": (
        replaced(BODY, 'internal_layer_id="2"', 'internal_layer_id="0"'),
        "the port map names layer 0, which is not a Result of the body",
    ),
    "no output": (
        replaced(BODY, '<output external_port_id="1" internal_layer_id="2"/>', ""),
        "it has 1 outputs, but its port map defines these: none",
    ),
    "output without a port": (
        replaced(BODY, '<output external_port_id="1"', '<output external_port_id="-1"'),
        "it has 1 outputs, but its port map defines these: none",
    ),
    "output twice": (
        replaced(BODY, "<output", '<output external_port_id="1" internal_layer_id="2"/><output'),
        "its port map defines these: 1, 1",
    ),
    "no number": (replaced(BODY, 'external_port_id="0"', 'external_port_id="x"'), "external_port_id must be an integer"),
    "no axis": (replaced(BODY, 'external_port_id="0"', 'axis="" external_port_id="0"'), "axis must be an integer"),
    "unknown purpose": (replaced(BODY, "<input ", '<input purpose="x" '), 'unknown purpose "x"'),
    "bad back edge": (replaced(BODY, 'to-layer="0"/></back', 'to-layer="1"/></back'), "a back edge must connect a Result"),
    "back edge twice": (
        replaced(BODY, "<back_edges>", '<back_edges><edge from-layer="2" to-layer="0"/>'),
        "a second back edge leads to it",
    ),
    "parameter without a value": (
        replaced(BODY, '<input external_port_id="0" internal_layer_id="0"/>', ""),
        "the port map of layer 1 gives it no value",
    ),
    "parameter with two": (
        replaced(BODY, "<input ", '<input external_port_id="0" internal_layer_id="0"/><input '),
        "the port map of layer 1 gives it more than one value",
    ),
    "damaged body": (replaced(BODY, 'precision="FP32"', ""), 'layer "Parameter_0" (Parameter, id 0): the precision ""'),
    "body without layers": ("<body/>", "no <layers> in <body>"),
    "two bodies": (BODY + "<body/>", "a second <body>"),
    "map without a body": ("<then_port_map/>", "a <then_port_map> without a <then_body>"),
    "edges without a body": ("<back_edges/>", "<back_edges> without a <body>"),
}  # fmt: skip


@pytest.mark.parametrize("case", BODIES)
def test_damaged_bodies(tmp_path, case):
    body, message = BODIES[case]
    assert message in str(refusal(tmp_path, with_body(body)))


PASSED_OVER = {
    "in net": (replaced(GOOD, "<edges>", "<statistics/><blob/><edges>"), "the element <blob> in <net>"),
    "in layers": (replaced(GOOD, "<layers>", "<layers><blob/>"), "the element <blob> in <layers>"),
    "in layer": (replaced(GOOD, "</layer>", "<blobs/></layer>"), "the element <blobs> in <layer>"),
    "in edges": (replaced(GOOD, "<edges>", "<edges><wire/>"), "the element <wire> in <edges>"),
    "in input": (replaced(GOOD, "<input>", "<input><pin/>"), "the element <pin> in <input>"),
    "in port": (replaced(GOOD, "<dim>2</dim>", "<dim>2</dim><size/>"), "the element <size> in <port>"),
    "in data": (
        replaced(GOOD, '<data shape="2" element_type="f32"/>', '<data shape="2" element_type="f32"><x/></data>'),
        "the element <x> in <data>",
    ),
    "in body": (with_body(replaced(BODY, "<body>", "<body><meta/>")), "the element <meta> in <body>"),
    "in port map": (with_body(replaced(BODY, "<port_map>", "<port_map><inout/>")), "the element <inout> in a port map"),
    "in back edges": (with_body(replaced(BODY, "<back_edges>", "<back_edges><arc/>")), "the element <arc> in a port map"),
    "attribute of a port map": (
        with_body(replaced(BODY, "<input ", '<input step="2" ')),
        "the attribute step in a port map",
    ),
    "stale shape": (replaced(GOOD, 'shape="2"', 'shape="3"'), "the dimensions of a Parameter's port that differ"),
    "stale port": (
        replaced(GOOD, '<input><port id="0"><dim>2</dim>', '<input><port id="0"><dim>4</dim>'),
        "the dimensions of an input port that differ from those of its source",
    ),
    "constant of more bytes": (
        with_constant('element_type="f32" shape="2" offset="0" size="9"'),
        "bytes of a constant beyond those that its shape needs",
    ),
    "layers without use": (
        net([*CHAIN, layer(7, "Nonsense", inputs=[(3,)], outputs=[(5,)], version="opset99")], EDGES),
        "layers without effect on a result",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PASSED_OVER)
def test_ignored_content_is_ignored_and_reported(tmp_path, case):
    text, message = PASSED_OVER[case]
    model, _ = assert_agrees(ir_text.write(tmp_path, text, bytes(16)), ranks="cautious", stale=True)
    (remark,) = [remark for remark in model.remarks if message in remark.message]
    assert remark.count >= 1
    assert remark.first.line is not None
    assert str(remark.first).startswith(str(tmp_path / "model.xml:"))


def test_a_note_is_reported_once_with_its_count(tmp_path):
    text = replaced(GOOD, "<layers>", "<layers>" + "<blob/>\n" * 5000)
    (remark,) = read(ir_text.write(tmp_path, text)).remarks
    assert (remark.message, remark.count, remark.first.line) == ("the element <blob> in <layers>", 5000, 3)


def test_bodies_within_bodies(tmp_path):
    def nested(depth):
        text = BODY
        for _ in range(depth - 1):
            inner = layer(1, "TensorIterator", inputs=[(2,)], outputs=[(2,)], extra=text)
            text = replaced(BODY, RELU, inner)
        return with_body(text)

    model = read(ir_text.write(tmp_path, nested(32)))
    for _ in range(32):
        model = model.layers[1].bodies["body"]
    assert "nested more than 32 deep" in str(refusal(tmp_path, nested(33)))
    assert "not well-formed XML" in str(refusal(tmp_path, nested(2000)))


def test_all_problems_are_reported_at_once(tmp_path):
    damaged = [const(i, "f32", (2,), 7) for i in range(3, 8)]
    results = [result(i + 10) for i in range(3, 8)]
    edges = [*EDGES, *(edge(i, 0, i + 10, 0) for i in range(3, 8))]
    error = refusal(tmp_path, net([parameter(), RELU, result(2), *damaged, *results], edges))
    assert len(error.problems) == 5
    assert [problem.layer_id for problem in error.problems] == [3, 4, 5, 6, 7]
    (line,) = str(error).splitlines()  # of one cause
    said = r'.*model\.xml:19: layer "Const_3" \(Const, id 3\): f32 of shape \[2\] takes 8 bytes, but size is 7'
    assert re.fullmatch(rf"{said} \(and 4 more like it, lines 24, 29, 34, 39\)", line)


def test_the_number_of_problems_is_limited(tmp_path):
    error = refusal(tmp_path, net(["<layer/>\n"] * 100_000, []))
    assert len(error.problems) == 1000


def test_the_wording_of_problems():
    problem = Problem("is wrong", "model.xml", 12, "conv1", "Convolution", 7, "mend it")
    assert str(problem) == 'model.xml:12: layer "conv1" (Convolution, id 7): is wrong; mend it'
    assert str(Problem("is wrong")) == "is wrong"
    assert str(Problem("is wrong", line=3)) == "line 3: is wrong"
    assert str(Problem("is wrong", "m.xml", layer_name="a\nb\x1b[31m")) == 'm.xml: layer "a\\nb\\x1b[31m": is wrong'
    assert len(str(Problem("is wrong", layer_name="x" * 10_000))) < 300
    other = Problem("is as wrong", "model.xml", 13, "conv1", "Convolution", 7, "mend it")
    assert str(ConversionError([problem, other])).count("\n") == 1
    assert str(ConversionError([problem, problem])) == f"{problem} (and 1 more like it, line 12)"
    assert ConversionError(problem).problems == (problem,)


# Random damage


def corpus():
    constant = with_constant('element_type="f32" shape="2" offset="8" size="8"')
    loop = replaced(with_body(), 'TensorIterator"', 'Loop"', 1)
    strings = const(3, "string", (2,), 19, precision="STRING")
    with_strings = net([parameter(), RELU, result(2), strings, result(4)], [*EDGES, edge(3, 0, 4, 0)])
    return [GOOD, with_body(), constant, loop, with_strings]


WEIGHTS = b"\2\0\0\0\0\0\0\0\1\0\0\0\3\0\0\0abc"

NUMBERS = ["-1", "0", "1", "2", "3", "7", "4294967296", "9223372036854775807", "18446744073709551616", "1e9", "", "x", "?"]


def damaged(rng, text):
    """Return the text with one to four random changes of bytes, numbers or elements."""
    for _ in range(rng.randint(1, 4)):
        kind = rng.randrange(7)
        place = rng.randrange(len(text) + 1)
        if kind == 0:
            text = text[:place]
        elif kind == 1 and place < len(text):
            text = text[:place] + bytes([text[place] ^ (1 << rng.randrange(8))]) + text[place + 1 :]
        elif kind == 2:
            length = rng.randint(1, 80)
            text = text[:place] + text[place + length :]
        elif kind == 3:
            other = rng.randrange(len(text) + 1)
            text = text[:place] + text[other : other + rng.randint(1, 80)] + text[place:]
        elif kind == 4:
            numbers = list(re.finditer(rb'(?<=[">,])-?\d+(?=["<,])', text))
            if numbers:
                number = rng.choice(numbers)
                text = text[: number.start()] + rng.choice(NUMBERS).encode() + text[number.end() :]
        elif kind == 5:
            lines = text.split(b"\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            text = b"\n".join(lines)
        else:
            attributes = list(re.finditer(rb' [\w-]+="[^"]*"', text))
            if attributes:
                attribute = rng.choice(attributes)
                text = text[: attribute.start()] + text[attribute.end() :]
        if not text:
            break
    return text


def use(graph):
    """Access everything that a consumer of the graph may read."""
    for node in graph.layers:
        assert all(port.source is not None for port in node.inputs)
        if node.constant is not None:
            assert node.constant.numpy().shape == node.constant.shape
        for body in node.bodies.values():
            use(body)


@pytest.mark.parametrize("seed", range(5))
def test_random_damage_is_an_error_or_harmless(tmp_path, seed):
    rng = random.Random(seed)
    texts = [text.encode() for text in corpus()]
    refused = 0
    for _ in range(600):
        weights = bytearray(WEIGHTS)
        if rng.random() < 0.2:
            weights[rng.randrange(len(weights))] = rng.randrange(256)
        path = ir_text.write(tmp_path, damaged(rng, rng.choice(texts)), bytes(weights[: rng.choice([19, 19, 19, 12])]))
        try:
            use(read(path))
        except MalformedError as error:
            refused += 1
            assert str(error)
    assert 100 < refused < 600


def test_damaged_files_are_bounded_in_time_and_memory(tmp_path):
    wide = [layer(1, "Concat", inputs=[(1,)] * 20_000, outputs=[(20_000,)])]
    wide = net(
        [parameter(0, (1,)), *wide, result(2, (20_000,))],
        [edge(0, 0, 1, i) for i in range(20_000)] + [edge(1, 20_000, 2, 0)],
    )
    maps = "".join(f'<input external_port_id="0" internal_layer_id="{i}"/>' for i in range(10, 5010))
    many = replaced(BODY, "<port_map>", f"<port_map>{maps}")
    many = replaced(many, "<layers>", "<layers>" + "".join(parameter(i) for i in range(10, 5010)))
    started = time.process_time()
    for text in (wide, with_body(many)):
        path = ir_text.write(tmp_path, text)
        tracemalloc.start()
        read(path)
        assert tracemalloc.get_traced_memory()[1] < 200 * path.stat().st_size
        tracemalloc.stop()
    assert time.process_time() - started < 20
