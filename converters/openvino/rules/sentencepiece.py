"""SentencePiece models: the operations of openvino_tokenizers that contain one as a constant of bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.openvino.rule import rule
from converters.openvino.rules._patterns import portable
from converters.openvino.rules._texts import constant_of, packed, tokens_of
from converters.openvino.rules.tokenizers import fuze_ragged, vocab_decoder
from converters.openvino.sentencepiece_models import Normalization, SentencepieceModel, read_sentencepiece_model
from onnx_specops.building import Builder, Value
from onnx_specops.ops.tokenizers._sentencepiece import RESERVED, PieceType
from onnx_specops.ops.tokenizers.sentencepiece_detokenizer import byte_of

_METACHARACTERS = re.compile(r"[.^$*+?()\[\]{}|\\]")
_NOTHING = "(?!)"


def _model(value: Value) -> SentencepieceModel:
    return read_sentencepiece_model(constant_of(value, "SentencePiece model").tobytes())


@rule("SentencepieceTokenizer", since="extension")
def sentencepiece_tokenizer(
    op: Builder,
    model: Value,
    *inputs: Value,
    nbest_size: int = 0,
    alpha: float = 1.0,
    add_bos: bool = False,
    add_eos: bool = False,
    reverse: bool = False,
):
    """SentencepieceTokenizer of openvino_tokenizers: the ids of strings as a sparse matrix.

    The inputs are strings, or their begins, ends and symbols, and optionally special tokens with their ids, which are
    matched first.
    """
    if nbest_size not in (0, 1):
        raise Unsupported(
            f"with nbest_size={nbest_size} it samples different pieces in each run",
            "convert it with nbest_size=1",
        )
    if len(inputs) not in (1, 3, 5, 7):
        raise Malformed(f"it has {len(inputs) + 1} inputs; expected 2, 4, 6 or 8")
    has_specials = len(inputs) > 3
    strings, specials = (inputs[:-4], inputs[-4:]) if has_specials else (inputs, ())
    begins, ends, symbols = op.specops.StringTensorUnpack(strings[0]) if len(strings) == 1 else strings
    begins, ends = op.Reshape(begins, [-1]), op.Reshape(ends, [-1])
    count = op.Cast(op.Gather(op.Shape(begins), 0), to=ir.DataType.INT32)
    edges = op.Range(op.const(np.int32(0)), op.Add(count, 1), op.const(np.int32(1)))
    rows: Sequence[Value] = (op.Slice(edges, [0], [-1]), op.Slice(edges, [1], [2**31 - 1]))
    skips = None
    known: dict[bytes, int] = {}
    if has_specials:
        tokens = tokens_of(specials[:3], "special tokens")
        numbers = constant_of(specials[3], "ids of special tokens").reshape(-1).tolist()
        if len(tokens) != len(numbers):
            raise Malformed(f"it has {len(tokens)} special tokens and {len(numbers)} ids")
        for token, number in zip(tokens, numbers, strict=True):
            known.setdefault(token, number)
        *rows, begins, ends, skips = op.specops.SpecialTokensSplit(
            *rows, begins, ends, symbols, None, pattern=_any_of(tokens)
        )
    read = _model(model)
    ids = _tokenized(
        op, read, [*rows, begins, ends, symbols], known, skips, _ends(read, add_bos, add_eos, has_specials), reverse
    )
    return _sparse(op, *ids)


def _any_of(tokens: Sequence[bytes]) -> str:
    """Return a pattern that matches any of the special tokens. Tokens that consist of letters match only at the beginning or
    end of a word.
    """
    choices = []
    for token in tokens:
        try:
            quoted = _METACHARACTERS.sub(r"\\\g<0>", token.decode())
        except UnicodeDecodeError:
            return _NOTHING  # OpenVINO cannot compile such a pattern
        is_word = all(chr(byte).isascii() and chr(byte).isalpha() for byte in token)
        choices += [rf"\b{quoted}", rf"{quoted}\b"] if is_word else [quoted]
    return portable("|".join(choices)) or _NOTHING


def _ends(model: SentencepieceModel, add_bos: bool, add_eos: bool, has_specials: bool) -> dict[str, int]:
    """Return the attributes for the tokens at the beginning and end of strings."""
    bos, eos = (model.find(piece) for piece in (model.bos_piece, model.eos_piece))
    unknown = int(np.flatnonzero(model.types == PieceType.UNKNOWN)[0])
    for wanted, number, piece in ((add_bos, bos, model.bos_piece), (add_eos and not has_specials, eos, model.eos_piece)):
        if wanted and number in (-1, unknown):
            raise Malformed(f"its SentencePiece model has no {piece!r}")
    if has_specials and (eos == -1 or model.types[eos] != PieceType.CONTROL):
        eos = -1  # as in OpenVINO
    return {"add_bos": int(add_bos), "bos_id": bos, "add_eos": int(add_eos), "eos_id": eos}


def _tokenized(
    op: Builder,
    model: SentencepieceModel,
    strings: Sequence[Value],
    known: dict[bytes, int],
    skips: Value | None,
    ends: dict[str, int],
    reverse: bool,
) -> Sequence[Value]:
    own = len(model.pieces)
    numbers = np.array([*range(own), *known.values()], np.int32)
    normalization = model.normalization
    return op.specops.SentencepieceTokenizer(
        *strings,
        *packed(op, [*model.pieces, *known]),
        op.const(numbers),
        op.const(np.concatenate([model.scores, np.zeros(len(known), np.float32)])),
        op.const(np.concatenate([model.types, np.full(len(known), PieceType.SPECIAL, np.uint8)])),
        op.const(np.frombuffer(normalization.charsmap, np.uint8)) if normalization.charsmap else None,
        skips,
        model_type=model.model_type,
        **_flags(normalization),
        treat_whitespace_as_suffix=int(model.treat_whitespace_as_suffix),
        **ends,
        reverse=int(reverse),
    )


def _flags(normalization: Normalization) -> dict[str, int]:
    names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
    return {name: int(getattr(normalization, name)) for name in names}


def _sparse(op: Builder, begins: Value, ends: Value, ids: Value) -> list[Value]:
    """Return rows of ids as a sparse matrix: ``[n, 2]`` positions, the ids, and the number of rows and columns."""
    lengths = op.Sub(ends, begins)
    longest = op.ReduceMax(op.Concat(lengths, op.const(np.zeros(1, np.int32)), axis=0), keepdims=0)
    columns = op.Range(op.const(np.int32(0)), longest, op.const(np.int32(1)))
    taken = op.Less(op.Unsqueeze(columns, [0]), op.Unsqueeze(lengths, [1]))
    return [op.Transpose(op.NonZero(taken), perm=[1, 0]), ids, op.Shape(taken)]


# -- and back -------------------------------------------------------------------------------------------------------------


@rule("SentencepieceDetokenizer", since="extension")
def sentencepiece_detokenizer(op: Builder, model: Value, ids: Value):
    """SentencepieceDetokenizer of openvino_tokenizers: the texts of rows of ids."""
    read = _model(model)
    reserved = {p: t for p, t in zip(read.pieces, read.types, strict=True) if t in RESERVED}
    # A piece is found by its text. Pieces that are not part of texts come first.
    types = np.array([reserved.get(p, t) for p, t in zip(read.pieces, read.types, strict=True)], np.uint8)
    try:
        unknown = read.unk_surface.decode()
    except UnicodeDecodeError:
        raise Malformed("its SentencePiece model's text for the unknown piece is not UTF-8") from None
    texts = op.specops.SentencepieceDetokenizer(
        op.Cast(ids, to=ir.DataType.INT32),
        *packed(op, read.pieces),
        op.const(types),
        unk_surface=unknown,
        add_dummy_prefix=int(read.normalization.add_dummy_prefix),
        remove_extra_whitespaces=int(read.normalization.remove_extra_whitespaces),
    )
    if (back := read.denormalization) is None:
        return texts
    mapping = op.const(np.frombuffer(back.charsmap, np.uint8))
    return op.specops.CharsMapNormalization(*texts, mapping, None, **_flags(back))


@rule("SentencepieceStreamDetokenizer", since="extension")
def sentencepiece_stream_detokenizer(op: Builder, model: Value, ids: Value):
    """SentencepieceStreamDetokenizer of openvino_tokenizers: the unchanged pieces of rows of ids, with byte pieces as bytes.

    Negative ids, for which OpenVINO reads outside the vocabulary, have no text.
    """
    pieces = [_streamed(piece) for piece in _model(model).pieces]
    return _fuzed(op, op.Cast(ids, to=ir.DataType.INT32), packed(op, pieces))


def _streamed(piece: bytes) -> bytes:
    if len(piece) != 6 or piece[:3] != b"<0x" or piece[5:] != b">":
        return piece
    byte = byte_of(piece)
    return bytes([255 if byte is None else byte])


def _fuzed(op: Builder, ids: Value, tokens: Sequence[Value]) -> list[Value]:
    ragged_begins, ragged_ends, begins, ends, symbols = vocab_decoder(op, ids, *tokens)
    return [*fuze_ragged(op, ragged_begins, ragged_ends, begins, ends), symbols]
