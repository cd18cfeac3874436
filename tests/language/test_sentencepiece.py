"""SentencePiece models that are invalid or random, and invalid nodes, give clear errors."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.errors import ConversionError, Malformed
from converters.openvino import convert
from converters.openvino.sentencepiece_models import model_message, read_sentencepiece_model
from tests.onnx_specops.ops.one_node import KERNELS, RAISED, run, strings

FILES = Path(__file__).parent / "files"


def proto(*pieces: tuple[str, int], score: float = 0.0, byte_fallback: bool = False) -> bytes:
    """Return a model of pieces and their types."""
    model = model_message()()
    model.trainer_spec.byte_fallback = byte_fallback
    for piece, kind in pieces:
        model.pieces.add(piece=piece.encode(), type=kind, score=score)
    return model.SerializeToString()


def test_missing_settings_have_sentencepieces_defaults() -> None:
    model = read_sentencepiece_model(proto(("<unk>", 2), ("a", 1), ("b", 9)))
    assert (model.model_type, model.unk_surface, model.bos_piece) == ("unigram", " ⁇ ".encode(), b"<s>")
    assert model.types.tolist() == [2, 1, 1]
    assert model.normalization.add_dummy_prefix and model.normalization.escape_whitespaces
    assert model.denormalization is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a\xff\xff", "its constant is not a SentencePiece model"),
        (b"", "its SentencePiece model has 0 unknown pieces; expected one"),
        (proto(("<unk>", 2), ("<u>", 2)), "its SentencePiece model has 2 unknown pieces; expected one"),
        (proto(("<unk>", 2), ("", 1)), "piece 1 of its SentencePiece model is empty"),
        (proto(("<unk>", 2), ("a\0", 1)), "piece 1 of its SentencePiece model is b'a\\x00'"),
        (proto(("<unk>", 2), ("a", 1), ("a", 4)), "piece 2 of its SentencePiece model, b'a', is a duplicate"),
        (proto(("<unk>", 2), ("<0x0A>", 6)), "piece 1 of its SentencePiece model, b'<0x0A>', is an unexpected byte piece"),
        (proto(("<unk>", 2), ("a", 6), byte_fallback=True), "b'a', is an unexpected byte piece"),
        (proto(("<unk>", 2), byte_fallback=True), "its SentencePiece model has 0 of 256 bytes"),
        (proto(("<unk>", 2), score=float("nan")), "score 0 of its SentencePiece model is NaN"),
    ],
)
def test_models_that_sentencepiece_does_not_load(data: bytes, message: str) -> None:
    with pytest.raises(Malformed, match=re.escape(message)):
        read_sentencepiece_model(data)


def changed(folder: Path, pattern: str, replacement: str) -> Path:
    """Return the unigram model's tokenizer with a change in its XML."""
    path = folder / "tokenizer.xml"
    shutil.copy(FILES / "spm_unigram" / "tokenizer.bin", folder)
    text = (FILES / "spm_unigram" / "tokenizer.xml").read_text()
    path.write_text(re.sub(pattern, replacement, text))
    return path


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (r'nbest_size="\d+"', 'nbest_size="5"', "it samples different pieces"),
        (r'nbest_size="\d+"', 'nbest_size="-1"', "it samples different pieces"),
        (r'add_bos="false"', 'add_bos="true"', "its SentencePiece model has no b'<s>'"),
    ],
)
def test_unsupported_settings(tmp_path: Path, pattern: str, replacement: str, message: str) -> None:
    with pytest.raises(ConversionError, match=re.escape(message)):
        convert(changed(tmp_path, pattern, replacement))


def arrays_of(texts: list[str], prefix: str = "") -> dict[str, np.ndarray]:
    begins, ends, symbols = run("numpy", "StringTensorUnpack", {"data": strings(texts)})
    return {f"{prefix}begins": begins, f"{prefix}ends": ends, f"{prefix}symbols": symbols}


def tokenizer(**changes: Any) -> dict[str, np.ndarray]:
    rows = {"ragged_begins": np.array([0], np.int32), "ragged_ends": np.array([1], np.int32)}
    pieces = {**arrays_of(["<u>", "▁", "a"], "vocab_"), "vocab_ids": np.arange(3, dtype=np.int32)}
    numbers = {"scores": np.array([0, -1, -2], np.float32), "types": np.array([2, 1, 1], np.uint8)}
    return {**rows, **arrays_of(["a"]), **pieces, **numbers, **changes}


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"types": np.array([1, 1, 1], np.uint8)}, "types: 0 pieces are unknown (2); expected one"),
        ({"types": np.array([2, 1, 7], np.uint8)}, "types[2] = 7 is greater than 6"),
        ({"types": np.array([2, 1, 6], np.uint8)}, "types: there are bytes (6), but not all 256"),
        ({"types": np.array([2, 1], np.uint8)}, "types has 2 elements instead of one for each of the 3 pieces"),
        ({"scores": np.array([0, 0, np.nan], np.float32)}, "scores[2] is NaN"),
        ({"vocab_ids": np.arange(4, dtype=np.int32)}, "vocab_ids has 4 elements instead of one for each of the 3 pieces"),
        ({"vocab_begins": np.array([3, 3, 6], np.int32)}, "vocab_begins: piece 0 is empty"),
    ],
)
def test_invalid_nodes(form: str, changes: dict[str, Any], message: str) -> None:
    assert run(form, "SentencepieceTokenizer", tokenizer())[2].tolist() == [1, 2]
    with pytest.raises(RAISED[form], match=re.escape(f"SentencepieceTokenizer: {message}")):
        run(form, "SentencepieceTokenizer", tokenizer(**changes))


@pytest.mark.parametrize("form", KERNELS)
def test_negative_ids_have_no_text(form: str) -> None:
    pieces = {**arrays_of(["<u>", "a"], "vocab_"), "types": np.array([2, 1], np.uint8)}
    with pytest.raises(RAISED[form], match=re.escape("SentencepieceDetokenizer: ids[1] = -1 is less than 0")):
        run(form, "SentencepieceDetokenizer", {"ids": np.array([[1, -1]], np.int32), **pieces})
