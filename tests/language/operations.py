"""Single operations of openvino_tokenizers, with OpenVINO's results.

    python -m tests.language.operations FOLDER

writes NAME.xml, NAME.bin and NAME.json (inputs and outputs) for each. Importing openvino_tokenizers changes OpenVINO's
factories, so the tests run this in a separate process.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from converters.openvino.charsmaps import compile_map
from converters.openvino.sentencepiece_models import model_message

BEHAVIOURS = ("remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext")
SPLIT = ["  a b  c ", "▁▁x▁y▁", "", "abxxbay"]


CHARACTERS = "abcd▁ é日🙂AB①\t"


def sentencepiece_model(rng: np.random.Generator) -> tuple[bytes, list[int]]:
    """Return a SentencePiece model of random pieces, and the ids whose pieces have no NUL."""
    model = model_message()()
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    trainer.model_type = int(rng.integers(1, 5))
    trainer.byte_fallback, trainer.treat_whitespace_as_suffix = bool(rng.random() < 0.4), bool(rng.random() < 0.3)
    normalizer.add_dummy_prefix, normalizer.remove_extra_whitespaces = bool(rng.integers(2)), bool(rng.integers(2))
    normalizer.escape_whitespaces = bool(rng.random() < 0.7)
    if rng.integers(2):
        rules = {"A": "a", "B": " b ", "ab": "x", "①": "1", "\t": " ", "日": ""}
        normalizer.precompiled_charsmap = compile_map(rules)
    if rng.random() < 0.3:
        model.denormalizer_spec.precompiled_charsmap = compile_map({"a": "A", "b ": "  "})
        model.denormalizer_spec.escape_whitespaces = bool(rng.integers(2))
    kinds = {"<unk>": 2, "<s>": 3, "</s>": 3}
    if trainer.byte_fallback:
        kinds |= {f"<0x{byte:02X}>": 6 for byte in range(256)}
    met: list[str] = []
    for _ in range(rng.integers(20, 80)):
        word = "".join(rng.choice(met, 2)) if met and rng.integers(2) else "".join(rng.choice(list(CHARACTERS), 1))
        if word not in kinds and len(word) < 10:
            kinds[word] = int(rng.choice([1, 1, 1, 1, 1, 1, 4, 5]))
            met.append(word)
    is_tied = rng.integers(2)
    for word, kind in kinds.items():
        score = -float(rng.integers(4)) if is_tied else -float(rng.random())
        model.pieces.add(piece=word.encode(), type=kind, score=score)
    return model.SerializeToString(), [place for place, word in enumerate(kinds) if word != "<0x00>"]


def main(folder: Path) -> None:
    import openvino as ov
    import openvino_tokenizers
    from openvino import op

    create = openvino_tokenizers._get_factory().create
    create_15 = openvino_tokenizers._get_opset_factory("opset15").create

    def parameter(array: np.ndarray) -> Any:
        kind = ov.Type.string if array.dtype.kind == "U" else ov.Type(array.dtype)
        return op.Parameter(kind, ov.PartialShape([-1] * array.ndim))

    def unpacked(node: Any) -> list[Any]:
        return create_15("StringTensorUnpack", node.outputs()).outputs()

    def packed(outputs: list[Any]) -> Any:
        return create_15("StringTensorPack", outputs).output(0)

    def numbers(*values: int) -> np.ndarray:
        return np.array(values, np.int32)

    def rows(count: int) -> list[Any]:
        return [op.Constant(np.arange(i, count + i, dtype=np.int32)).output(0) for i in (0, 1)]

    def text(pattern: str) -> Any:
        return op.Constant(np.frombuffer(pattern.encode(), np.uint8)).output(0)

    def on_strings(name: str, strings: list[str], **attributes: Any) -> tuple[list[Any], list[Any], list[np.ndarray]]:
        array = np.array(strings)
        node = parameter(array)
        return [packed(create(name, unpacked(node), attributes).outputs()[:3])], [node], [array]

    def cases() -> Iterator[tuple[str, list[Any], list[Any], list[np.ndarray]]]:
        arrays = [numbers(0, 2, 2, 5), numbers(2, 2, 5, 6)]
        nodes = [parameter(array) for array in arrays]
        yield "RaggedToSparse", create("RaggedToSparse", [n.output(0) for n in nodes]).outputs(), nodes, arrays
        for ids in ((0, 0, 2, 2, 2, 4), (1,), ()):
            arrays = [numbers(*ids), numbers(6)]
            nodes = [parameter(array) for array in arrays]
            yield (
                f"RaggedToRagged{len(ids)}",
                create("RaggedToRagged", [n.output(0) for n in nodes]).outputs(),
                nodes,
                arrays,
            )
        for others in (["a", "b", "c"], ["bb"]):
            arrays = [np.array(["a", "bb", "c"]), np.array(others)]
            nodes = [parameter(array) for array in arrays]
            outputs = create("EqualStr", [*unpacked(nodes[0]), *unpacked(nodes[1])]).outputs()
            yield f"EqualStr{len(others)}", outputs, nodes, arrays
        yield "CaseFold", *on_strings("CaseFold", ["ABc Äß ΑΣ", "ŉ", "", "İ"], encoding="utf-8")
        marks = ["é ﬁ ½", "e\u0301\u0323", "각 \u1100\u1161\u11a8", "ǅ Å"]
        for form in ("NFC", "NFD", "NFKC", "NFKD"):
            yield f"NormalizeUnicode{form}", *on_strings("NormalizeUnicode", marks, normalization_form=form)
        for flags in itertools.product((False, True), repeat=3):
            names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
            settings = {**dict(zip(names, flags, strict=True)), "normalization_form": "nfc", "case_fold": True}
            name = "CharsMapNormalization" + "".join("ny"[flag] for flag in flags)
            yield name, *on_strings("CharsMapNormalization", ["  Ab \u00a0 c  ", " ", "", "x"], **settings)
        yield "ByteFallback", *on_strings("ByteFallback", ["<0x41>", "<0x0A>", "x", "<0x41", "<<0x4>"])
        array = np.array(["aé b", "\n", "日"])
        node = parameter(array)
        characters = create("BytesToChars", [*rows(3), *unpacked(node)]).outputs()
        yield "BytesToChars", [packed(characters[2:])], [node], [array]
        node = parameter(array)
        characters = create("BytesToChars", [*rows(3), *unpacked(node)]).outputs()
        yield "CharsToBytes", [packed(create("CharsToBytes", characters).outputs())], [node], [array]
        for behaviour, invert, most, (index, pattern) in itertools.product(
            BEHAVIOURS, (False, True), (-1, 2), enumerate((" ", "▁", "[ab]"))
        ):
            array = np.array(SPLIT)
            node = parameter(array)
            settings = {"behaviour": behaviour, "invert": invert, "max_splits": most}
            pieces = create("RegexSplit", [*rows(4), *unpacked(node), text(pattern)], settings).outputs()
            name = f"RegexSplit-{behaviour}-{'ny'[invert]}{most}-{index}"
            yield name, [*pieces[:2], packed(pieces[2:5])], [node], [array]
        for index, pattern in enumerate((r"\w+|[^\w\s]+", r"\W", r"\b\w", r"[[:alpha:]\w]+x", r"[]\w]", r"\[\w")):
            array = np.array(["हिन्दी e\u0301x_y‿z", "a]b[c x", "x\u20ddx", "[a]"])
            node = parameter(array)
            pieces = create("RegexSplit", [*rows(4), *unpacked(node), text(pattern)], {"behaviour": "isolate"}).outputs()
            yield f"RegexSplit-words-{index}", [*pieces[:2], packed(pieces[2:5])], [node], [array]
        for length in (1000, 20000):  # OpenVINO does not find the longer match
            array = np.array([f"{'1' * length} x"])
            node = parameter(array)
            pieces = create("RegexSplit", [*rows(1), *unpacked(node), text("[0-9]")], {"behaviour": "contiguous"}).outputs()
            yield f"RegexSplit-long-{length}", [*pieces[:2], packed(pieces[2:5])], [node], [array]
        # Patterns that differ between releases of PCRE2.
        of_releases = (
            r"[^\W\d_]+",
            r"[\W_]",
            r"[[:word:]]+",
            r"[[:^word:]]",
            r"\p{Xwd}+",
            r"\P{Xwd}",
            r"[\p{Xwd}a]+",
            "x{,2}b",
        )
        of_releases += (
            r"(?i)\p{Lu}+",
            r"(?i:\p{Ll})a",
            r"[[:xdigit:]]+",
            r"[[:^xdigit:]]",
            r"\p{L&}+",
            r"\p{Common}",
            "x{ 1, 2 }",
        )
        for index, pattern in enumerate(of_releases):
            array = np.array(["हिन्दी e\u0301x_y‿z", "aªB·c Ǆǅ1\uff11f\uff21g", "xxxb bx{,2}b", "ABaAba"])
            node = parameter(array)
            pieces = create("RegexSplit", [*rows(4), *unpacked(node), text(pattern)], {"behaviour": "isolate"}).outputs()
            yield f"RegexSplit-releases-{index}", [*pieces[:2], packed(pieces[2:5])], [node], [array]
        for index, (pattern, replacement) in enumerate(
            [(r"^\s*|\s*$", ""), (r"(a)|(b)", "[$1]"), (r"(a|b)(c)?", r"<\1>"), (r"\b", "|"), (r"x*", "-"), ("a", "$$" * 40)]
        ):
            for everywhere in (False, True):
                array = np.array(["  abc b ", "xxa\u00e9", "", "bcac"])
                node = parameter(array)
                inputs = [*unpacked(node), text(pattern), text(replacement)]
                outputs = create("RegexNormalization", inputs, {"global_replace": everywhere}).outputs()
                yield f"RegexNormalization{index}{'ny'[everywhere]}", [packed(outputs)], [node], [array]
        # A group that the pattern does not have, an invalid replacement, and near misses.
        for index, (pattern, replacement) in enumerate(
            [
                *[
                    ("(a)b", "$2x"),
                    ("(a)b", "<$12>"),
                    ("ab", r"\1"),
                    ("(?:a)b", "${1}"),
                    (r"\(?a[(]?b", "$1"),
                    ("(a)b", "$$2$1"),
                ],
                *[
                    ("(a)b", "x$"),
                    ("(a)b", "$ "),
                    ("(a)b", "${1"),
                    ("(a)b", "<$0001>"),
                    ("(a)b", "<$&>"),
                    ("(?<n>a)b", "$n${1}"),
                ],
                *[("(?<n>a)b", "$m"), ("(a)b", "$n")],
            ]
        ):
            array = np.array(["zabab c", "none", "(ab"])
            node = parameter(array)
            outputs = create("RegexNormalization", [*unpacked(node), text(pattern), text(replacement)], {}).outputs()
            yield f"RegexNormalization-groups{index}", [packed(outputs)], [node], [array]
        vocabulary, keys = np.array(["a", "b", "a", "c"]), np.array(["a", "c", "z", "b"])
        for name, given in (("constant", False), ("computed", True)):
            nodes = [parameter(keys), *([parameter(vocabulary)] if given else [])]
            table = nodes[1] if given else ov.op.Constant(ov.Tensor(vocabulary))
            values, default = (op.Constant(np.array(number, np.int32)).output(0) for number in ([10, 11, 12, 13], -1))
            found = create("VocabEncoder", [*unpacked(nodes[0]), *unpacked(table), values, default])
            yield f"VocabEncoder-{name}", found.outputs(), nodes, [keys, vocabulary][: len(nodes)]
        for name, entries in (("unpacked", ["a", "b", "a", "c"]), ("empty", [])):
            node = parameter(keys)
            ends = np.cumsum([0, *map(len, entries)], dtype=np.int32)
            text_ = np.frombuffer("".join(entries).encode(), np.uint8)
            table = [op.Constant(array).output(0) for array in (ends[:-1].copy(), ends[1:].copy(), text_)]
            values = op.Constant(np.arange(10, 10 + len(entries), dtype=np.int32)).output(0)
            found = create("VocabEncoder", [*unpacked(node), *table, values, default])
            yield f"VocabEncoder-{name}", found.outputs(), [node], [keys]
        for index, (first, last) in enumerate([([0, 2], [2, 3]), ([0, 2, 2], [2, 2, 3]), ([0, 0], [0, 0])]):
            arrays = [np.array(array, np.int32) for array in (first, last, [0, 3, 5], [3, 5, 9])]
            nodes = [parameter(array) for array in arrays]
            rows_of = create("FuzeRagged", [node.output(0) for node in nodes])
            yield f"FuzeRagged{index}", rows_of.outputs(), nodes, arrays

        words = np.array([["a", "bb", ""], ["é", "", "x y"]])
        for index, (array, separator, axis) in enumerate(
            [
                (words, ", ", 0),
                (words, "", -1),
                (words, "·", 1),
                (words[0], "-", 0),
                (words[:1, None], "+", 1),
                (np.array("é"), "-", 0),
            ]
        ):
            node = parameter(array)
            where = op.Constant(np.array(axis, np.int64) if index % 2 else np.array([axis], np.int32)).output(0)
            inputs = [*unpacked(node), text(separator), where]
            yield f"ContribStringJoin{index}", [packed(create("ContribStringJoin", inputs).outputs())], [node], [array]
        pieces = np.array([["a,b,,c", ","], ["", "é,,"]])
        for index, (array, delimiter, skips) in enumerate(
            itertools.product((pieces, pieces[0], np.array("a,b,")), (",", ",,", "no"), (False, True))
        ):
            node = parameter(array)
            flag = op.Constant(np.array(skips) if index % 2 else np.array([skips], np.uint8)).output(0)
            parts = create("ContribStringSplit", [*unpacked(node), text(delimiter), flag]).outputs()
            yield f"ContribStringSplit{index}", [parts[0], packed(parts[1:4]), parts[4]], [node], [array]
        node = parameter(pieces[:, 0])
        parts = create("ContribStringSplit", [*unpacked(node), text(""), op.Constant(np.array(True)).output(0)]).outputs()
        yield "ContribStringSplit-bytes", parts, [node], [pieces[:, 0]]
        for kind in (np.float32, np.float64, np.float16):
            large = [] if kind == np.float16 else [123456, 1234567, 123456.5, 999999.5]
            values = [0.1, -0.0, 1, *large, 1e-4, 9.9999997e-5, 1 / 3, 65504, 6e-8, -2.5]
            # The CPU plugin converts f64 to f32, which overflows to infinity.
            beyond = [] if kind == np.float64 else [np.inf, -np.inf, np.nan]
            array = np.array([*values, *beyond], kind)
            node = parameter(array)
            yield f"NumericToString{array.dtype}", create("NumericToString", [node.output(0)]).outputs(), [node], [array]
        for array in (np.array([True, False]), numbers(-7, 0, 2**31 - 1), np.array([200, 0], np.uint8)):
            node = parameter(array)
            yield f"NumericToString{array.dtype}", create("NumericToString", [node.output(0)]).outputs(), [node], [array]
        for seed in range(20):
            yield f"Sentencepiece{seed}", *sentencepieces(seed)

    def sentencepieces(seed: int) -> tuple[list[Any], list[Any], list[np.ndarray]]:
        """Return a random model's ids, with different settings for each seed, and its texts for ids."""
        rng = np.random.default_rng(seed)
        data, known = sentencepiece_model(rng)
        model = op.Constant(np.frombuffer(data, np.uint8)).output(0)
        texts = np.array(
            ["".join(rng.choice(list(CHARACTERS), rng.integers(0, 14))) for _ in range(6)] + ["<s>a</s> sop b", ""]
        )
        node, ids = parameter(texts), rng.choice([*known, max(known) + 1], (5, 12)).astype(np.int32)
        inputs = unpacked(node) if rng.random() < 0.5 else node.outputs()
        if rng.random() < 0.5:
            tokens = [np.frombuffer(token, np.uint8) for token in (b"<s>", b"sop", b"(a.b")]
            ends = np.cumsum([len(token) for token in tokens], dtype=np.int32)
            numbers_ = (ends - [len(token) for token in tokens], ends, np.concatenate(tokens), np.array([1, 900, 901]))
            inputs += [op.Constant(a.astype(np.uint8 if a.dtype == np.uint8 else np.int32)).output(0) for a in numbers_]
        settings = {name: bool(rng.integers(2)) for name in ("add_bos", "add_eos", "reverse")} | {
            "nbest_size": 1,
            "alpha": 1.0,
        }
        sparse = create("SentencepieceTokenizer", [model, *inputs], settings).outputs()
        back = parameter(ids)
        texts_back = create("SentencepieceDetokenizer", [model, back.output(0)]).outputs()
        streamed = create("SentencepieceStreamDetokenizer", [model, back.output(0)]).outputs()
        valid = create("UTF8Validate", streamed, {"replace_mode": True}).outputs()
        return [*sparse, packed(texts_back), packed(valid)], [node, back], [texts, ids]

    folder.mkdir(parents=True, exist_ok=True)
    for name, outputs, parameters, arrays in cases():
        path = folder / f"{name}.xml"
        ov.save_model(ov.Model(outputs, parameters, name), path)
        try:
            results = ov.Core().compile_model(path, "CPU")([ov.Tensor(array) for array in arrays])
            expected = [results[i].tolist() for i in range(len(outputs))]
        except RuntimeError:  # such as overlapping pieces that cannot be packed
            continue
        inputs = [["object" if array.dtype.kind == "U" else array.dtype.name, array.tolist()] for array in arrays]
        path.with_suffix(".json").write_text(json.dumps({"inputs": inputs, "outputs": expected}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
