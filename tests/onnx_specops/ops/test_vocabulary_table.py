"""VocabularyTable against TensorFlow's lookup tables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnx_specops
from onnx_specops.bodies import attach_bodies
from onnx_specops.hashing import hash_buckets, hash_strings
from tests.data import tensorflow
from tests.onnx_specops.ops.one_node import BODIES, KERNELS, RAISED, one_node, run, strings

CASES = tensorflow()["tables"]
SEED_KEYS = strings(["emerson", "lake", "and", "palmer", "dad", "mom", "hello"])
SEED_VOCABULARY = strings(["emerson", "lake", "palmer"])


def tensor(values, type_):
    return strings(values) if type_ == "string" else np.array(values, type_)


def arguments(case):
    inputs = {name: tensor(case[name], case["type"]) for name in ("keys", "vocabulary")}
    attributes = {name: case[name] for name in ("num_oov_buckets", "default_value", "hasher")}
    attributes |= {"hasher_key_0": case["hasher_key"][0], "hasher_key_1": case["hasher_key"][1]}
    return inputs, attributes


def name_of(case):
    return "-".join(map(str, [case["type"], len(case["keys"]), *list(case.values())[3:6], *case["hasher_key"]]))


def forms_of(case):
    """Return the forms that support the case: standard ONNX cannot hash, and onnxruntime-extensions and onnx truncate at
    NUL.
    """
    bodies = BODIES if case["num_oov_buckets"] < 2 else ()
    nul = ("python", "reference") if has_nul(case["keys"]) else ()
    return [form for form in (*KERNELS, *bodies) if form not in nul]


def has_nul(keys):
    return any(isinstance(key, str) and "\0" in key for key in keys)


@pytest.mark.parametrize("constants", [["vocabulary"], []], ids=["constant", "computed"])
@pytest.mark.parametrize(
    "case, form",
    [pytest.param(case, form, id=f"{name_of(case)}-{form}") for case in CASES for form in forms_of(case)],
)
def test_agreement_with_tensorflow(case, form, constants):
    inputs, attributes = arguments(case)
    ids = run(form, "VocabularyTable", inputs, attributes, constants)
    assert ids.dtype == np.int64
    assert ids.tolist() == case["ids"]


@pytest.mark.parametrize("form", KERNELS)
def test_the_documented_example(form):
    ids = run(form, "VocabularyTable", {"keys": SEED_KEYS, "vocabulary": SEED_VOCABULARY}, {"num_oov_buckets": 10})
    assert ids.tolist() == [0, 1, 10, 2, 9, 3, 9]


@pytest.mark.parametrize("form", KERNELS + BODIES)
@pytest.mark.parametrize("shape", [(), (0,), (7, 1), (1, 0, 2)])
def test_shapes(form, shape):
    keys = np.resize(SEED_KEYS, shape)
    ids = run(form, "VocabularyTable", {"keys": keys, "vocabulary": SEED_VOCABULARY}, {}, ["vocabulary"])
    assert ids.shape == shape
    assert ids.reshape(-1).tolist() == [0, 1, -1, 2, -1, -1, -1][: ids.size]


@pytest.mark.parametrize("form", ["numpy", "native"])
def test_any_bytes(form):
    vocabulary = strings([b"\xff\xfe", b"a\0", b"\xff", b"a"])
    keys = strings([b"a", b"\xff", b"a\0", b"\xff\xfe", b"\xfe", b"a\0\0"])
    ids = run(form, "VocabularyTable", {"keys": keys, "vocabulary": vocabulary}, {}, ["keys", "vocabulary"])
    assert ids.tolist() == [3, 2, 1, 0, -1, -1]


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("constants", [["vocabulary"], []], ids=["constant", "computed"])
@pytest.mark.parametrize(
    "vocabulary, attributes, message",
    [
        (strings(["a", "b\n", "b\n"]), {}, 'VocabularyTable: vocabulary[2] = "b\\x0a" repeats vocabulary[1]'),
        (np.array([5, -5, 5], np.int64), {}, "VocabularyTable: vocabulary[2] = 5 repeats vocabulary[0]"),
        (np.array([-5, -5], np.int32), {}, "VocabularyTable: vocabulary[1] = -5 repeats vocabulary[0]"),
        (np.empty(0, np.int64), {}, "VocabularyTable: vocabulary: no entries"),
        (strings([["a", "b"]]), {}, "VocabularyTable: vocabulary has the shape [1, 2]; expected one dimension"),
        (strings(["a"]), {"num_oov_buckets": -1}, "VocabularyTable: attribute num_oov_buckets = -1 is less than 0"),
        (strings(["a"]), {"num_oov_buckets": 2**63 - 1}, "exceed the range of ids"),
        (
            strings(["a"]),
            {"hasher": "md5"},
            "VocabularyTable: attribute hasher = 'md5' is not one of fasthash, legacy, stronghash",
        ),
    ],
)
def test_errors(form, constants, vocabulary, attributes, message):
    keys = strings(["a"]) if vocabulary.dtype == object else np.array([1], vocabulary.dtype)
    with pytest.raises(RAISED[form], match=re.escape(message)):
        run(form, "VocabularyTable", {"keys": keys, "vocabulary": vocabulary}, attributes, constants)


def test_errors_of_tensorflow():
    table, text = strings(["a"]), strings(["a", "b", "a"])
    calls = {
        "duplicate entry": lambda: run("numpy", "VocabularyTable", {"keys": table, "vocabulary": text}),
        "empty vocabulary": lambda: run("numpy", "VocabularyTable", {"keys": table, "vocabulary": text[:0]}),
        "no buckets": lambda: run("numpy", "StringToHashBucket", {"strings": table}, {"num_buckets": 0}),
    }
    refused = {name for name, error in tensorflow()["errors"].items() if error}
    assert refused == set(calls)
    for name in refused:
        with pytest.raises(ValueError, match=r"repeats|no entries|less than 1"):
            calls[name]()


def test_native_table_is_built_with_the_session():
    inputs = {"keys": strings(["a"]), "vocabulary": strings(["a", "a"])}
    model = one_node("VocabularyTable", inputs, constants=["vocabulary"])
    with pytest.raises(RAISED["native"], match=r"VocabularyTable: .*repeats"):
        onnx_specops.InferenceSession(model.SerializeToString(), kernels="native")


@pytest.mark.parametrize("type_", ["string", "int64", "int32"])
@pytest.mark.parametrize("num_oov_buckets", [0, 1000])
def test_many_keys(type_, num_oov_buckets):
    """Batches that are split over threads, with long and short strings, half of them unknown."""
    rng = np.random.default_rng(7)
    numbers = rng.choice(2**31 - 1, 40_000, replace=False).astype(np.int64) - 2**30
    values = numbers if type_ != "string" else strings([f"{'long ' * (n % 9)}{n}" for n in numbers])
    values = values.astype(np.int32) if type_ == "int32" else values
    vocabulary, keys = values[:20_000], values[rng.integers(0, 40_000, 100_000)]
    attributes = {"num_oov_buckets": num_oov_buckets}
    inputs = {"keys": keys, "vocabulary": vocabulary}
    ids = run("native", "VocabularyTable", inputs, attributes, ["vocabulary"])
    table = {entry: i for i, entry in enumerate(vocabulary.tolist())}
    texts = [str(key).encode() for key in keys.tolist()]
    unknown = 20_000 + hash_buckets(texts, num_oov_buckets) if num_oov_buckets else np.full(len(keys), -1)
    expected = [table.get(key, other) for key, other in zip(keys.tolist(), unknown.tolist(), strict=True)]
    assert ids.tolist() == expected


def test_colliding_strings():
    """Clustered entries switch to another hash; buckets are unchanged."""
    candidates = strings([f"entry {i}" for i in range(300_000)])
    hashes = hash_strings([text.encode() for text in candidates])
    chosen = candidates[np.argsort(hashes)[:4000]]
    vocabulary, keys = chosen[:3000], chosen[::-1]
    inputs = {"keys": keys, "vocabulary": vocabulary}
    ids = run("native", "VocabularyTable", inputs, {"num_oov_buckets": 10}, ["vocabulary"])
    buckets = 3000 + hash_buckets([key.encode() for key in keys[:1000]], 10)
    assert ids.tolist() == [*buckets.tolist(), *range(2999, -1, -1)]


def test_colliding_integers():
    """Inverts the native kernel's integer hash for hashes with a common prefix."""

    def undo_shift(word, shift):
        result = word
        for _ in range(64 // shift):
            result = word ^ (result >> shift)
        return result

    def unhash(word):
        for multiplier, shift in ((0xBF58476D1CE4E5B9, 29), (0x9E3779B97F4A7C15, 32)):
            word = undo_shift(word, 32) if multiplier == 0xBF58476D1CE4E5B9 else word
            word = undo_shift(word * pow(multiplier, -1, 2**64) % 2**64, shift)
        return word - 2**64 if word >= 2**63 else word

    vocabulary = np.array([unhash((0x12345678 << 32) | i) for i in range(30_000)], np.int64)
    inputs = {"keys": np.append(vocabulary, 5), "vocabulary": vocabulary}
    ids = run("native", "VocabularyTable", inputs, {}, ["vocabulary"])
    assert ids.tolist() == [*range(30_000), -1]


def test_strings_through_the_c_interface():
    """The results are the same if ONNX Runtime's strings cannot be read in place."""
    root = Path(__file__).parents[3]
    code = (
        f"import sys; sys.path.append({str(root)!r})\n"
        "from tests.onnx_specops.ops import test_vocabulary_table as t\n"
        "for case in t.CASES:\n"
        "    inputs, attributes = t.arguments(case)\n"
        "    for constants in (['vocabulary'], []):\n"
        "        assert t.run('native', 'VocabularyTable', inputs, attributes, constants).tolist() == case['ids']\n"
        "t.test_many_keys('string', 1000)\n"
        "t.test_any_bytes('native')\n"
        "print('agree')\n"
    )
    environment = os.environ | {"ONNX_SPECOPS_STRINGS": "api"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "agree", done.stderr


@pytest.mark.parametrize("kernels", ["native", "python"])
def test_vocabulary_of_an_outer_graph(kernels):
    """A node in a branch, whose vocabulary is a constant of the outer graph."""
    inputs = {"keys": SEED_KEYS, "vocabulary": SEED_VOCABULARY}
    model = one_node("VocabularyTable", inputs, {"num_oov_buckets": 10}, ["vocabulary"])
    node = model.graph.node[0]
    output = helper.make_tensor_value_info("ids", TensorProto.INT64, [None])
    other = helper.make_node("Constant", [], ["other"], value_ints=[1])
    known = helper.make_graph([node], "then", [], [output])
    empty = helper.make_graph([other], "else", [], [helper.make_tensor_value_info("other", TensorProto.INT64, [1])])
    branch = helper.make_node("If", ["condition"], ["result"], then_branch=known, else_branch=empty)
    graph = helper.make_graph(
        [branch],
        "outer",
        [*model.graph.input, helper.make_tensor_value_info("condition", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("result", TensorProto.INT64, [None])],
        model.graph.initializer,
    )
    outer = helper.make_model(graph, opset_imports=model.opset_import, ir_version=10)
    session = onnx_specops.InferenceSession(outer.SerializeToString(), kernels=kernels)
    ids = session.run(None, {"keys": SEED_KEYS, "condition": np.array(True)})[0]
    assert ids.tolist() == [0, 1, 10, 2, 9, 3, 9]


def test_shape_inference():
    model = one_node("VocabularyTable", {"keys": strings([["a"]]), "vocabulary": SEED_VOCABULARY})
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 5
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    output = inferred.graph.output[0].type.tensor_type
    assert output.elem_type == TensorProto.INT64
    assert [dim.dim_value for dim in output.shape.dim] == [0, 5]


def test_bodies_of_nodes_with_and_without_buckets():
    """A node that must hash has no body; another node of the same operator keeps its body."""
    import onnx_ir as ir

    inputs = {"keys": SEED_KEYS, "vocabulary": SEED_VOCABULARY}
    model = one_node("VocabularyTable", inputs, {"num_oov_buckets": 10})
    second = onnx.NodeProto()
    second.CopyFrom(model.graph.node[0])
    second.output[0] = "found"
    del second.attribute[:]
    model.graph.node.append(second)
    graph = ir.from_proto(model)
    assert attach_bodies(graph) == ["VocabularyTable"]
    assert len(graph.functions) == 1
