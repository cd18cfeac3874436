"""Random nodes of tokenizer operators, whose strings are begins and ends in one array of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from tests.onnx_specops.native.nodes import Node, element_type

I32, U8, BOOL, STRING = TensorProto.INT32, TensorProto.UINT8, TensorProto.BOOL, TensorProto.STRING
STRINGS, ROWS = [I32, I32, U8], [I32, I32, I32]

_PIECES = (
    b"a",
    b"b",
    b"ab",
    b"the",
    b" ",
    b"  ",
    b"##",
    b".",
    b"7",
    b"\n",
    "é".encode(),
    "中".encode(),
    "😀".encode(),
    "▁".encode(),
)
_BROKEN = (b"\xff", b"\xe4\xb8", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\xf4\x90\x80\x80")
_PATTERNS = (
    r"\s+", r"[a-z]+", r"\p{L}+|\p{N}|[^\s]", r"(?<=a)b", r"(a+)+$", r"(?i)THE", r"^|$", r"(a|ab)(b|)", r"(?:)", r"[",
    r"(?R)", r"\1", r"a{9999999}", r"(x{0,999}){0,999}", r"(?=", r"'(?:s|t)| ?\p{L}+| ?\p{N}+|\s+(?!\S)|\s+", r"(\w+)\1",
    r"\Q", r"\C",
)  # fmt: skip


def _text(rng: np.random.Generator, longest: int = 6) -> bytes:
    pieces = _PIECES + (_BROKEN if rng.random() < 0.2 else ())
    return b"".join(pieces[k] for k in rng.integers(0, len(pieces), rng.integers(0, longest + 1)))


def _strings(rng: np.random.Generator, count: int, texts: list[bytes] | None = None) -> list[np.ndarray]:
    """Return begins, ends and bytes of strings, sometimes with gaps between them."""
    texts = [_text(rng) for _ in range(count)] if texts is None else texts
    begins, ends, data = [], [], b""
    for text in texts:
        data += b"?" * int(rng.random() < 0.2)
        begins.append(len(data))
        data += text
        ends.append(len(data))
    return [np.array(begins, np.int32), np.array(ends, np.int32), np.frombuffer(data, np.uint8)]


def _ragged(rng: np.random.Generator, elements: int) -> list[np.ndarray]:
    """Return begins and ends of rows."""
    cuts = np.sort(rng.integers(0, elements + 1, rng.integers(0, 4)))
    edges = np.array([0, *cuts, elements], np.int32)
    return [edges[:-1].copy(), edges[1:].copy()]


def _rows(rng: np.random.Generator) -> list[np.ndarray]:
    count = int(rng.integers(0, 8))
    return [*_ragged(rng, count), *_strings(rng, count)]


def _skips(rng: np.random.Generator, strings: int) -> np.ndarray | None:
    return rng.integers(0, 2, strings).astype(bool) if rng.random() < 0.4 else None


def _pick(rng: np.random.Generator, options: Any) -> Any:
    return options[rng.integers(len(options))]


def _vocabulary(rng: np.random.Generator) -> tuple[list[np.ndarray], int]:
    texts = [*_PIECES[: rng.integers(1, len(_PIECES))], b"ba", b"abab", b""]
    return _strings(rng, 0, texts), len(texts)


def _flags(rng: np.random.Generator, *names: str) -> dict[str, Any]:
    return {name: int(rng.integers(2)) for name in names}


def chars_map(rng: np.random.Generator) -> Node:
    units = rng.integers(0, 2**32, rng.integers(1, 300), dtype=np.uint32)
    charsmap = np.frombuffer(np.uint32(4 * len(units)).tobytes() + units.tobytes() + b"x\0yz\0", np.uint8)
    strings = _strings(rng, int(rng.integers(0, 6)))
    names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces", "treat_whitespace_as_suffix")
    given = [charsmap if rng.random() < 0.4 else None, _skips(rng, len(strings[0]))]
    return "CharsMapNormalization", [*strings, *given], STRINGS, _flags(rng, *names)


def regex_normalization(rng: np.random.Generator) -> Node:
    strings = _strings(rng, int(rng.integers(0, 6)))
    given = {"pattern": _pick(rng, _PATTERNS), "replacement": _pick(rng, ("", "x", r"\1", r"$0", "\\"))}
    return "RegexNormalization", [*strings, _skips(rng, len(strings[0]))], STRINGS, given | _flags(rng, "global_replace")


def regex_split(rng: np.random.Generator) -> Node:
    rows = _rows(rng)
    behaviours = ("remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext", "sideways")
    given = {"pattern": _pick(rng, _PATTERNS), "behaviour": _pick(rng, behaviours), "max_splits": int(rng.integers(-1, 4))}
    return "RegexSplit", [*rows, _skips(rng, len(rows[2]))], [I32] * 4 + [BOOL], given | _flags(rng, "invert")


def special_tokens(rng: np.random.Generator) -> Node:
    rows = _rows(rng)
    given = {"pattern": _pick(rng, (*_PATTERNS, "(the)|(ab)"))}
    return "SpecialTokensSplit", [*rows, _skips(rng, len(rows[2]))], [I32] * 4 + [BOOL], given


def bytes_to_chars(rng: np.random.Generator) -> Node:
    strings = _strings(rng, int(rng.integers(0, 6)))
    return "BytesToChars", [*strings, _skips(rng, len(strings[0]))], STRINGS, {}


def chars_to_bytes(rng: np.random.Generator) -> Node:
    return "CharsToBytes", _rows(rng), STRINGS, {}


def byte_fallback(rng: np.random.Generator) -> Node:
    texts = [_pick(rng, (b"<0x0A>", b"<0xZZ>", b"<0x41", b"a", b"")) for _ in range(rng.integers(0, 6))]
    return "ByteFallback", _strings(rng, 0, texts), STRINGS, {}


def utf8_validate(rng: np.random.Generator) -> Node:
    return "UTF8Validate", _strings(rng, int(rng.integers(0, 6))), STRINGS, _flags(rng, "replace_mode")


def bpe(rng: np.random.Generator) -> Node:
    vocabulary, count = _vocabulary(rng)
    merges = rng.integers(0, count + 4, (rng.integers(0, 8), 3)).astype(np.int32)
    bytes_ = rng.integers(-1, count, 256).astype(np.int32) if rng.random() < 0.4 else None
    given = {"unk_token_id": int(rng.integers(-1, count)), "end_suffix": _pick(rng, ("", "</w>", "a"))}
    arrays = [*_rows(rng), *vocabulary, np.arange(count, dtype=np.int32), merges, bytes_]
    return "BPETokenizer", arrays, ROWS, given


def trie(rng: np.random.Generator) -> Node:
    vocabulary, count = _vocabulary(rng)
    return "TrieTokenizer", [*_rows(rng), *vocabulary, np.arange(count, dtype=np.int32)], ROWS, {}


def wordpiece(rng: np.random.Generator) -> Node:
    vocabulary, count = _vocabulary(rng)
    given = {
        "suffix_indicator": _pick(rng, ("##", "")),
        "max_bytes_per_word": int(rng.integers(0, 20)),
        "unk_token_id": int(rng.integers(-1, count)),
    }
    return "WordpieceTokenizer", [*_rows(rng), *vocabulary], ROWS, given


def unigram(rng: np.random.Generator) -> Node:
    vocabulary, count = _vocabulary(rng)
    scores = -rng.random(count).astype(np.float32) * 9
    return "UnigramTokenizer", [*_rows(rng), *vocabulary, scores], ROWS, {"unk_token_id": int(rng.integers(-1, count))}


def _pieces(rng: np.random.Generator) -> list[np.ndarray]:
    vocabulary, count = _vocabulary(rng)
    types = rng.integers(0, 8, count).astype(np.uint8)
    if rng.random() < 0.8:  # as in a real model: one unknown piece, no byte pieces, no empty piece
        types[(types == 2) | (types > 5)] = 1
        types[0] = 2
        vocabulary[1][vocabulary[0] == vocabulary[1]] += 1
        vocabulary[2] = np.append(vocabulary[2], np.uint8(33))
    return [*vocabulary, types]


def sentencepiece(rng: np.random.Generator) -> Node:
    rows, (*vocabulary, types) = _rows(rng), _pieces(rng)
    scores = rng.choice(np.array([0, -1, -1.5, 3e38, -3e38, np.inf, np.nan], np.float32), types.size)
    units = rng.integers(0, 2**32, rng.integers(1, 300), dtype=np.uint32)
    charsmap = np.frombuffer(np.uint32(4 * len(units)).tobytes() + units.tobytes() + b"x\0yz\0", np.uint8)
    names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces", "treat_whitespace_as_suffix")
    given: dict[str, Any] = {"model_type": _pick(rng, ("unigram", "bpe", "word", "char"))}
    inputs = [np.arange(types.size, dtype=np.int32), scores, types, charsmap if rng.random() < 0.3 else None]
    arrays = [*rows, *vocabulary, *inputs, _skips(rng, len(rows[2]))]
    return "SentencepieceTokenizer", arrays, ROWS, given | _flags(rng, *names, "add_bos", "add_eos", "reverse")


def sentencepiece_back(rng: np.random.Generator) -> Node:
    arrays = _pieces(rng)
    ids = rng.integers(0 if rng.random() < 0.9 else -2, 30, (rng.integers(0, 4), rng.integers(0, 5))).astype(np.int32)
    flags = _flags(rng, "add_dummy_prefix", "remove_extra_whitespaces")
    return "SentencepieceDetokenizer", [ids, *arrays], STRINGS, flags


def string_join(rng: np.random.Generator) -> Node:
    shape = tuple(rng.integers(0, 4, rng.integers(0, 4)).tolist())
    begins, ends, symbols = _strings(rng, int(np.prod(shape)))
    mark = np.frombuffer(_pick(rng, _PIECES), np.uint8)
    arrays = [begins.reshape(shape), ends.reshape(shape), symbols, mark, np.array(rng.integers(-4, 4))]
    return "StringJoin", arrays, STRINGS, {}


def string_split(rng: np.random.Generator) -> Node:
    mark = np.frombuffer(_pick(rng, (b"", *_PIECES)), np.uint8)
    arrays = [*_strings(rng, int(rng.integers(0, 6))), mark, np.array(bool(rng.integers(2)))]
    return "StringSplit", arrays, [TensorProto.INT64, *STRINGS, TensorProto.INT64], {}


def numeric_to_string(rng: np.random.Generator) -> Node:
    bits = rng.integers(0, 256, 8 * rng.integers(0, 6), dtype=np.uint8)
    return "NumericToString", [bits.view(_pick(rng, (np.float32, np.float64)))], [STRING], {}


def vocab_decoder(rng: np.random.Generator) -> Node:
    vocabulary, count = _vocabulary(rng)
    ids = rng.integers(-1, count + 2, (rng.integers(0, 4), rng.integers(0, 5))).astype(np.int32)
    skipped = rng.integers(0, count, 2).astype(np.int32) if rng.random() < 0.5 else None
    return "VocabDecoder", [ids, *vocabulary, skipped], [I32] * 4 + [U8], {}


def ragged_to_dense(rng: np.random.Generator) -> Node:
    data = rng.integers(0, 9, (rng.integers(0, 9), *rng.integers(0, 3, rng.integers(0, 2)))).astype(np.float32)
    numbers = [np.array(rng.integers(0, 6), np.int32), np.array(7, np.float32), np.array(bool(rng.integers(2)))]
    return "RaggedToDense", [*_ragged(rng, len(data)), data, *numbers], [element_type(data), BOOL], {}


def combine_segments(rng: np.random.Generator) -> Node:
    segments, rows = int(rng.integers(0, 4)), int(rng.integers(0, 4))
    counts = np.array([1 if rng.random() < 0.3 else rows for _ in range(segments)], np.int64)
    sizes = rng.integers(0, 6, segments)
    begins, ends = [], []
    for count, size in zip(counts, sizes, strict=True):
        edges = np.sort(rng.integers(0, size + 1, count + 1))
        begins.append(edges[:-1])
        ends.append(edges[1:])
    joined = [np.concatenate([np.zeros(0), *part]).astype(np.int32) for part in (begins, ends)]
    elements = rng.integers(0, 99, sizes.sum()).astype(np.int32)
    ids = np.arange(segments, dtype=np.int32)
    return "CombineSegments", [*joined, elements, counts, sizes.astype(np.int64), ids], [I32] * 4, {}


def packed(rng: np.random.Generator) -> Node:
    texts = [_pick(rng, _PIECES) for _ in range(rng.integers(0, 6))]
    return "StringTensorPack", _strings(rng, 0, texts), [STRING], {}


def unpacked(rng: np.random.Generator) -> Node:
    texts = np.array([_pick(rng, _PIECES).decode() for _ in range(rng.integers(0, 6))], object)
    return "StringTensorUnpack", [texts], STRINGS, {}


MAKERS: tuple[Callable[[np.random.Generator], Node], ...] = (
    bpe,
    byte_fallback,
    bytes_to_chars,
    chars_map,
    chars_to_bytes,
    combine_segments,
    packed,
    numeric_to_string,
    ragged_to_dense,
    regex_normalization,
    regex_split,
    sentencepiece,
    sentencepiece_back,
    special_tokens,
    string_join,
    string_split,
    trie,
    unigram,
    unpacked,
    utf8_validate,
    vocab_decoder,
    wordpiece,
)
