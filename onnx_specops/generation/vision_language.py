"""Vision-language models, in the form that onnxruntime-genai loads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnxruntime as ort

from onnx_specops.generation.beams import Beams
from onnx_specops.generation.chat import Message
from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.images import CROP, ImageLike, ImageProcessor, Prepared
from onnx_specops.generation.language_model import CONFIG, LanguageModel
from onnx_specops.generation.sampling import GREEDY, Sampling
from onnx_specops.generation.sessions import open_session
from onnx_specops.generation.settings import read_json
from onnx_specops.runtime.session import Kernels

_EMBEDDINGS, _FEATURES = "inputs_embeds", "image_features"
_GEMMA, _MISTRAL, _PHI, _QWEN = "gemma3", "mistral3", "phi3v", ("qwen2_5_vl", "qwen3_vl", "qwen3_5", "qwen3_5_moe")
_OF_QWEN = re.compile(r"<\|vision_start\|>.*?<\|vision_end\|>", re.DOTALL)
_OF_PHI = re.compile(r"<\|image_([0-9]+)\|>")
_PLACES = {
    _GEMMA: re.compile("<start_of_image>"),
    _MISTRAL: re.compile(r"\[IMG\]"),
    _PHI: _OF_PHI,
    **dict.fromkeys(_QWEN, _OF_QWEN),
}
_PLACE = {
    _GEMMA: "<start_of_image>",
    _MISTRAL: "[IMG]",
    _PHI: "<|image_{}|>\n",
    **dict.fromkeys(_QWEN, "<|vision_start|><|vision_end|>"),
}
_OF_CROP = 12
"""The number of tokens in a row and a column of a crop of Phi-3 vision."""


class VisionLanguageModel(LanguageModel):
    """A vision-language model with its tokenizer.

    Args:
        folder: the output folder of ``specops convert FOLDER -o OUT --genai``. It contains genai_config.json, the models,
            the settings of the image processing, and the tokenizer (see `TextModel`).
        kernels, sess_options: see `onnx_specops.InferenceSession`.

    Raises:
        GenerationError: files are missing or inconsistent.
    """

    _known = frozenset({"input_ids", "attention_mask", "position_ids", _EMBEDDINGS})
    _guides = False

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        kernels: Kernels = "auto",
        sess_options: ort.SessionOptions | None = None,
    ) -> None:
        super().__init__(folder, kernels=kernels, sess_options=sess_options)
        path = self.folder / CONFIG
        try:
            model = read_json(path)["model"]
            self._kind = model["type"]
            self._image_token = int(model["image_token_id"]) if self._kind in _PLACES and self._kind != _PHI else -1
            vision, embedding = model["vision"], model["embedding"]
            self._merge, self._patch = (int(vision.get(name, 1)) for name in ("spatial_merge_size", "patch_size"))
            files = [self.folder / part["filename"] for part in (vision, embedding)]
            processing = self.folder / vision["config_filename"]
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise GenerationError(f"{path} is not a valid model configuration: {type(error).__name__} {error}") from error
        if self._kind not in _PLACES:
            raise GenerationError(f"{path} describes a {self._kind}: run it in onnxruntime-genai")
        self._processor = ImageProcessor(processing)
        if missing := [file.name for file in files if not file.is_file()]:
            raise GenerationError(f"{self.folder} contains no {' and no '.join(missing)}, which its {CONFIG} names")
        self._see, self._read = (open_session(file, sess_options, kernels) for file in files)
        self._width = next(value.shape[-1] for value in self._session.get_inputs() if value.name == _EMBEDDINGS)
        self._images: list[Prepared] = []
        self._shift = 0

    def write(
        self,
        prompt: str,
        tokens: int,
        sampling: Sampling = GREEDY,
        stop: Sequence[str] = (),
        *,
        special: bool = True,
        beams: Beams | int | None = None,
        images: Sequence[ImageLike] = (),
    ) -> Iterator[str]:
        """Generate text for a prompt and images. The iterator returns the text in pieces, as it is generated.

        Args:
            prompt: the text of the prompt. It may contain a placeholder for each image: ``<start_of_image>`` (Gemma 3),
                ``[IMG]`` (Mistral 3), ``<|image_1|>`` (Phi-3 vision) or ``<|vision_start|><|vision_end|>`` (Qwen). Without
                placeholders, the images precede the text.
            tokens, sampling, stop, special, beams: see `TextModel.write`.
            images: paths of images, or uint8 arrays ``[height, width, 3]`` in RGB.

        Raises:
            GenerationError: the number of images differs from the number of placeholders, or an image cannot be read.
        """
        prepared = [self._processor(image) for image in images]
        text = self._expanded(prompt, prepared)
        self._images = prepared
        return super().write(text, tokens, sampling, stop, special=special, beams=beams)

    def chat(
        self,
        messages: Sequence[Message],
        tokens: int,
        sampling: Sampling = GREEDY,
        stop: Sequence[str] = (),
        *,
        beams: Beams | int | None = None,
        images: Sequence[ImageLike] = (),
    ) -> Iterator[str]:
        """Generate the assistant's answer in a conversation, using the chat template in the folder.

        Args:
            messages: see `TextModel.chat`. The images precede the user's first message.
            tokens, sampling, stop, beams: see `TextModel.write`.
            images: all images of the conversation; see `write`.
        """
        told: list[Any] = [dict(message) for message in messages]
        first = next((message for message in told if message.get("role") == "user"), None)
        if images and first is not None:
            first["content"] = [*[{"type": "image"}] * len(images), {"type": "text", "text": first["content"]}]
        text = self._template.render(told)
        return self.write(text, tokens, sampling, stop, special=False, beams=beams, images=images)

    def generate(
        self,
        prompt: Sequence[int],
        tokens: int,
        sampling: Sampling = GREEDY,
        *,
        stop: Sequence[str] = (),
        beams: Beams | int | None = None,
    ) -> Iterator[int]:
        """Generate the tokens that follow a prompt; see `LanguageModel.generate`. `write` takes images."""
        images, self._images = self._images, []
        features = [self._features_of(image) for image in images]
        count = list(prompt).count(self._image_token)
        if self._kind == _PHI:
            count, self._least = sum(token < 0 for token in prompt), -len(images)
            features = self._in_order(prompt, features)
        whole = np.concatenate([np.zeros((0, self._width), np.float32), *features])
        if count != len(whole):
            message = f"the prompt has {count} tokens for images, whose features are {len(whole)}"
            raise GenerationError(f"{message}: pass the images to write")
        if images:
            self._held = []  # equal tokens can represent other images
        self._features, self._grids = whole, [image.grid for image in images]
        return super().generate(prompt, tokens, sampling, stop=stop, beams=beams)

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Tokenize a text; see `TextModel.encode`.

        For Phi-3 vision, negative numbers represent the images of `write`, and the tokenizer's begin and end tokens surround
        each part of the text between images, as in the processor of the model.
        """
        if self._kind != _PHI:
            return super().encode(text, special=special)
        found: list[int] = []
        for place, part in enumerate(_OF_PHI.split(text)):
            found += [-int(part)] * self._crop_tokens(self._images[int(part) - 1]) if place % 2 else super().encode(part)
        return found

    @staticmethod
    def _crop_tokens(image: Prepared) -> int:
        """Return the number of tokens of an image in crops: with a separator after each row, and one between two parts."""
        assert image.sizes is not None
        rows, columns = (int(size) // CROP * _OF_CROP for size in image.sizes[0])
        return rows * (columns + 1) + 1 + _OF_CROP * (_OF_CROP + 1)

    @staticmethod
    def _in_order(prompt: Sequence[int], features: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the features of the images that negative numbers represent, in their order in the prompt."""
        found: list[np.ndarray] = []
        place = 0
        while place < len(prompt):
            number = -prompt[place]
            if 0 < number <= len(features):
                found.append(features[number - 1])
                place += len(found[-1])
            else:
                place += 1
        return found

    def _features_of(self, image: Prepared) -> np.ndarray:
        more = {"image_grid_thw": image.grid, "image_sizes": image.sizes}
        feeds = {"pixel_values": image.pixels, **{name: value for name, value in more.items() if value is not None}}
        return self._see.run([_FEATURES], feeds)[0].reshape(-1, self._width)

    def _expanded(self, prompt: str, images: Sequence[Prepared]) -> str:
        """Return the prompt with the tokens of each image, or for Phi-3 vision with its number."""
        found = _PLACES[self._kind].findall(prompt)
        count = len(found)
        if not count:
            prompt = "".join(_PLACE[self._kind].format(number + 1) for number in range(len(images))) + prompt
        elif self._kind == _PHI:
            if {int(number) for number in found} != {number + 1 for number in range(len(images))}:
                named = ", ".join(f"<|image_{number}|>" for number in dict.fromkeys(found))
                raise GenerationError(f"the prompt has {named}, but {len(images)} images are given")
        elif count != len(images):
            raise GenerationError(f"the prompt has {count} images, but {len(images)} are given")
        if self._kind == _PHI:
            return prompt
        following = iter(images)
        return _PLACES[self._kind].sub(lambda found: self._tokens_of(next(following)), prompt)

    def _tokens_of(self, image: Prepared) -> str:
        if self._kind == _MISTRAL:
            rows, columns = (size // (self._patch * self._merge) for size in image.pixels.shape[2:])
            return "[IMG_BREAK]".join(["[IMG]" * columns] * rows) + "[IMG_END]"
        if image.grid is None:
            return f"\n\n<start_of_image>{'<image_soft_token>' * 256}<end_of_image>\n\n"
        return f"<|vision_start|>{'<|image_pad|>' * (int(image.grid.prod()) // self._merge**2)}<|vision_end|>"

    def _feeds(self, fed: np.ndarray, past: int, rows: Sequence[int]) -> dict[str, np.ndarray]:
        feeds = super()._feeds(fed, past, rows)
        features = self._features if past == 0 else self._features[:0]
        (feeds[_EMBEDDINGS],) = self._read.run([_EMBEDDINGS], {"input_ids": fed, _FEATURES: features})
        if self._kind in _QWEN:
            if past == 0:
                three = self._positions(fed[0].tolist())
                self._shift = int(three.max()) + 1 - fed.shape[1]
            else:
                three = np.tile(np.arange(past, past + fed.shape[1], dtype=np.int64) + self._shift, (3, 1))
            feeds["position_ids"] = np.repeat(three[:, None], len(fed), axis=1)
        return {name: array for name, array in feeds.items() if name in self._names}

    def _positions(self, ids: Sequence[int]) -> np.ndarray:
        """Return the frame, row and column of each token, ``[3, tokens]``. For text, all are equal."""
        found: list[np.ndarray] = []
        place = after = 0
        grids = iter(self._grids)
        while place < len(ids):
            if ids[place] == self._image_token and (grid := next(grids, None)) is not None:
                frames, rows, columns = (int(size) for size in grid[0])
                sizes = (frames, rows // self._merge, columns // self._merge)
                found.append(np.indices(sizes).reshape(3, -1) + after)
            else:
                found.append(np.full((3, 1), after))
            after = int(found[-1].max()) + 1
            place += found[-1].shape[1]
        return np.concatenate(found, axis=1)
