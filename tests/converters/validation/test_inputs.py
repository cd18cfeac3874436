"""Inputs from files: the preprocessing of images, and the recognition of samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from PIL import Image

from converters.openvino import convert
from converters.validation.arrays import InputSpec
from converters.validation.images import Preprocessing, load_image
from converters.validation.inputs import ModelInputs, load_samples
from tests.converters.cli.specops import as_json, specops
from tests.converters.reports.pages import load, text_of

RED, GREEN = (255, 0, 0), (0, 255, 0)


def picture(path: Path, size: tuple[int, int] = (4, 2)) -> Path:
    """Write an image that is red on the left and green on the right."""
    image = Image.new("RGB", size, RED)
    image.paste(GREEN, (size[0] // 2, 0, *size))
    image.save(path)
    return path


def pixels(path: Path, dims: tuple, layout: str = "", element_type: str = "float", **information: str) -> np.ndarray:
    prepared = Preprocessing.stated({f"model_info {name}": value for name, value in information.items()})
    return load_image(path, InputSpec("x", element_type, dims), layout, prepared)


def test_the_layout(tmp_path: Path) -> None:
    path = picture(tmp_path / "p.png")
    as_chw = pixels(path, (1, 3, 2, 4))
    assert as_chw.shape == (1, 3, 2, 4) and as_chw.dtype == np.float32
    assert as_chw[0, :, 0, 0].tolist() == [255, 0, 0] and as_chw[0, :, 1, 3].tolist() == [0, 255, 0]
    np.testing.assert_array_equal(pixels(path, (1, 2, 4, 3)), as_chw.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(pixels(path, (3, 2, 4)), as_chw[0])
    np.testing.assert_array_equal(pixels(path, (None, None, None, 3), "[N,H,W,C]"), as_chw.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(pixels(path, (2, 3, None, 4), "NCHW"), np.repeat(as_chw, 2, 0))
    assert pixels(path, (1, 1, 2, 4)).shape == (1, 1, 2, 4)


def test_the_channels_mean_and_scale(tmp_path: Path) -> None:
    path = picture(tmp_path / "p.png")
    said = {"mean_values": "100 50 0", "scale_values": "10.0 5 1"}
    first = pixels(path, (1, 3, 2, 4), reverse_input_channels="True", **said)[0, :, 0, 0]
    assert first.tolist() == [15.5, -10, 0]
    assert pixels(path, (1, 3, 2, 4), reverse_input_channels="NO", **said)[0, :, 0, 0].tolist() == [-10, -10, 255]
    assert pixels(path, (1, 3, 2, 4), embedded_processing="True", **said)[0, :, 0, 0].tolist() == [255, 0, 0]
    as_bytes = pixels(path, (1, 3, 2, 4), element_type="uint8", reverse_input_channels="True")
    assert as_bytes.dtype == np.uint8 and as_bytes[0, :, 0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize(
    ("resize_type", "corner", "below"),
    [
        ("standard", [255, 0, 0], [255, 0, 0]),
        ("fit_to_window", [255, 0, 0], [7, 7, 7]),
        ("fit_to_window_letterbox", [7, 7, 7], [7, 7, 7]),
        ("crop", [255, 0, 0], [255, 0, 0]),
    ],
)
def test_the_sizes(tmp_path: Path, resize_type: str, corner: list[int], below: list[int]) -> None:
    path = picture(tmp_path / "p.png", (8, 4))
    said = {"resize_type": resize_type, "pad_value": "7", "reverse_input_channels": "True"}
    found = pixels(path, (1, 3, 8, 8), **said)[0]
    assert found.shape == (3, 8, 8)
    assert found[:, 0, 0].tolist() == corner
    assert found[:, 7, 0].tolist() == below


@pytest.mark.parametrize(
    ("dims", "layout", "said", "what"),
    [
        ((1, 5), "", {}, "it has 2 dimensions"),
        ((1, 5, 2, 4), "[N,C,H,W]", {}, "5 channels"),
        ((1, 3, 2, 4), "[N,C,D,W]", {}, "not an image input"),
        ((1, 3, 2, 4), "", {"mean_values": "1 2"}, "2 mean or scale values"),
        ((1, 3, 2, 4), "", {"resize_type": "stretch"}, "'stretch'"),
    ],
)
def test_inputs_that_are_not_images(tmp_path: Path, dims: tuple, layout: str, said: dict, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        pixels(picture(tmp_path / "p.png"), dims, layout, **said)


def test_folders(tmp_path: Path) -> None:
    two = ModelInputs([InputSpec("a", "float", (2,)), InputSpec("b", "int64", (1,))])
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", np.array([1, 2], np.float32))
        np.save(tmp_path / name / "b.npy", np.array([3]))
    np.savez(tmp_path / "third.npz", a=np.zeros(2, np.float32), b=np.array([4]))
    (tmp_path / "notes.txt").write_text("no sample")
    assert list(load_samples(tmp_path / "one", two)) == ["one"]
    samples = load_samples(tmp_path, two)
    assert {name: int(arrays["b"][0]) for name, arrays in samples.items()} == {"one": 3, "other": 3, "third.npz": 4}
    with pytest.raises(ValueError, match="one array, but the model has the inputs a, b"):
        load_samples(tmp_path / "one" / "a.npy", two)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="contains no samples"):
        load_samples(tmp_path / "empty", two)


def test_files_that_are_not_samples(tmp_path: Path) -> None:
    taken = ModelInputs([InputSpec("x", "float", (1, 3, 2, 4))])
    for name in ("x.png", "x.npy", "x.txt"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        with pytest.raises(ValueError, match=name):
            load_samples(tmp_path / name, taken)


def test_the_command(tmp_path: Path) -> None:
    """A model with metadata for image preprocessing, on a folder of images; the conversion has the same metadata."""
    x = ops.parameter([1, 3, 4, 4], np.float32, name="x")
    x.output(0).set_names({"x"})
    x.set_layout(ov.Layout("NCHW"))
    model = ov.Model([ops.reduce_mean(x, np.array([2, 3]), name="y")], [x])
    for name, value in {"reverse_input_channels": "True", "mean_values": "5 0 0", "scale_values": "2 1 1"}.items():
        model.set_rt_info(value, ["model_info", name])
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    (tmp_path / "images").mkdir()
    for name in ("a.png", "b.jpg"):
        picture(tmp_path / "images" / name, (4, 4))
    runtimes = ("--runtime", "openvino", "--runtime", "none")
    page = tmp_path / "report.html"
    command = ("validate", tmp_path / "model.xml", "--inputs", tmp_path / "images", "--json", "--report", page)
    result = specops(*command, *runtimes)
    assert result.exit_code == 0, result.output
    document = as_json(result)
    assert document["samples"] == ["a.png", "b.jpg"] and document["samples_apart"] == {}
    assert "2 samples" in text_of(load(page), "runtimes")
    convert(tmp_path / "model.xml", tmp_path / "model.onnx")
    result = specops("run", tmp_path / "model.onnx", "--inputs", tmp_path / "images" / "a.png", "--json")
    assert result.exit_code == 0, result.output
    (output,) = as_json(result)["outputs"].values()
    assert output["values"] == [(127.5 - 5) / 2, 127.5, 0]
