"""Random nodes of tokenizer operators: ragged rows of strings, vocabularies, patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from converters.openvino.charsmaps import compile_map
from tests.native import BUILT, OF_PCRE2
from tests.onnx_specops.native.nodes import Node

I32, U8, BOOL, F32, I64 = (
    TensorProto.INT32,
    TensorProto.UINT8,
    TensorProto.BOOL,
    TensorProto.FLOAT,
    TensorProto.INT64,
)
_PIECES = ("a", "b", "ab", "ba", "##a", "é", "日", "🙂", " ", "\t", "▁", "1", "<0x41>", ".", "")
_VOCABULARY = [*_PIECES[:-1], "abc", "▁a", "<unk>", "Ġ"]
_PATTERNS = (r"\s+", r"a|b", r"\p{L}+", r"(?=b)", r"[^a]", r"(a)(b)?", "")


def _pick(rng: np.random.Generator, options: Any) -> Any:
    return options[rng.integers(len(options))]


def strings(texts: list[str]) -> list[np.ndarray]:
    """Return begins, ends and bytes."""
    parts = [text.encode() for text in texts]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int32) if parts else np.zeros(0, np.int32)
    lengths = np.array([len(part) for part in parts], np.int32)
    return [(ends - lengths).astype(np.int32), ends.astype(np.int32), np.frombuffer(b"".join(parts), np.uint8).copy()]


def _texts(rng: np.random.Generator, count: int) -> list[str]:
    return ["".join(_pick(rng, _PIECES) for _ in range(rng.integers(0, 12))) for _ in range(count)]


def _rows(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Return begins and ends of rows with ``count`` elements."""
    rows = int(rng.integers(1, 4))
    cuts = np.sort(rng.integers(0, count + 1, rows - 1))
    return [np.r_[0, cuts].astype(np.int32), np.r_[cuts, count].astype(np.int32)]


def _skips(rng: np.random.Generator, count: int) -> np.ndarray | None:
    return _pick(rng, (None, rng.integers(0, 2, count).astype(bool)))


def _ragged_strings(rng: np.random.Generator) -> list[np.ndarray]:
    texts = _texts(rng, int(rng.integers(0, 8)))
    return [*_rows(rng, len(texts)), *strings(texts)]


def normalization(rng: np.random.Generator) -> Node:
    texts = _texts(rng, int(rng.integers(0, 6)))
    pattern = _pick(rng, _PATTERNS)
    settings = {
        "pattern": pattern,
        "replacement": _pick(rng, ("", "x", r"\1", r"$1y") if "(a)" in pattern else ("", "x")),
        "global_replace": int(rng.integers(2)),
    }
    return "RegexNormalization", [*strings(texts), _skips(rng, len(texts))], [I32, I32, U8], settings


def split(rng: np.random.Generator) -> Node:
    arrays = _ragged_strings(rng)
    settings = {
        "pattern": _pick(rng, _PATTERNS),
        "behaviour": _pick(rng, ("remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext")),
        "invert": int(rng.integers(2)),
        "max_splits": int(_pick(rng, (-1, 1, 2))),
    }
    return "RegexSplit", [*arrays, _skips(rng, len(arrays[2]))], [I32, I32, I32, I32, BOOL], settings


def special_tokens(rng: np.random.Generator) -> Node:
    arrays = _ragged_strings(rng)
    settings = {"pattern": _pick(rng, ("(ab)", r"\s*(b)", "(1)|(a)"))}
    return "SpecialTokensSplit", [*arrays, _skips(rng, len(arrays[2]))], [I32, I32, I32, I32, BOOL], settings


def validation(rng: np.random.Generator) -> Node:
    arrays = strings(_texts(rng, int(rng.integers(0, 6))))
    broken = rng.random(arrays[2].size) < 0.1
    arrays[2][broken] = rng.integers(0, 256, int(broken.sum()), dtype=np.uint8)
    return "UTF8Validate", arrays, [I32, I32, U8], {"replace_mode": int(rng.integers(2))}


def fallback(rng: np.random.Generator) -> Node:
    return "ByteFallback", strings(_texts(rng, int(rng.integers(0, 6)))), [I32, I32, U8], {}


def bytes_to_chars(rng: np.random.Generator) -> Node:
    texts = _texts(rng, int(rng.integers(0, 6)))
    return "BytesToChars", [*strings(texts), _skips(rng, len(texts))], [I32, I32, U8], {}


def chars_to_bytes(rng: np.random.Generator) -> Node:
    texts = [_pick(rng, ("a", "Ġ", "Ċ", "ab", "")) for _ in range(rng.integers(0, 8))]
    return "CharsToBytes", [*_rows(rng, len(texts)), *strings(texts)], [I32, I32, U8], {}


def word_pieces(rng: np.random.Generator) -> Node:
    settings = {"unk_token_id": 3, "max_bytes_per_word": int(_pick(rng, (2, 100))), "suffix_indicator": "##"}
    return "WordpieceTokenizer", [*_ragged_strings(rng), *strings(_VOCABULARY)], [I32, I32, I32], settings


def unigram(rng: np.random.Generator) -> Node:
    scores = -rng.random(len(_VOCABULARY)).astype(np.float32)
    return (
        "UnigramTokenizer",
        [*_ragged_strings(rng), *strings(_VOCABULARY), scores],
        [I32, I32, I32],
        {"unk_token_id": 16},
    )


def trie(rng: np.random.Generator) -> Node:
    ids = rng.permutation(len(_VOCABULARY)).astype(np.int32)
    return "TrieTokenizer", [*_ragged_strings(rng), *strings(_VOCABULARY), ids], [I32, I32, I32], {}


def decoder(rng: np.random.Generator) -> Node:
    ids = rng.integers(0, len(_VOCABULARY), (rng.integers(0, 4), rng.integers(0, 9))).astype(np.int32)
    skipped = _pick(rng, (None, np.array([1, 3], np.int32)))
    return "VocabDecoder", [ids, *strings(_VOCABULARY), skipped], [I32, I32, I32, I32, U8], {}


def dense(rng: np.random.Generator) -> Node:
    type_ = _pick(rng, (np.int32, np.int64, np.float32))
    data = rng.integers(0, 99, rng.integers(0, 20)).astype(type_)
    length, fill = np.array(rng.integers(0, 9)).astype(np.int32), np.array(7).astype(type_)
    element = {np.int32: I32, np.int64: I64, np.float32: F32}[type_]
    right = np.array(bool(rng.integers(2)))
    return "RaggedToDense", [*_rows(rng, data.size), data, length, fill, right], [element, BOOL], {}


def byte_pairs(rng: np.random.Generator) -> Node:
    tokens = [chr(code) for code in range(97, 123)] + ["é", " "]
    merges = [(0, 1, 28), (28, 0, 29), (1, 0, 30), (28, 28, 31)]
    ids = np.arange(len(tokens), dtype=np.int32)
    known = np.where(rng.random(256) < 0.5, 40, -1).astype(np.int32)
    arrays = [*_ragged_strings(rng), *strings(tokens), ids, np.array(merges, np.int32), _pick(rng, (None, known))]
    settings = {"unk_token_id": int(_pick(rng, (-1, 5))), "end_suffix": _pick(rng, ("", "</w>", "a"))}
    return "BPETokenizer", arrays, [I32, I32, I32], settings


_MAP = np.frombuffer(compile_map({"A": "a", "ab": "x", "é": "e", "\t": " ", "日": ""}), np.uint8)


def characters(rng: np.random.Generator) -> Node:
    texts = _texts(rng, int(rng.integers(0, 6)))
    names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces", "treat_whitespace_as_suffix")
    arrays = [*strings(texts), _MAP.copy(), _skips(rng, len(texts))]
    return "CharsMapNormalization", arrays, [I32, I32, U8], {name: int(rng.integers(2)) for name in names}


_MODEL_TYPES = ("unigram", "bpe", "word", "char")


def _model(rng: np.random.Generator) -> list[np.ndarray]:
    """Return pieces of a SentencePiece model and their types."""
    pieces = [
        *dict.fromkeys("".join(_pick(rng, "ab▁ 日") for _ in range(rng.integers(1, 4))) for _ in range(20)),
        "<u>",
        "<c>",
    ]
    types = [*rng.choice([1, 1, 1, 1, 4, 5], len(pieces) - 2), 2, 3]
    if rng.random() < 0.3:
        pieces += [f"<0x{byte:02X}>" for byte in range(256)]
        types += [6] * 256
    if rng.random() < 0.3:
        pieces.append("ab")
        types.append(0)
    return [*strings(pieces), np.array(types, np.uint8)]


def sentence_pieces(rng: np.random.Generator) -> Node:
    rows, model = _ragged_strings(rng), _model(rng)
    ids = rng.permutation(model[0].size).astype(np.int32)
    scores = -rng.integers(0, 9, ids.size).astype(np.float32) / 2
    names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces", "treat_whitespace_as_suffix")
    settings = {name: int(rng.integers(2)) for name in (*names, "add_bos", "add_eos", "reverse")}
    settings |= {"model_type": _pick(rng, _MODEL_TYPES), "bos_id": 7, "eos_id": -1}
    arrays = [*rows, *model[:3], ids, scores, model[3], _pick(rng, (None, _MAP.copy())), _skips(rng, len(rows[2]))]
    return "SentencepieceTokenizer", arrays, [I32, I32, I32], settings


def sentences(rng: np.random.Generator) -> Node:
    model = _model(rng)
    ids = rng.integers(0, model[0].size + 2, (rng.integers(0, 4), rng.integers(0, 9))).astype(np.int32)
    settings = {name: int(rng.integers(2)) for name in ("add_dummy_prefix", "remove_extra_whitespaces")}
    return "SentencepieceDetokenizer", [ids, *model], [I32, I32, U8], {**settings, "unk_surface": _pick(rng, ("", " ⁇ "))}


def _shaped(rng: np.random.Generator) -> list[np.ndarray]:
    """Return strings with up to three dimensions."""
    shape = tuple(rng.integers(0, 4, rng.integers(0, 4)).tolist())
    begins, ends, symbols = strings(_texts(rng, int(np.prod(shape))))
    return [begins.reshape(shape), ends.reshape(shape), symbols]


def joined(rng: np.random.Generator) -> Node:
    arrays = _shaped(rng)
    separator = np.frombuffer(_pick(rng, (b"", b",", b"::")), np.uint8).copy()
    axis = np.array(rng.integers(-arrays[0].ndim, arrays[0].ndim) if arrays[0].ndim else 0, np.int64)
    return "StringJoin", [*arrays, separator, axis], [I32, I32, U8], {}


def cut(rng: np.random.Generator) -> Node:
    delimiter = np.frombuffer(_pick(rng, (b"", b"a", b"ab", b" ")), np.uint8).copy()
    return "StringSplit", [*_shaped(rng), delimiter, np.array(bool(rng.integers(2)))], [I64, I32, I32, U8, I64], {}


def written(rng: np.random.Generator) -> Node:
    numbers = rng.standard_normal(rng.integers(0, 9)) * 10.0 ** rng.integers(-12, 12)
    return "NumericToString", [numbers.astype(_pick(rng, (np.float32, np.float64)))], [TensorProto.STRING], {}


def segments(rng: np.random.Generator) -> Node:
    rows = int(rng.integers(1, 4))
    counts = np.array([rows, _pick(rng, (1, rows)), rows], np.int64)
    parts = [_rows_of(rng, int(count)) for count in counts]
    sizes = np.array([int(ends[-1]) for _, ends in parts], np.int64)
    begins, ends = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    elements = rng.integers(0, 99, sizes.sum()).astype(np.int32)
    arrays = [begins, ends, elements, counts, sizes, np.array([0, 1, 2], np.int32)]
    return "CombineSegments", arrays, [I32, I32, I32, I32], {}


def _rows_of(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    ends = np.cumsum(rng.integers(0, 5, rows)).astype(np.int32)
    return np.r_[0, ends[:-1]].astype(np.int32), ends


_MAKERS = (
    validation, fallback, bytes_to_chars, chars_to_bytes, word_pieces, unigram, trie, decoder, dense, byte_pairs, characters,
    segments, sentence_pieces, sentences, joined, cut, written,
)  # fmt: skip
_REGEXES = (normalization, split, special_tokens)


def makers() -> tuple[Callable[[np.random.Generator], Node], ...]:
    """Return the makers whose kernels the library has. Without PCRE2 it lacks some."""
    return (*_MAKERS, *_REGEXES) if BUILT >= OF_PCRE2 else _MAKERS
