"""Texts about images, without onnxruntime-genai: the tokens that transformers generates with OpenVINO."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onnx_specops.generation import GenerationError, VisionLanguageModel, open_model
from onnx_specops.generation.beams import log_softmax
from onnx_specops.generation.images import ImageProcessor
from tests.converters.cli.specops import as_json, specops
from tests.folders import vision
from tests.language.test_damaged_folders import VALUES
from tests.language.test_vision_genai import NAMES


@pytest.fixture(scope="module", params=NAMES)
def place(
    request: pytest.FixtureRequest, with_images: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a folder with the original model and, in OUT, its conversion."""
    return shutil.copytree(with_images(request.param), tmp_path_factory.mktemp("images") / request.param)


@pytest.fixture(scope="module")
def model(place: Path) -> VisionLanguageModel:
    model = open_model(place / "OUT")
    assert isinstance(model, VisionLanguageModel)
    return model


def test_texts_equal_openvinos(place: Path, model: VisionLanguageModel) -> None:
    expected = json.loads((place / "expected.json").read_text())
    for request, tokens in zip(vision.requests(place.name), expected, strict=True):
        text = "".join(model.write(request.text, vision.TOKENS, images=request.images))
        assert model.given == tokens and text == model.decode(tokens)


def test_scores_of_beams(place: Path, model: VisionLanguageModel) -> None:
    """The score of each text is the sum of its tokens' log probabilities, each computed with the whole text before it."""
    (_, one, _) = vision.requests(place.name)
    prepared = [model._processor(image) for image in one.images]
    model._images = prepared
    prompt = model.encode(model._expanded(one.text, prepared))
    (best, *_) = [list(model.generate(prompt, 5, beams=3))]
    assert best == list(model.hypotheses[0].tokens) and len(model.hypotheses) == 3
    constraints, read = model.constraints, [token for token in prompt if token >= 0]
    for found in model.hypotheses:
        score = 0.0
        ended = [] if len(found.tokens) == 5 else [sorted(model.ends)[0]]
        assert len(model.ends) == 1
        tokens = [*found.tokens, *ended]
        for count, token in enumerate(tokens):
            model._session.reset_state()
            before = list(found.tokens[:count])
            (logits,) = model._session.run(["logits"], model._feeds(np.array([[*prompt, *before]], np.int64), 0, [0]))
            allowed = constraints.applied(log_softmax(logits[0, -1]), [*read, *before], read, len(read))
            score += float(allowed[token])
        assert found.score == pytest.approx(score / len(tokens), abs=1e-4)
    model._held = []


def test_images_precede_a_text_without_places(place: Path, model: VisionLanguageModel) -> None:
    (_, one, _) = vision.requests(place.name)
    before = vision.place_of_image(place.name)
    found = []
    for text in (f"{before}What is it?", "What is it?"):
        list(model.write(text, 8, images=one.images))
        found.append(model.given)
    assert found[0] == found[1]


def test_other_images_with_the_same_tokens(place: Path, model: VisionLanguageModel) -> None:
    (_, one, _) = vision.requests(place.name)
    found = []
    for image in (one.images[0], 255 - one.images[0], one.images[0]):
        list(model.write(one.text, 8, images=[image]))
        found.append(model.given)
    assert found[0] == found[2] != found[1]


def test_numbers_of_images(place: Path, model: VisionLanguageModel) -> None:
    (_, one, two) = vision.requests(place.name)
    with pytest.raises(GenerationError, match="the prompt has 2 images, but 1 are given"):
        list(model.write(two.text, 8, images=one.images))
    with pytest.raises(GenerationError, match="1 tokens for images, whose features are 0"):
        list(model.generate([5, vision.IMAGE], 8))


def test_the_command(place: Path, tmp_path: Path) -> None:
    (_, one, _) = vision.requests(place.name)
    path = tmp_path / "image.png"
    Image.fromarray(one.images[0]).save(path)
    expected = json.loads((place / "expected.json").read_text())[1]
    for folder in (place, place / "OUT"):
        document = as_json(specops("generate", folder, one.text, "--tokens", vision.TOKENS, "--image", path, "--json"))
        assert document["ids"] == expected
    path.write_text("no image")
    result = specops("generate", place / "OUT", "What?", "--image", path)
    assert result.exit_code == 2 and "cannot be read as an image" in " ".join(result.stderr.split())


def test_chat(place: Path, model: VisionLanguageModel) -> None:
    before = vision.place_of_image(place.name).replace("|><|", "|><|image_pad|><|")
    template = (
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}"
        "{{ c.text if c.type == 'text' else '" + before + "' }}{% endfor %}{% endif %}{% endfor %}"
    )
    (place / "OUT" / "chat_template.jinja").write_text(template)
    (_, one, _) = vision.requests(place.name)
    list(model.chat([{"role": "user", "content": "What is it?"}], 8, images=one.images))
    given = model.given
    list(model.write("What is it?", 8, images=one.images, special=False))
    assert model.given == given


@pytest.mark.parametrize("size", [(90, 120), (70, 200), (13, 40), (300, 500), (56, 28)])
def test_images_are_prepared_as_by_transformers(place: Path, size: tuple[int, int]) -> None:
    pytest.importorskip("transformers")
    image = np.random.default_rng(2).integers(0, 256, (*size, 3), np.uint8)
    expected = vision.prepared(place, vision.Request(vision.place_of_image(place.name), (image,)))
    found = ImageProcessor(place / "OUT" / "image_processor_config.json")(image)
    np.testing.assert_allclose(found.pixels, expected["pixel_values"], atol=1e-5)
    if found.grid is not None:
        np.testing.assert_array_equal(found.grid, expected["image_grid_thw"])


def test_damaged_files(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "image_processor_config.json"
    with pytest.raises(GenerationError, match="does not exist"):
        ImageProcessor(path)
    for content, message in (({}, "does not describe"), ({"type": "Blur"}, "unknown operations: Blur")):
        path.write_text(json.dumps({"processor": {"transforms": [{"operation": content}]}}))
        with pytest.raises(GenerationError, match=message):
            ImageProcessor(path)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    with pytest.raises(GenerationError, match="cannot be read as an image"):
        ImageProcessor(place / "OUT" / "image_processor_config.json")(path)
    path.write_text(json.dumps({"processor": {"transforms": [{"operation": {"type": "Resize"}}]}}))
    with pytest.raises(GenerationError, match="attributes of its Resize are invalid"):
        ImageProcessor(path)(np.zeros((4, 4, 3), np.uint8))


def test_an_image_is_upright(tmp_path: Path, place: Path) -> None:
    """A camera stores how it was held; transformers rotates such images."""
    upright = np.random.default_rng(2).integers(0, 256, (60, 90, 3), np.uint8)
    stored = Image.fromarray(np.rot90(upright))
    exif = stored.getexif()
    exif[0x0112] = 6  # to be rotated clockwise
    stored.save(tmp_path / "image.png", exif=exif)
    processor = ImageProcessor(place / "OUT" / "image_processor_config.json")
    np.testing.assert_array_equal(processor(tmp_path / "image.png").pixels, processor(upright).pixels)


def test_every_attribute(place: Path, tmp_path: Path) -> None:
    """An image is prepared, or there is a `GenerationError`."""
    image = np.random.default_rng(1).integers(0, 256, (60, 90, 3), np.uint8)
    document = json.loads((place / "OUT" / "image_processor_config.json").read_text())
    path = tmp_path / "processor.json"
    wrong = []
    for number, step in enumerate(document["processor"]["transforms"]):
        places = [("operation",)] + [("operation", key) for key in step["operation"]]
        places += [("operation", "attrs", key) for key in step["operation"].get("attrs", {})]
        for keys in places:
            for value in (None, *VALUES, 10**4, [0, 0, 0], [1e300] * 3):
                made = copy.deepcopy(document)
                inner = made["processor"]["transforms"][number]
                for key in keys[:-1]:
                    inner = inner[key]
                inner[keys[-1]] = value
                path.write_text(json.dumps(made))
                try:
                    assert np.isfinite(ImageProcessor(path)(image).pixels).all()
                except GenerationError:
                    pass
                except Exception as error:
                    wrong.append(f"{number} {keys} {value!r}: {type(error).__name__} {error}")
    assert not wrong, "\n".join(wrong[:40])
