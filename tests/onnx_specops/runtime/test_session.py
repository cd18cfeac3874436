"""Sessions: the selection of kernels, loading, and the errors for missing parts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import onnx_specops
from onnx_specops.runtime import library
from onnx_specops.runtime import session as session_module
from onnx_specops.runtime.errors import MissingKernelError
from onnx_specops.runtime.extensions import kernels as python_kernels
from tests.onnx_specops.runtime.graphs import PLACES, TABLE, constants, model, sum_of_rows, value

KERNELS = [*(["native"] if library.has_library() else []), "python", "none"]
INDICES = {"indices": np.array([1, 3])}
SUM = TABLE[[1]] + TABLE[[3]]


def quiet() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return options


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("place", PLACES)
def test_kernels_everywhere(place, kernels) -> None:
    made = onnx_specops.add_bodies(place()) if kernels == "none" else place()
    session = onnx_specops.InferenceSession(made.SerializeToString(), kernels=kernels)
    assert isinstance(session, ort.InferenceSession)
    assert session.kernels == kernels
    np.testing.assert_array_equal(session.run(None, INDICES)[0], SUM)


@pytest.mark.parametrize("kernels", KERNELS)
def test_from_paths_and_bytes(kernels, tmp_path: Path) -> None:
    made = onnx_specops.add_bodies(sum_of_rows())
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    for source in (path, str(path), path.read_bytes()):
        session = onnx_specops.InferenceSession(source, kernels=kernels)
        np.testing.assert_array_equal(session.run(["sum"], INDICES)[0], SUM)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_path_that_is_not_utf8(tmp_path: Path) -> None:
    """ONNX Runtime only opens UTF-8 paths; its own error is about the types of arguments."""
    path = tmp_path / os.fsdecode(b"mod\xe8le.onnx")
    onnx.save(onnx_specops.add_bodies(sum_of_rows()), path)
    for given in (path, str(path)):
        with pytest.raises(ValueError, match=r"mod\\udce8le\.onnx is not UTF-8, so ONNX Runtime cannot open it"):
            onnx_specops.InferenceSession(given)
    assert onnx_specops.InferenceSession(path.rename(tmp_path / "modèle.onnx")).get_inputs()


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("type_", [np.float32, np.float16])
def test_external_weights_next_to_the_model(kernels, type_, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative to the model, not to the working directory. Weights are never copied into the model's bytes."""
    made = onnx_specops.add_bodies(sum_of_rows(TABLE.astype(type_)))
    folder = tmp_path / "folder"
    folder.mkdir()
    onnx.save(made, folder / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    monkeypatch.chdir(tmp_path)
    for path in ("folder/model.onnx", Path("folder/model.onnx"), folder / "model.onnx"):
        session = onnx_specops.InferenceSession(path, kernels=kernels)
        np.testing.assert_array_equal(session.run(None, INDICES)[0], SUM.astype(type_))


@pytest.mark.parametrize("kernels", KERNELS)
def test_options_reused_for_a_model_in_another_folder(kernels, tmp_path: Path) -> None:
    """Weights with the same file name in another folder are not mixed up."""
    options = quiet()
    sevens = model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [value("x", TensorProto.FLOAT, [4])],
        [value("y", TensorProto.FLOAT, [4])],
        [onnx.numpy_helper.from_array(np.full(4, 7, np.float32), "w")],
    )
    for folder, made in (("one", onnx_specops.add_bodies(sum_of_rows())), ("other", sevens)):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "model.onnx"
        onnx.save(made, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        session = onnx_specops.InferenceSession(path, options, kernels=kernels)
        session.set_providers(["CPUExecutionProvider"])  # creates the session again
        if folder == "one":
            np.testing.assert_array_equal(session.run(None, INDICES)[0], SUM)
    np.testing.assert_array_equal(session.run(None, {"x": np.zeros(4, np.float32)})[0], [7] * 4)
    plain = ort.InferenceSession(path, options)
    np.testing.assert_array_equal(plain.run(None, {"x": np.zeros(4, np.float32)})[0], [7] * 4)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a file with holes takes its place on the disk")
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("type_", [np.float32, np.float16])
def test_more_weights_than_the_limit_of_protobuf(kernels, type_, tmp_path: Path) -> None:
    """Beyond 2 GiB, also if the model is rewritten for Python kernels. Only used weights are read."""
    dtype, width = np.dtype(type_), 4096
    rows = 2**31 // (width * dtype.itemsize) + 8
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    table = TensorProto(name="table", data_type=kind, dims=[rows, width], data_location=TensorProto.EXTERNAL)
    table.external_data.add(key="location", value="weights.bin")
    with (tmp_path / "weights.bin").open("wb") as file:
        file.seek((rows - 1) * width * dtype.itemsize)
        file.write(np.full(width, 0.5, dtype).tobytes())
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("ErfInv", ["rows"], ["y"], domain=onnx_specops.DOMAIN),
    ]
    made = model(nodes, [value("ids", TensorProto.INT64, [2])], [value("y", kind, [2, width])], [table])
    onnx.save(onnx_specops.add_bodies(made), tmp_path / "model.onnx")
    session = onnx_specops.InferenceSession(tmp_path / "model.onnx", quiet(), kernels=kernels)
    (found,) = session.run(None, {"ids": np.array([0, rows - 1])})
    np.testing.assert_allclose(found[:, -1].astype(np.float32), [0, 0.4769363], rtol=1e-3)


def test_a_plain_session_with_native_kernels() -> None:
    if not library.has_library():
        pytest.skip("the native library is not built")
    options = ort.SessionOptions()
    options.register_custom_ops_library(onnx_specops.library_path())
    session = ort.InferenceSession(sum_of_rows().SerializeToString(), options)
    np.testing.assert_array_equal(session.run(None, INDICES)[0], SUM)


@pytest.mark.parametrize("kernels", [k for k in KERNELS if k != "none"])
def test_register_again_does_nothing(kernels) -> None:
    options = ort.SessionOptions()
    for again in (kernels, kernels, "auto"):
        onnx_specops.register(options, again)
    made = onnx_specops.add_bodies(sum_of_rows()).SerializeToString()
    for _ in range(2):
        session = onnx_specops.InferenceSession(made, options, kernels=kernels)
        np.testing.assert_array_equal(session.run(None, INDICES)[0], SUM)


def test_one_kind_of_kernels_for_options() -> None:
    if not library.has_library():
        pytest.skip("the native library is not built")
    options = ort.SessionOptions()
    onnx_specops.register(options, "native")
    with pytest.raises(ValueError, match="already have the native kernels; use separate options for the python kernels"):
        onnx_specops.register(options, "python")
    with pytest.raises(ValueError, match='kernels="none", but these session options have the native kernels'):
        onnx_specops.InferenceSession(sum_of_rows().SerializeToString(), options, kernels="none")


def test_unknown_kernels() -> None:
    with pytest.raises(ValueError, match="'cuda' is not one of"):
        onnx_specops.register(ort.SessionOptions(), "cuda")
    with pytest.raises(ValueError, match="'cuda' is not one of"):
        onnx_specops.InferenceSession(b"", kernels="cuda")


def test_auto_selects_available_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    made = onnx_specops.add_bodies(sum_of_rows()).SerializeToString()
    monkeypatch.setattr("onnx_specops.runtime.session.has_library", lambda: False)
    session_module._warn_of_python_kernels.cache_clear()
    with pytest.warns(RuntimeWarning, match="uses its Python kernels"):
        assert onnx_specops.InferenceSession(made).kernels == "python"
    monkeypatch.setattr(python_kernels, "is_available", lambda: False)
    with pytest.warns(
        RuntimeWarning, match=r"kernels of onnx_specops are not available.*pip install \"onnx-specops\[python-kernels\]\""
    ):
        session = onnx_specops.InferenceSession(made)
    assert session.kernels == "none"
    np.testing.assert_array_equal(session.run(None, INDICES)[0], SUM)


def test_no_native_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_PATH", Path("nowhere") / "libonnx_specops.so")
    monkeypatch.setattr(library, "installed_package", lambda own, name: None)
    with pytest.raises(MissingKernelError, match=r"not built .*pip install"):
        onnx_specops.library_path()
    with pytest.raises(MissingKernelError, match=r"not built .*pip install"):
        onnx_specops.register(ort.SessionOptions(), "native")


def hashing() -> onnx.ModelProto:
    node = helper.make_node("StringToHashBucket", ["text"], ["bucket"], domain=onnx_specops.DOMAIN, num_buckets=7)
    return model([node], [value("text", TensorProto.STRING, ["n"])], [value("bucket", TensorProto.INT64, ["n"])])


def test_none_names_the_operators_without_a_body(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(hashing(), path)
    for source in (path, path.read_bytes()):
        with pytest.raises(MissingKernelError, match=r"no bodies for StringToHashBucket\..*kernels=\"native\""):
            onnx_specops.InferenceSession(source, quiet(), kernels="none")
    assert "Falling back" not in capsys.readouterr().out


def test_the_error_without_kernels_suggests_bodies() -> None:
    with pytest.raises(MissingKernelError, match=r"EmbeddingBagOffsetsSum\..*onnx_specops.add_bodies\(model\)"):
        onnx_specops.InferenceSession(sum_of_rows().SerializeToString(), quiet(), kernels="none")


@pytest.mark.parametrize("kernels", KERNELS)
def test_invalid_models_are_reported_by_onnxruntime(kernels, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"INVALID_PROTOBUF|protobuf|ModelProto"):
        onnx_specops.InferenceSession(b"no model", quiet(), kernels=kernels)
    with pytest.raises(Exception, match=r"NO_SUCHFILE|doesn't exist"):
        onnx_specops.InferenceSession(tmp_path / "absent.onnx", quiet(), kernels=kernels)


@pytest.mark.parametrize("kernels", KERNELS)
def test_providers_can_be_set_again(kernels) -> None:
    made = onnx_specops.add_bodies(sum_of_rows()).SerializeToString()
    session = onnx_specops.InferenceSession(made, kernels=kernels, providers=["CPUExecutionProvider"])
    session.set_providers(["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, INDICES)[0], SUM)


def test_models_without_the_domain_are_unchanged() -> None:
    made = model(
        [helper.make_node("Gather", ["table", "offsets"], ["row"])],
        [],
        [value("row", TensorProto.FLOAT, [1, 3])],
        constants(),
    )
    for kernels in KERNELS:
        session = onnx_specops.InferenceSession(made.SerializeToString(), kernels=kernels)
        np.testing.assert_array_equal(session.run(None, {})[0], TABLE[:1])


def _integer_convolutions(shared: bool) -> tuple[onnx.ModelProto, np.ndarray]:
    """Return two convolutions, whose sums exceed 16 bits, and their input. They may share their weights."""
    rng = np.random.default_rng(0)
    arrays = {"s": np.float32(1), "z": np.uint8(0), "w": rng.choice([-127, 127], (16, 16, 1, 1)).astype(np.int8)}
    arrays |= {"other": arrays["w"].copy(), "small": np.float32(2**-12), "none": np.int8(0), "zero": np.int8(0)}
    second = "w, small, none" if shared else "other, small, zero"
    text = f"""
        <ir_version: 10, opset_import: ["": 21]>
        agraph (float[1,16,4,4] x) => (float[1,16,4,4] y)
        {{
            a = QuantizeLinear (x, s, z)
            b = DequantizeLinear (a, s, z)
            c = DequantizeLinear (w, small, none)
            d = Conv (b, c)
            e = QuantizeLinear (d, s, z)
            f = DequantizeLinear (e, s, z)
            g = DequantizeLinear ({second})
            h = Conv (f, g)
            i = QuantizeLinear (h, s, z)
            y = DequantizeLinear (i, s, z)
        }}
    """
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items())
    return model, rng.integers(200, 256, (1, 16, 4, 4)).astype(np.float32)


@pytest.mark.parametrize("shared", [False, True])
def test_sums_of_integers_do_not_saturate(shared: bool) -> None:
    """Without VNNI, ONNX Runtime adds products in 16 bits by default, and fails to avoid it for weights that are shared."""
    model, x = _integer_convolutions(shared)
    weights = onnx.numpy_helper.to_array(model.graph.initializer[2]).astype(np.int64)[:, :, 0, 0]
    expected = x.reshape(16, 16)
    for _ in range(2):
        expected = np.clip(np.rint(weights @ expected * 2.0**-12), 0, 255)
    options = ort.SessionOptions()
    for _ in range(2):  # the options stay usable
        (y,) = onnx_specops.InferenceSession(model, options, ["CPUExecutionProvider"], kernels="none").run(None, {"x": x})
        np.testing.assert_array_equal(y.reshape(16, 16), expected)


def test_a_choice_of_faster_products_is_kept() -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "0")
    onnx_specops.register(options, "python")
    assert options.get_session_config_entry("session.x64quantprecision") == "0"
    options = ort.SessionOptions()
    onnx_specops.register(options, "python")
    assert options.get_session_config_entry("session.x64quantprecision") == "1"
