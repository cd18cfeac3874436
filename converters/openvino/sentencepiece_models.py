"""SentencePiece's model files, which openvino_tokenizers stores as a constant of bytes."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from converters.errors import Malformed
from onnx_specops.ops.tokenizers._sentencepiece import RESERVED, PieceType
from onnx_specops.ops.tokenizers.sentencepiece_detokenizer import byte_of

_MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
_LABELS = {"optional": 1, "repeated": 3}
_KINDS = {"float": 2, "int32": 5, "bool": 8, "bytes": 12}
# The fields of SentencePiece's sentencepiece_model.proto that affect ids and texts: names, numbers, types and defaults.
_MESSAGES: dict[str, list[tuple[str, int, str, str | None]]] = {
    "SentencePiece": [("piece", 1, "bytes", None), ("score", 2, "float", None), ("type", 3, "int32", "1")],
    "TrainerSpec": [
        ("model_type", 3, "int32", "1"),
        ("treat_whitespace_as_suffix", 24, "bool", "false"),
        ("byte_fallback", 35, "bool", "false"),
        ("unk_surface", 44, "bytes", r" \342\201\207 "),
        ("bos_piece", 46, "bytes", "<s>"),
        ("eos_piece", 47, "bytes", "</s>"),
    ],
    "NormalizerSpec": [
        ("precompiled_charsmap", 2, "bytes", None),
        ("add_dummy_prefix", 3, "bool", "true"),
        ("remove_extra_whitespaces", 4, "bool", "true"),
        ("escape_whitespaces", 5, "bool", "true"),
    ],
    "ModelProto": [
        ("pieces", 1, "repeated SentencePiece", None),
        ("trainer_spec", 2, "optional TrainerSpec", None),
        ("normalizer_spec", 3, "optional NormalizerSpec", None),
        ("denormalizer_spec", 5, "optional NormalizerSpec", None),
    ],
}


@functools.cache
def model_message() -> Any:
    """Return the class of a model's message, with the fields of `_MESSAGES`."""
    file = descriptor_pb2.FileDescriptorProto(
        name="onnx_specops/sentencepiece.proto", package="onnx_specops", syntax="proto2"
    )
    for name, fields in _MESSAGES.items():
        described = file.message_type.add(name=name)
        for field, number, kind, default in fields:
            label, _, other = kind.rpartition(" ")
            added = described.field.add(name=field, number=number, label=_LABELS[label or "optional"])
            if label:
                added.type, added.type_name = 11, f".onnx_specops.{other}"
            else:
                added.type = _KINDS[kind]
            if default is not None:
                added.default_value = default
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("onnx_specops.ModelProto"))


@dataclass(frozen=True)
class Normalization:
    """The normalization of a text: the charsmap and attributes of CharsMapNormalization."""

    charsmap: bytes
    add_dummy_prefix: bool
    remove_extra_whitespaces: bool
    escape_whitespaces: bool


@dataclass(frozen=True)
class SentencepieceModel:
    """The content of a model file. ``types`` are `PieceType`s; ``denormalization`` is ``None`` if texts do not change."""

    pieces: list[bytes]
    scores: np.ndarray
    types: np.ndarray
    model_type: str
    treat_whitespace_as_suffix: bool
    unk_surface: bytes
    bos_piece: bytes
    eos_piece: bytes
    normalization: Normalization
    denormalization: Normalization | None

    def find(self, piece: bytes) -> int:
        """Return the id of a piece as SentencePiece does: pieces that are not part of texts come first. Return -1 if there
        is none.
        """
        places = [i for i, other in enumerate(self.pieces) if other == piece]
        return next((i for i in places if self.types[i] in RESERVED), places[0] if places else -1)


def read_sentencepiece_model(data: bytes) -> SentencepieceModel:
    """Read a model. Raise `Malformed` if SentencePiece would not load it."""
    try:
        proto = model_message().FromString(data)
    except message.DecodeError:
        raise Malformed("its constant is not a SentencePiece model") from None
    trainer, denormalizer = proto.trainer_spec, proto.denormalizer_spec
    kind = trainer.model_type if trainer.model_type in _MODEL_TYPES else 1
    model = SentencepieceModel(
        pieces=[piece.piece for piece in proto.pieces],
        scores=np.array([piece.score for piece in proto.pieces], np.float32),
        # Protobuf treats unknown types as missing.
        types=np.array([piece.type if 1 <= piece.type <= 6 else 1 for piece in proto.pieces], np.uint8),
        model_type=_MODEL_TYPES[kind],
        treat_whitespace_as_suffix=trainer.treat_whitespace_as_suffix,
        unk_surface=trainer.unk_surface.split(b"\0")[0],
        bos_piece=trainer.bos_piece.split(b"\0")[0] or b"<s>",
        eos_piece=trainer.eos_piece.split(b"\0")[0] or b"</s>",
        normalization=_normalization(proto.normalizer_spec),
        denormalization=_normalization(denormalizer) if denormalizer.precompiled_charsmap else None,
    )
    _check(model, trainer.byte_fallback)
    return model


def _normalization(spec: Any) -> Normalization:
    return Normalization(
        spec.precompiled_charsmap, spec.add_dummy_prefix, spec.remove_extra_whitespaces, spec.escape_whitespaces
    )


def _check(model: SentencepieceModel, byte_fallback: bool) -> None:
    met: set[tuple[bool, bytes]] = set()
    for place, (piece, kind) in enumerate(zip(model.pieces, model.types.tolist(), strict=True)):
        if not piece or b"\0" in piece:
            raise Malformed(f"piece {place} of its SentencePiece model is {'empty' if not piece else repr(piece)}")
        if (key := (kind in RESERVED, piece)) in met:
            raise Malformed(f"piece {place} of its SentencePiece model, {piece!r}, is a duplicate")
        met.add(key)
        if kind == PieceType.BYTE and (not byte_fallback or byte_of(piece) is None):
            raise Malformed(f"piece {place} of its SentencePiece model, {piece!r}, is an unexpected byte piece")
    counts = np.bincount(model.types, minlength=7)
    if counts[PieceType.UNKNOWN] != 1:
        raise Malformed(f"its SentencePiece model has {counts[PieceType.UNKNOWN]} unknown pieces; expected one")
    if byte_fallback and counts[PieceType.BYTE] != 256:
        raise Malformed(f"its SentencePiece model has {counts[PieceType.BYTE]} of 256 bytes")
    if np.isnan(model.scores).any():
        raise Malformed(f"score {np.flatnonzero(np.isnan(model.scores))[0]} of its SentencePiece model is NaN")
