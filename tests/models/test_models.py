"""The example models agree with models/README.md: complete, portable, and consistent with OpenVINO."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

MODELS = Path(__file__).parents[2] / "models"
NAMES = [
    "embedding_bag_offsets_sum",
    "matmul",
    "multinomial",
    "recommender",
    "recommender_int",
    "scatter_elements_update",
    "vocabulary_table",
]
OPERATORS = {
    "EmbeddingBagOffsetsSum",
    "ScatterElementsUpdate",
    "Multinomial",
    "MatMul",
}
STRING_LAYERS = {"StringTensorUnpack", "VocabEncoder", "StringToHashBucket"}


def layers(name: str) -> list[ElementTree.Element]:
    return list(ElementTree.parse(MODELS / name / "model.xml").getroot().iterfind("layers/layer"))


def arrays(name: str, file: str) -> dict[str, np.ndarray]:
    with np.load(MODELS / name / file, allow_pickle=False) as loaded:
        return {key: loaded[key] for key in loaded.files}


def test_every_folder_is_listed() -> None:
    assert sorted(path.parent.name for path in MODELS.glob("*/model.xml")) == NAMES


def test_the_models_stay_small() -> None:
    files = [path for path in MODELS.glob("*/*") if path.is_file() and ".onnx" not in path.name]  # converted models
    assert sum(path.stat().st_size for path in files) < 2_000_000


@pytest.mark.parametrize("name", NAMES)
def test_arrays_are_named_and_typed_like_the_inputs_and_outputs(name: str) -> None:
    precisions = {"FP16": "f2", "FP32": "f4", "FP64": "f8", "BOOL": "?", "I8": "i1", "U8": "u1"}
    precisions |= {"I32": "i4", "I64": "i8"}
    for file, kind, port in (
        ("inputs.npz", "Parameter", "output/port"),
        ("expected.npz", "Result", "input/port"),
    ):
        of_kind = [layer for layer in layers(name) if layer.get("type") == kind]
        loaded = arrays(name, file)
        assert list(loaded) == [layer.get("name") for layer in of_kind]
        for layer, array in zip(of_kind, loaded.values(), strict=True):
            declared = layer.find(port)
            assert declared is not None
            dims = [int(dim.text or "") for dim in declared.iterfind("dim")]
            assert len(dims) == array.ndim
            assert all(dim in (-1, size) for dim, size in zip(dims, array.shape, strict=True))
            precision = declared.get("precision", "")
            if precision == "STRING":
                assert array.dtype.kind == "U"
            else:
                assert array.dtype == np.dtype(precisions[precision]), layer.get("name")


@pytest.mark.parametrize("name", NAMES)
def test_no_machine_path_is_in_the_model(name: str) -> None:
    text = (MODELS / name / "model.xml").read_text(encoding="utf-8")
    assert not re.search(r"""["'>\s](/[\w.-]+/|[A-Za-z]:[\\/]|\\\\|~/)""", text)


@pytest.mark.parametrize("name", ["recommender", "recommender_int"])
def test_the_recommenders_are_complete(name: str) -> None:
    found = layers(name)
    types = Counter(layer.get("type", "") for layer in found)
    expected = OPERATORS | (STRING_LAYERS if name == "recommender" else set())
    assert expected <= set(types)
    assert sum(types.values()) - types["Const"] >= 60
    assert not (name == "recommender_int" and STRING_LAYERS & set(types))
    # The batch of users is dynamic in every output.
    for layer in found:
        if layer.get("type") == "Result":
            assert layer.findtext("input/port/dim") == "-1"


@pytest.mark.parametrize("name", NAMES)
def test_openvino_computes_the_expected_outputs(name: str) -> None:
    import openvino as ov
    import openvino_tokenizers  # noqa: F401  (adds the layers of strings to OpenVINO)

    compiled = ov.Core().compile_model(MODELS / name / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    values = arrays(name, "inputs.npz")
    outputs = compiled({port.any_name: values[port.any_name] for port in compiled.inputs})
    for port, (key, want) in zip(compiled.outputs, arrays(name, "expected.npz").items(), strict=True):
        assert port.any_name == key
        got = np.array(outputs[port])
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=key)
        else:
            np.testing.assert_array_equal(got, want, err_msg=key)
