"""Single operations of openvino_tokenizers, and what OpenVINO computes for them.

    python -m tests.language.operations FOLDER

writes NAME.xml, NAME.bin and NAME.json (inputs and outputs) for each. Importing openvino_tokenizers changes OpenVINO's
factories: the tests run this in a process of its own.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

BEHAVIOURS = ("remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext")
SPLIT = ["  a b  c ", "▁▁x▁y▁", "", "abxxbay"]


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
        for index, (pattern, replacement) in enumerate(
            [(r"^\s*|\s*$", ""), (r"(a)|(b)", "[$1]"), (r"(a|b)(c)?", r"<\1>"), (r"\b", "|"), (r"x*", "-"), ("a", "$$" * 40)]
        ):
            for everywhere in (False, True):
                array = np.array(["  abc b ", "xxa\u00e9", "", "bcac"])
                node = parameter(array)
                inputs = [*unpacked(node), text(pattern), text(replacement)]
                outputs = create("RegexNormalization", inputs, {"global_replace": everywhere}).outputs()
                yield f"RegexNormalization{index}{'ny'[everywhere]}", [packed(outputs)], [node], [array]

    folder.mkdir(parents=True, exist_ok=True)
    for name, outputs, parameters, arrays in cases():
        path = folder / f"{name}.xml"
        ov.save_model(ov.Model(outputs, parameters, name), path)
        try:
            results = ov.Core().compile_model(path, "CPU")([ov.Tensor(array) for array in arrays])
            expected = [results[i].tolist() for i in range(len(outputs))]
        except RuntimeError:  # pieces that overlap cannot be packed, and such
            continue
        inputs = [[array.dtype.kind, array.tolist()] for array in arrays]
        path.with_suffix(".json").write_text(json.dumps({"inputs": inputs, "outputs": expected}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
