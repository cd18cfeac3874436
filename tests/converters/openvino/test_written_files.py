"""The files that a conversion writes: never over an input, complete or absent, wherever the weights are."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset15 as ops

from converters.errors import MalformedError
from converters.openvino import ConversionError, convert
from converters.outputs import OverInputError

links = pytest.mark.skipif(sys.platform == "win32", reason="links need rights that users lack there")
MODES = ("embed", "copy", "reference")


def dense(folder: Path, size: int = 70, seed: int = 0) -> Path:
    """Save a dense layer and a string constant, with too many weights to fold or embed."""
    x = ops.parameter([-1, size], np.float32, name="x")
    weights = np.random.default_rng(seed).standard_normal((size, size)).astype(np.float32)
    words = ops.constant(ov.Tensor(np.array(["some", "words", "äöü"])))
    results = [ops.result(ops.matmul(x, ops.constant(weights), False, False)), ops.result(words)]
    ov.save_model(ov.Model(results, [x], "dense"), folder / "model.xml", compress_to_fp16=False)
    return folder / "model.xml"


def expected(xml: Path, x: np.ndarray) -> np.ndarray:
    return ov.Core().compile_model(xml, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([x])[0]


def assert_runs(xml: Path, onnx_path: Path) -> None:
    """Check that the file agrees with OpenVINO on the IR."""
    session = ort.InferenceSession(str(onnx_path))
    x = np.random.default_rng(1).standard_normal((3, session.get_inputs()[0].shape[1])).astype(np.float32)
    product, words = session.run(None, {"x": x})
    np.testing.assert_allclose(product, expected(xml, x), rtol=1e-4, atol=1e-5)
    assert list(words) == ["some", "words", "äöü"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# -- never over an input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", MODES)
@pytest.mark.parametrize("output", ["model.xml", "model.bin", "./model.xml", "link", "name"])
@links
def test_no_output_over_an_input(tmp_path: Path, output: str, weights: str) -> None:
    xml = dense(tmp_path)
    (tmp_path / "link").symlink_to("model.bin")
    os.link(xml, tmp_path / "name")
    before = contents(tmp_path)
    with pytest.raises(OverInputError):
        convert(xml, f"{tmp_path}/{output}", weights=weights)  # type: ignore[arg-type]
    assert contents(tmp_path) == before


def test_no_weights_over_an_input(tmp_path: Path) -> None:
    xml = dense(tmp_path)
    bin = (tmp_path / "model.bin").rename(tmp_path / "model.onnx.data")
    before = contents(tmp_path)
    with pytest.raises(OverInputError):
        convert(xml, tmp_path / "model.onnx", bin=bin, weights="copy")
    assert contents(tmp_path) == before
    convert(xml, tmp_path / "model.onnx", bin=bin, weights="reference")
    convert(xml, tmp_path / "model.onnx", bin=bin, weights="embed")
    assert {**before, "model.onnx": b""} == {**contents(tmp_path), "model.onnx": b""}


# -- complete or absent ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Limit the size of files, which has the effect of a full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("weights", "limit", "named"),
    [
        ("embed", 9000, "model.onnx"),
        ("copy", 9000, "model.onnx.data"),
        ("copy", 1000, "model.onnx.data"),
        ("reference", 100, "model.onnx"),
    ],
)
def test_a_full_disk_keeps_the_previous_files(tmp_path: Path, weights: str, limit: int, named: str) -> None:
    xml = dense(tmp_path)
    convert(xml, tmp_path / "model.onnx", weights="copy")
    dense(tmp_path, seed=1)
    before = contents(tmp_path)
    with pytest.raises(OSError) as error, largest_file(limit):
        convert(xml, tmp_path / "model.onnx", weights=weights)  # type: ignore[arg-type]
    assert error.value.filename == str(tmp_path / named)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("weights", MODES)
def test_an_interruption_keeps_the_previous_files(tmp_path: Path, weights, monkeypatch: pytest.MonkeyPatch) -> None:
    xml = dense(tmp_path)
    convert(xml, tmp_path / "model.onnx", weights="copy")
    before = contents(tmp_path)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("converters.saving.write_model", interrupted)
    with pytest.raises(KeyboardInterrupt):
        convert(xml, tmp_path / "model.onnx", weights=weights)
    assert contents(tmp_path) == before


def test_a_bin_that_changes_meanwhile_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    xml = dense(tmp_path)
    import converters.saving

    write_model = converters.saving.write_model

    def meanwhile(*arguments) -> None:
        write_model(*arguments)
        other = tmp_path / "other"
        other.mkdir()
        dense(other, seed=1).with_suffix(".bin").replace(xml.with_suffix(".bin"))

    monkeypatch.setattr("converters.saving.write_model", meanwhile)
    with pytest.raises(MalformedError, match="changed during the conversion"):
        convert(xml, tmp_path / "model.onnx", weights="reference")
    assert not (tmp_path / "model.onnx").exists()


# -- no stale or empty weights ---------------------------------------------------------------------------------------------


def test_unused_weights_are_removed(tmp_path: Path) -> None:
    xml, target = dense(tmp_path), tmp_path / "model.onnx"
    for weights in ("embed", "reference"):
        convert(xml, target, weights="copy")
        assert (tmp_path / "model.onnx.data").stat().st_size >= 70 * 70 * 4
        convert(xml, target, weights=weights)  # type: ignore[arg-type]
        assert not (tmp_path / "model.onnx.data").exists()
        assert_runs(xml, target)


def test_a_file_that_no_model_refers_to_is_kept(tmp_path: Path) -> None:
    xml, target = dense(tmp_path), tmp_path / "model.onnx"
    (tmp_path / "model.onnx.data").write_bytes(b"notes")
    convert(xml, target)
    convert(xml, target)
    assert (tmp_path / "model.onnx.data").read_bytes() == b"notes"


def test_no_empty_file_of_weights(tmp_path: Path) -> None:
    xml = dense(tmp_path, size=4)
    _, report = convert(xml, tmp_path / "model.onnx", weights="copy")
    assert report.weights == "embed"
    assert not (tmp_path / "model.onnx.data").exists()
    assert_runs(xml, tmp_path / "model.onnx")


# -- links -----------------------------------------------------------------------------------------------------------------


@links
@pytest.mark.parametrize("weights", MODES)
def test_files_in_a_cache_of_models(tmp_path: Path, weights: str) -> None:
    """Model hubs store symbolic links to files elsewhere."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir(), snapshot.mkdir()
    xml = dense(blobs)
    for name in ("model.xml", "model.bin"):
        (blobs / name).rename(blobs / f"{name}-hash")
        (snapshot / name).symlink_to(Path("..", "blobs", f"{name}-hash"))
    xml, before = snapshot / "model.xml", contents(blobs)
    for _ in range(2):
        _, report = convert(xml, snapshot / "model.onnx", weights=weights)  # type: ignore[arg-type]
        assert report.weights == weights
        assert_runs(xml, snapshot / "model.onnx")
    data = snapshot / "model.onnx.data"
    assert data.exists() == (weights != "embed")
    assert weights != "reference" or data.samefile(blobs / "model.bin-hash")
    for after in ("copy", "reference", "embed"):
        convert(xml, snapshot / "model.onnx", weights=after)  # type: ignore[arg-type]
        assert_runs(xml, snapshot / "model.onnx")
    assert contents(blobs) == before
    assert not data.exists()


@links
def test_weights_next_to_the_target_of_a_link(tmp_path: Path) -> None:
    xml = dense(tmp_path)
    (tmp_path / "model.bin").rename(tmp_path / "real")
    (tmp_path / "model.bin").symlink_to("real")
    model, _ = convert(xml, tmp_path / "model.onnx", weights="reference")
    assert {e.value for t in model.graph.initializer for e in t.external_data if e.key == "location"} == {"real"}
    assert not (tmp_path / "model.onnx.data").exists()
    assert_runs(xml, tmp_path / "model.onnx")


@links
def test_a_reference_without_a_possible_name_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "blobs").mkdir()
    xml = dense(tmp_path)
    (tmp_path / "model.bin").rename(tmp_path / "blobs" / "hash")
    (tmp_path / "model.bin").symlink_to("blobs/hash")

    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr("converters.saving.EMBEDDED_BYTES", 1000)
    with pytest.raises(ConversionError, match=r"Invalid cross-device link.*weights='copy'"):
        convert(xml, tmp_path / "model.onnx", weights="reference")
    assert convert(xml, tmp_path / "model.onnx").report.weights == "copy"
    assert_runs(xml, tmp_path / "model.onnx")


@links
@pytest.mark.parametrize("weights", MODES)
def test_files_with_several_names(tmp_path: Path, weights: str) -> None:
    xml = dense(tmp_path)
    os.link(tmp_path / "model.bin", tmp_path / "other")
    convert(xml, tmp_path / "model.onnx", weights=weights)  # type: ignore[arg-type]
    assert_runs(xml, tmp_path / "model.onnx")


# -- the bytes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", MODES)
def test_the_file_equals_the_returned_model(tmp_path: Path, weights: str) -> None:
    xml = dense(tmp_path)
    model, _ = convert(xml, tmp_path / "model.onnx", weights=weights)  # type: ignore[arg-type]
    assert onnx.load(tmp_path / "model.onnx", load_external_data=False) == model
    bare, _ = convert(xml, tmp_path / "model.onnx", weights=weights, with_weights=False)  # type: ignore[arg-type]
    assert onnx.load(tmp_path / "model.onnx", load_external_data=False) == model
    assert bare.ByteSize() < 3000


def test_a_model_beyond_the_limit_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("converters.streaming.MESSAGE_BYTES", 10_000)
    xml = dense(tmp_path)
    with pytest.raises(ConversionError, match="do not fit into one ONNX file; use weights='reference' or 'copy'"):
        convert(xml, tmp_path / "model.onnx", weights="embed")
    assert set(contents(tmp_path)) == {"model.xml", "model.bin"}
    convert(xml, tmp_path / "model.onnx", weights="copy")
    assert_runs(xml, tmp_path / "model.onnx")


def overlapping(folder: Path, count: int, size: int = 1 << 20) -> Path:
    """Write constants that start at consecutive bytes of a .bin of ``size`` bytes and extend to its end."""
    (folder / "model.bin").write_bytes(os.urandom(size))
    layers, edges = [], []
    for i in range(count):
        shape, port = size - i, f'<port id="0" precision="U8"><dim>{size - i}</dim></port>'
        layers += [
            f'<layer id="{2 * i}" name="c{i}" type="Const" version="opset1"><data element_type="u8" offset="{i}" '
            f'size="{shape}" shape="{shape}"/><output>{port}</output></layer>',
            f'<layer id="{2 * i + 1}" name="r{i}" type="Result" version="opset1"><input>{port}</input></layer>',
        ]
        edges.append(f'<edge from-layer="{2 * i}" from-port="0" to-layer="{2 * i + 1}" to-port="0"/>')
    text = f'<net name="n" version="11"><layers>{"".join(layers)}</layers><edges>{"".join(edges)}</edges></net>'
    (folder / "model.xml").write_text(text)
    return folder / "model.xml"


def test_shared_bytes_of_constants_are_stored_once(tmp_path: Path) -> None:
    xml = overlapping(tmp_path, 80)
    for keywords in ({}, {"onnx_path": tmp_path / "model.onnx", "weights": "embed"}):
        with pytest.raises(ConversionError, match=r"but the \.bin has"):
            convert(xml, **keywords)
    for weights in ("copy", "reference", "auto"):
        convert(xml, tmp_path / "model.onnx", weights=weights)  # type: ignore[arg-type]
        size = sum(path.stat().st_size for path in tmp_path.glob("model.onnx*"))
        assert size < 1.2 * (1 << 20)
        last = ort.InferenceSession(str(tmp_path / "model.onnx")).run(None, {})[-1]
        assert last.tobytes() == xml.with_suffix(".bin").read_bytes()[79:]


def test_layers_without_names(tmp_path):
    """The layers of an input and an output have empty names; ONNX's values need names."""
    x = ops.parameter([1, 3], np.float32)
    ov.save_model(ov.Model([ops.relu(x)], [x]), tmp_path / "model.xml", compress_to_fp16=False)
    text = (tmp_path / "model.xml").read_text()
    nameless = re.sub(r'(<layer id="\d+" name=)"[^"]*"', r'\1""', text)
    (tmp_path / "model.xml").write_text(re.sub(r' names="[^"]*"', "", nameless))
    model = convert(tmp_path / "model.xml").model
    (given,), (result,) = model.graph.input, model.graph.output
    assert given.name and result.name and given.name != result.name
    session = ort.InferenceSession(model.SerializeToString())
    np.testing.assert_array_equal(session.run(None, {given.name: np.array([[-1, 0, 2]], np.float32)})[0], [[0, 0, 2]])
