"""A folder's tokenizer: OpenVINO's, which was converted, or the tokenizer.json beside the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onnx_specops.generation.errors import GenerationError
from onnx_specops.runtime.session import InferenceSession, Kernels

TOKENIZER, DETOKENIZER = "openvino_tokenizer.onnx", "openvino_detokenizer.onnx"


@dataclass(frozen=True)
class Tokenizer:
    """Texts to tokens and back.

    Attributes:
        encode: the tokens of a text.
        decode: the text of tokens.
    """

    encode: Callable[[str], list[int]]
    decode: Callable[[Sequence[int]], str]


def open_tokenizer(folder: Path, kernels: Kernels) -> Tokenizer:
    """The tokenizer of a folder; ``kernels`` as of `onnx_specops.InferenceSession`.

    Raises:
        GenerationError: there is none.
    """
    paths = [folder / name for name in (TOKENIZER, DETOKENIZER)]
    return _of_models(paths, kernels) if all(path.is_file() for path in paths) else _of_package(folder)


def _of_models(paths: Sequence[Path], kernels: Kernels) -> Tokenizer:
    encoder, decoder = (InferenceSession(path, kernels=kernels) for path in paths)
    text, ids = encoder.get_inputs()[0].name, decoder.get_inputs()[0]
    dtype = np.int32 if ids.type == "tensor(int32)" else np.int64

    def encode(prompt: str) -> list[int]:
        (found,) = encoder.run(["input_ids"], {text: np.array([prompt], object)})
        return [int(token) for token in np.reshape(found, -1)]

    def decode(tokens: Sequence[int]) -> str:
        found = decoder.run(None, {ids.name: np.array([tokens], dtype)})[0]
        whole = np.reshape(found, -1)[0]
        return whole.decode(errors="replace") if isinstance(whole, bytes) else str(whole)

    return Tokenizer(encode, decode)


def _of_package(folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise GenerationError(f"{folder} holds no tokenizer: neither {TOKENIZER} and {DETOKENIZER} nor {path.name}")
    try:
        from tokenizers import Tokenizer as Package
    except ImportError:
        raise GenerationError(f"{path.name} takes the package tokenizers: pip install tokenizers") from None
    tokenizer = Package.from_file(str(path))
    return Tokenizer(lambda text: list(tokenizer.encode(text).ids), lambda ids: str(tokenizer.decode(list(ids))))
