"""Tokenizers and detokenizers: the operations of openvino_tokenizers.

Their strings are unpacked into begins, ends and symbols, and rows of strings into two further tensors. The domain's
operators use the same form, and take constants (patterns, vocabularies) in a form that their kernels can look up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.openvino.charsmaps import charsmap
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._patterns import replacement_of
from converters.openvino.rules._texts import constant_of, packed, pattern_of, text_of, tokens_of
from converters.openvino.rules.strings import strings_of
from onnx_specops.building import Builder, Value
from onnx_specops.ops.tokenizers.regex_split import Behaviour


def _split_skips(inputs: Sequence[Value], strings: int, others: int) -> tuple[list[Value], Value | None, list[Value]]:
    """Split the inputs into strings, optional skips, and the rest."""
    has_skips = len(inputs) == strings + 1 + others
    if len(inputs) != strings + has_skips + others:
        raise Malformed(f"it has {len(inputs)} inputs; expected {strings + others} or {strings + others + 1}")
    return list(inputs[:strings]), inputs[strings] if has_skips else None, list(inputs[strings + has_skips :])


# -- normalization --------------------------------------------------------------------------------------------------------

# The patterns that openvino_tokenizers substitutes for those that its older releases wrote.
_OLD_PATTERNS = {
    r" ([\\.\\?\\!,])| ('[ms])| (') | ('[rv]e)| (n't)": r"(?| ([\\.\\?\\!,])| ('[ms])| (') | ('[rv]e)| (n't))",
    r"(^)(.)": r"(^)([\s\S])",
    r"(^)(.+)": r"(^)([\s\S])",
}


_LONG_MATCHES = Departure(
    where="matches that need more than 32 KiB of stack",
    cpu="does not find such matches, for example a run of 5,000 digits as one piece",
    specification="does not limit them; the kernels' limit is 64 MiB",
    follows="specification",
)


@rule("RegexNormalization", since="extension", departs=[_LONG_MATCHES])
def regex_normalization(op: Builder, *inputs: Value, global_replace: bool = True):
    """RegexNormalization of openvino_tokenizers: replacement of the matches of a pattern.

    openvino_tokenizers copies strings unchanged if the replacement is invalid, or names a group that the pattern lacks.
    """
    strings, skips, (pattern, replacement) = _split_skips(inputs, 3, 2)
    others = [] if skips is None else [skips]
    search = _OLD_PATTERNS.get(text_of(pattern, "search pattern"), pattern_of(pattern, "search pattern"))
    text = replacement_of(re.sub(r"\\([1-9])", r"$\1", text_of(replacement, "replacement")), search)
    if text is None:
        return [*strings, *others]
    results = op.specops.RegexNormalization(
        *strings, skips, pattern=search, replacement=text, global_replace=int(global_replace)
    )
    return [*results, *others]


@rule("CharsMapNormalization", since="extension")
def chars_map_normalization(
    op: Builder,
    begins: Value,
    ends: Value,
    symbols: Value,
    *others: Value,
    normalization_form: str = "",
    add_dummy_prefix: bool = False,
    remove_extra_whitespaces: bool = True,
    escape_whitespaces: bool = False,
    case_fold: bool = False,
    nmt: bool = False,
):
    """CharsMapNormalization of openvino_tokenizers: by the file's own map, or by one of Unicode's. ``nmt`` is ignored."""
    skips = next((value for value in others if value.dtype == ir.DataType.BOOL), None)
    maps = [value for value in others if value is not skips]
    if len(others) > 2 or len(maps) > 1 or (maps and others[-1] is not maps[0]):
        raise Malformed(f"it has {len(others) + 3} inputs; expected strings, skips and a character map")
    if normalization_form and maps and skips is None:
        raise Unsupported(
            "it has both a character map and a normalization form; expected one of them",
            "convert the original tokenizer again",
        )
    if not normalization_form and not maps:
        raise Malformed("it has neither a character map nor a normalization form")
    mapping = _unicode_map(op, normalization_form, case_fold) if normalization_form else maps[0]
    results = op.specops.CharsMapNormalization(
        begins,
        ends,
        symbols,
        mapping,
        skips,
        add_dummy_prefix=int(add_dummy_prefix),
        remove_extra_whitespaces=int(remove_extra_whitespaces),
        escape_whitespaces=int(escape_whitespaces),
    )
    return [*results, *([] if skips is None else [skips])]


def _unicode_map(op: Builder, form: str, case_fold: bool) -> Value:
    try:
        return op.const(np.frombuffer(charsmap(form, case_fold), np.uint8))
    except ValueError as error:
        raise Malformed(str(error)) from None


@rule("NormalizeUnicode", since="extension")
def normalize_unicode(
    op: Builder, begins: Value, ends: Value, symbols: Value, skips: Value | None = None, *, normalization_form: str = "NFD"
):
    """NormalizeUnicode of openvino_tokenizers: a Unicode normalization form, as in SentencePiece's maps."""
    results = op.specops.CharsMapNormalization(
        begins, ends, symbols, _unicode_map(op, normalization_form, False), skips, remove_extra_whitespaces=0
    )
    return [*results, *([] if skips is None else [skips])]


@rule("CaseFold", since="extension")
def case_fold(
    op: Builder,
    begins: Value,
    ends: Value,
    symbols: Value,
    skips: Value | None = None,
    *,
    encoding: Literal["", "utf-8"] = "utf-8",
    lower: bool = True,
):
    """CaseFold of openvino_tokenizers: without an encoding, ASCII letters in all strings; with UTF-8, all letters."""
    kept = [] if skips is None else [skips]
    if encoding:
        if not lower:
            raise Malformed("it has an encoding, which requires lower=true")
        mapping = _unicode_map(op, "identity", True)
        return [*op.specops.CharsMapNormalization(begins, ends, symbols, mapping, skips, remove_extra_whitespaces=0), *kept]
    first, last = (ord("A"), ord("Z")) if lower else (ord("a"), ord("z"))
    codes = op.Cast(symbols, to=ir.DataType.INT32)
    is_letter = op.And(op.GreaterOrEqual(codes, first), op.LessOrEqual(codes, last))
    changed = op.Where(is_letter, op.Add(codes, 32 if lower else -32), codes)
    return [begins, ends, op.Cast(changed, to=ir.DataType.UINT8), *kept]


@rule("BytesToChars", since="extension")
def bytes_to_chars(
    op: Builder,
    ragged_begins: Value,
    ragged_ends: Value,
    begins: Value,
    ends: Value,
    symbols: Value,
    skips: Value | None = None,
):
    """BytesToChars of openvino_tokenizers: a printable character for each byte."""
    results = op.specops.BytesToChars(begins, ends, symbols, skips)
    return [ragged_begins, ragged_ends, *results, *([] if skips is None else [skips])]


@rule("CharsToBytes", since="extension")
def chars_to_bytes(op: Builder, ragged_begins: Value, ragged_ends: Value, begins: Value, ends: Value, symbols: Value):
    """CharsToBytes of openvino_tokenizers: the inverse of BytesToChars, with the strings of a row joined."""
    return op.specops.CharsToBytes(ragged_begins, ragged_ends, begins, ends, symbols)


@rule("ByteFallback", since="extension")
def byte_fallback(op: Builder, begins: Value, ends: Value, symbols: Value):
    """ByteFallback of openvino_tokenizers: the bytes of tokens such as <0x0A>."""
    return op.specops.ByteFallback(begins, ends, symbols)


@rule("UTF8Validate", since="extension")
def utf8_validate(op: Builder, begins: Value, ends: Value, symbols: Value, *, replace_mode: bool = False):
    """UTF8Validate of openvino_tokenizers: bytes that are not valid UTF-8 are removed or replaced."""
    return op.specops.UTF8Validate(begins, ends, symbols, replace_mode=int(replace_mode))


# -- pieces ---------------------------------------------------------------------------------------------------------------


@rule("SpecialTokensSplit", since="extension", departs=[_LONG_MATCHES])
def special_tokens_split(op: Builder, *inputs: Value):
    """SpecialTokensSplit of openvino_tokenizers: strings split into special tokens and the text around them."""
    strings, skips, (pattern,) = _split_skips(inputs, 5, 1)
    *rows, begins, ends, skips = op.specops.SpecialTokensSplit(*strings, skips, pattern=pattern_of(pattern, "split pattern"))
    return [*rows, begins, ends, strings[4], skips]


@rule(
    "RegexSplit",
    since="extension",
    departs=[
        Departure(
            where="no symbols in any string",
            cpu="gives one row for any number of strings",
            specification="does not define it; one row per string is expected",
            follows="cpu",
        ),
        Departure(
            where="bytes that are not UTF-8",
            cpu="reads out of bounds, and may crash",
            specification="such bytes match nothing, as in PCRE2",
            follows="specification",
        ),
        _LONG_MATCHES,
    ],
)
def regex_split(op: Builder, *inputs: Value, behaviour: Behaviour = "remove", invert: bool = False, max_splits: int = -1):
    """RegexSplit of openvino_tokenizers: strings split into pieces. With nine inputs, three of them are strings that are not
    split.
    """
    if len(inputs) == 9:
        strings, skips, pattern = list(inputs[:5]), _is_any_of(op, inputs[2:5], inputs[6:]), inputs[5]
        has_skips = False
    else:
        strings, skips, (pattern,) = _split_skips(inputs, 5, 1)
        has_skips = skips is not None
    if max_splits == 0 or max_splits < -1:
        raise Malformed(f"max_splits={max_splits} is neither -1 nor greater than 0")
    *rows, begins, ends, pieces = op.specops.RegexSplit(
        *strings,
        skips,
        pattern=pattern_of(pattern, "split pattern"),
        behaviour=behaviour,
        invert=int(invert),
        max_splits=max_splits,
    )
    return [*rows, begins, ends, strings[4], *([pieces] if has_skips else [])]


def _is_any_of(op: Builder, strings: Sequence[Value], tokens: Sequence[Value]) -> Value | None:
    """Return which strings are among the tokens."""
    known = list(dict.fromkeys(tokens_of(tokens, "tokens to skip")))
    if not known:
        return None
    vocabulary = op.const(np.array(known, object), ir.DataType.STRING)
    return op.GreaterOrEqual(op.specops.VocabularyTable(strings_of(op, *strings), vocabulary), 0)


# -- ids ------------------------------------------------------------------------------------------------------------------


@rule("BPETokenizer", since="extension")
def bpe_tokenizer(
    op: Builder,
    *inputs: Value,
    unk_token: str = "",
    fuse_unk: bool = False,
    suffix_indicator: str = "",
    end_suffix: str = "",
    byte_fallback: bool = False,
    cache_capacity: int = 20000,
):
    """BPETokenizer of openvino_tokenizers.

    ``fuse_unk`` and ``suffix_indicator`` are ignored, as in OpenVINO. ``cache_capacity`` does not affect the result.
    """
    if len(inputs) not in (11, 14, 15, 18):
        raise Malformed(f"it has {len(inputs)} inputs; expected 11, 14, 15 or 18")
    vocabulary = {token: number for number, token in enumerate(tokens_of(inputs[5:8], "vocabulary"))}
    left = tokens_of(inputs[8:11], "merges")
    if len(inputs) in (14, 18):
        pairs = list(zip(left, tokens_of(inputs[11:14], "merges"), strict=False))
    else:
        # A merge without a blank is a pair of equal texts.
        pairs = [(text.partition(b" ")[0], text.partition(b" ")[2] if b" " in text else text) for text in left]
    if len(inputs) in (15, 18):
        numbers = constant_of(inputs[-1], "ids of added tokens").reshape(-1).tolist()
        for token, number in zip(tokens_of(inputs[-4:-1], "added tokens"), numbers, strict=False):
            vocabulary.setdefault(token, number)
    unknown = vocabulary.get(unk_token.encode(), -1)
    merges = np.empty((len(pairs), 3), np.int32)
    for row, (first, second) in enumerate(pairs):
        for column, token in enumerate((first, second, first + second)):
            if token not in vocabulary:
                raise Malformed(f"merge {row} has {token!r}, which is not in the vocabulary")
            merges[row, column] = vocabulary[token]
    for first, second in pairs:
        vocabulary.pop(first + second, None)
    fallback = [vocabulary.get(b"<0x%02X>" % byte, -1) for byte in range(256)] if byte_fallback else [-1]
    vocabulary.pop(b"", None)
    return op.specops.BPETokenizer(
        *inputs[:5],
        *packed(op, list(vocabulary)),
        op.const(np.array(list(vocabulary.values()), np.int32)),
        op.const(merges),
        op.const(np.array(fallback, np.int32)) if max(fallback) >= 0 else None,
        unk_token_id=unknown,
        end_suffix=end_suffix,
    )


@rule("WordpieceTokenizer", since="extension")
def wordpiece_tokenizer(op: Builder, *inputs: Value, suffix_indicator: str = "##", max_bytes_per_word: int = 100):
    """WordpieceTokenizer of openvino_tokenizers."""
    if len(inputs) != 9:
        raise Malformed(f"it has {len(inputs)} inputs; expected 9")
    unknown = int(constant_of(inputs[8], "id of unknown words").reshape(-1)[0])
    return op.specops.WordpieceTokenizer(
        *inputs[:8], suffix_indicator=suffix_indicator, max_bytes_per_word=max_bytes_per_word, unk_token_id=unknown
    )


@rule("UnigramTokenizer", since="extension")
def unigram_tokenizer(
    op: Builder,
    *inputs: Value,
    unk_token_id: int = 0,
    byte_fallback: bool = False,
    fuse_unk: bool = False,
    min_score: float = 0.0,
):
    """UnigramTokenizer of openvino_tokenizers, which ignores ``byte_fallback``, ``fuse_unk`` and ``min_score``."""
    if len(inputs) != 9:
        raise Malformed(f"it has {len(inputs)} inputs; expected 9")
    return op.specops.UnigramTokenizer(*inputs, unk_token_id=unk_token_id)


@rule("TrieTokenizer", since="extension")
def trie_tokenizer(op: Builder, *inputs: Value):
    """TrieTokenizer of openvino_tokenizers, such as RWKV's."""
    if len(inputs) != 9:
        raise Malformed(f"it has {len(inputs)} inputs; expected 9")
    return op.specops.TrieTokenizer(*inputs)


# -- rows -----------------------------------------------------------------------------------------------------------------


@rule("Truncate", since="extension")
def truncate(op: Builder, *inputs: Value, m_num_inputs: int = 1):
    """Truncate of openvino_tokenizers: rows, or pairs of rows, with a maximum number of elements."""
    count = (len(inputs) - 3) // 3
    if count not in (1, 2) or len(inputs) != 3 * count + 3:
        raise Malformed(f"it has {len(inputs)} inputs; expected 6 or 9")
    longest = op.Cast(op.Reshape(inputs[-3], []), to=ir.DataType.INT32)
    side, mode = text_of(inputs[-2], "side"), text_of(inputs[-1], "mode")
    if side not in ("left", "right") or mode not in ("only_first", "only_second", "longest_first"):
        raise Malformed(f"its truncation mode {mode!r} or side {side!r} is unknown")
    lengths = [op.Sub(inputs[3 * i + 1], inputs[3 * i]) for i in range(count)]
    kept = [op.Min(lengths[0], longest)] if count == 1 else _lengths_of_pairs(op, lengths[0], lengths[1], longest, mode)
    results: list[Value] = []
    for i, length in enumerate(kept):
        begins, ends, elements = inputs[3 * i : 3 * i + 3]
        if side == "right":
            results += [begins, op.Add(begins, length), elements]
        else:
            results += [op.Sub(ends, length), ends, elements]
    return results


def _lengths_of_pairs(op: Builder, first: Value, second: Value, longest: Value, mode: str) -> list[Value]:
    """Return the remaining lengths of both rows of a pair."""
    fits = op.LessOrEqual(op.Add(first, second), longest)
    if mode == "only_first":
        return [op.Where(fits, first, op.Min(first, longest)), second]
    if mode == "only_second":
        return [first, op.Where(fits, second, op.Min(second, longest))]
    half = op.Div(longest, 2)
    odd = op.Sub(longest, op.Mul(half, 2))
    first_is_long = op.GreaterOrEqual(first, op.Add(half, odd))
    second_is_long = op.Greater(second, half)
    only_first, only_second = (
        op.And(first_is_long, op.Not(second_is_long)),
        op.And(op.Not(first_is_long), second_is_long),
    )
    first_is_longer = op.Cast(op.GreaterOrEqual(first, second), to=ir.DataType.INT32)
    halves = op.Add(half, op.Mul(odd, first_is_longer)), op.Add(half, op.Mul(odd, op.Sub(1, first_is_longer)))
    cut_first = op.Where(only_first, op.Sub(longest, second), op.Where(only_second, first, halves[0]))
    cut_second = op.Where(only_second, op.Sub(longest, first), op.Where(only_first, second, halves[1]))
    return [op.Where(fits, first, cut_first), op.Where(fits, second, cut_second)]


@rule("CombineSegments", since="extension")
def combine_segments(op: Builder, *inputs: Value):
    """CombineSegments of openvino_tokenizers: rows concatenated from several segments, such as [CLS], text, [SEP]."""
    if len(inputs) < 4 or len(inputs) % 3 != 1:
        raise Malformed(f"it has {len(inputs)} inputs; expected three for each segment and one more")
    *segments, ids = inputs
    begins, ends, elements = segments[::3], segments[1::3], segments[2::3]
    rows = [value for value in begins if value.rank != 0]
    if not rows:
        raise Unsupported("none of its segments has rows", "convert a tokenizer of texts")

    def flat(values: Sequence[Value]) -> Value:
        return op.Concat(*(op.Reshape(value, [-1]) for value in values), axis=0)

    row_begins, row_ends, combined, segment_ids = op.specops.CombineSegments(
        flat(begins),
        flat(ends),
        flat(elements),
        op.Concat(*(op.Shape(op.Reshape(value, [-1])) for value in begins), axis=0),
        op.Concat(*(op.Shape(op.Reshape(value, [-1])) for value in elements), axis=0),
        op.Reshape(ids, [-1]),
    )
    return [row_begins, row_ends, combined, row_begins, row_ends, segment_ids]


@rule("RaggedToDense", since="extension")
def ragged_to_dense(
    op: Builder,
    begins: Value,
    ends: Value,
    data: Value,
    length: Value,
    default_value: Value,
    pad_right_input: Value | None = None,
    *,
    pad_right: bool = True,
    m_pad_max_length: bool = False,
):
    """RaggedToDense of openvino_tokenizers: rows of equal length, padded at one end."""
    if m_pad_max_length:
        raise Unsupported("m_pad_max_length reads out of bounds", "convert a tokenizer that pads by its lengths")
    side = op.const(np.bool_(pad_right)) if pad_right_input is None else op.Cast(pad_right_input, to=ir.DataType.BOOL)
    return op.specops.RaggedToDense(begins, ends, data, length, default_value, side)


@rule("RaggedToSparse", since="extension")
def ragged_to_sparse(op: Builder, begins: Value, ends: Value):
    """RaggedToSparse of openvino_tokenizers: the row of each element, and its position in the row, ``[n, 2]``."""
    lengths = op.Sub(ends, begins)
    longest = op.ReduceMax(op.Concat(lengths, op.const(np.zeros(1, np.int32)), axis=0), keepdims=0)
    places = op.Range(op.const(np.int32(0)), longest, op.const(np.int32(1)))
    taken = op.Less(op.Unsqueeze(places, [0]), op.Unsqueeze(lengths, [1]))
    return op.Cast(op.Transpose(op.NonZero(taken), perm=[1, 0]), to=ir.DataType.INT32)


@rule("RaggedToRagged", since="extension")
def ragged_to_ragged(op: Builder, row_ids: Value, count: Value):
    """RaggedToRagged of openvino_tokenizers: ascending row ids as begins and ends of rows."""
    rows = op.Range(op.const(np.int32(0)), op.Reshape(count, []), op.const(np.int32(1)))
    return [op.Cast(op.specops.SearchSorted(row_ids, rows, right_mode=right), to=ir.DataType.INT32) for right in (0, 1)]


@rule("RaggedTensorPack", since="extension")
def ragged_tensor_pack(op: Builder, begins: Value, ends: Value, elements: Value):
    """RaggedTensorPack of openvino_tokenizers, which returns only the elements."""
    return op.Identity(elements)


@rule("EqualStr", since="extension")
def equal_str(
    op: Builder, begins: Value, ends: Value, symbols: Value, others_begins: Value, others_ends: Value, others_symbols: Value
):
    """EqualStr of openvino_tokenizers: which strings are equal, ``[n]`` of i32. A single string is compared with all."""
    first, second = strings_of(op, begins, ends, symbols), strings_of(op, others_begins, others_ends, others_symbols)
    return op.Cast(op.Equal(op.Reshape(first, [-1]), op.Reshape(second, [-1])), to=ir.DataType.INT32)


# -- detokenizers ---------------------------------------------------------------------------------------------------------


@rule("VocabDecoder", since="extension")
def vocab_decoder(
    op: Builder,
    ids: Value,
    begins: Value,
    ends: Value,
    symbols: Value,
    skip_tokens_input: Value | None = None,
    *,
    skip_tokens: tuple[int, ...] = (),
):
    """VocabDecoder of openvino_tokenizers: the tokens of ids."""
    skips = op.const(np.array(skip_tokens, np.int32)) if skip_tokens_input is None else skip_tokens_input
    return op.specops.VocabDecoder(op.Cast(ids, to=ir.DataType.INT32), begins, ends, symbols, skips)


@rule("FuzeRagged", since="extension")
def fuze_ragged(op: Builder, ragged_begins: Value, ragged_ends: Value, begins: Value, ends: Value):
    """FuzeRagged of openvino_tokenizers: each row of consecutive strings as one string.

    An empty row before other strings is the next string. After the last string, openvino_tokenizers reads beyond its data;
    here, the result is an empty string.
    """
    last = op.Sub(ragged_ends, op.Cast(op.Greater(ragged_ends, ragged_begins), to=ir.DataType.INT32))
    begins, ends = (op.Concat(value, op.const([0], value.dtype), axis=0) for value in (begins, ends))
    return [op.Gather(begins, ragged_begins), op.Gather(ends, last)]
