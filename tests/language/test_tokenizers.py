"""Tokenizers of every kind give OpenVINO's ids, detokenizers its texts, with native and Python kernels."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

import onnx_specops
from converters.openvino import convert
from tests.language.texts import MEGABYTE, TEXTS, digest
from tests.native import BUILT, needs_library, needs_pcre2

FILES = Path(__file__).parent / "files"
KINDS = sorted(folder.name for folder in FILES.iterdir())
EXPECTED = {kind: json.loads((FILES / kind / "expected.json").read_text()) for kind in KINDS}
KERNELS = [
    pytest.param("native", marks=needs_pcre2),
    "python",
]
CASES = {**TEXTS, "1 MB": [MEGABYTE]}


@cache
def session(kind: str, name: str, kernels: Any) -> onnx_specops.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    model = convert(FILES / kind / f"{name}.xml").model
    return onnx_specops.InferenceSession(model.SerializeToString(), options, kernels=kernels)


def run(kind: str, kernels: str, texts: list[str], truncation: bool = False) -> dict[str, Any]:
    """Return the outputs by name."""
    tokenizer = session(kind, "tokenizer", kernels)
    tokenizer.reset_state()
    columns = [texts, texts[::-1]]
    feeds = {v.name: np.array(column, object) for v, column in zip(tokenizer.get_inputs(), columns, strict=False)}
    if truncation:
        feeds |= {v.name: np.array(True) for v in tokenizer.get_overridable_initializers()}
    names = [output.name for output in tokenizer.get_outputs()]
    arrays = dict(zip(names, tokenizer.run(None, feeds), strict=True))
    return {name: digest(array) if array.size > 1000 else array.tolist() for name, array in arrays.items()}


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("kind", KINDS)
def test_ids(kind: str, kernels: str) -> None:
    for name, expected in EXPECTED[kind]["tokenizer"].items():
        # Python kernels reject NUL, and need a minute for a megabyte.
        if expected is None or (kernels == "python" and name in ("NUL", "1 MB")):
            continue
        got = run(kind, kernels, CASES[name], truncation=name == "truncated")
        assert got == expected, f"{kind}, {name}"


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if "detokenizer" in EXPECTED[kind]])
def test_texts(kind: str, kernels: str) -> None:
    detokenizer = session(kind, "detokenizer", kernels)
    name = detokenizer.get_inputs()[0].name
    for ids, expected in EXPECTED[kind]["detokenizer"]:
        array = np.array(ids, np.int64).reshape(len(ids), -1 if ids else 3)
        if kernels == "python":  # which reject a text with a NUL
            kept = [i for i, text in enumerate(expected) if "\0" not in text and (text or array.shape[1] != 1)]
            array, expected = array[kept], [expected[i] for i in kept]
        texts = detokenizer.run(None, {name: array})[0]
        assert [text.rstrip("\0") for text in texts.tolist()] == expected


@needs_pcre2
@pytest.mark.parametrize("kind", KINDS)
def test_invalid_utf8(kind: str) -> None:
    """OpenVINO's regular expressions read out of bounds and may crash; ours match nothing."""
    tokenizer = session(kind, "tokenizer", "native")
    name = tokenizer.get_inputs()[0].name
    for text, expected in EXPECTED[kind].get("no utf-8", []):
        encoded = text.encode("latin-1")
        ids = tokenizer.run(None, {name: np.array([encoded], f"S{len(encoded) + 1}")})[0]
        assert ids.tolist() == expected, encoded


@needs_pcre2
@pytest.mark.parametrize("kind", ["gpt2", "llama3"])
def test_invalid_utf8_in_byte_level_tokenizers(kind: str) -> None:
    """OpenVINO may crash on these bytes. Each of them has an id, and all others are restored."""
    tokenizer, detokenizer = (session(kind, name, "native") for name in ("tokenizer", "detokenizer"))
    for text, _ in EXPECTED["unigram"]["no utf-8"]:
        if text in ("\xed\xa0\x80", "\xf5\x80\x80\x80"):  # OpenVINO accepts them as characters, Python cannot represent them
            continue
        encoded = text.encode("latin-1")
        feed = np.array([encoded], f"S{len(encoded) + 1}")
        ids = tokenizer.run(["input_ids"], {tokenizer.get_inputs()[0].name: feed})[0]
        back = detokenizer.run(None, {detokenizer.get_inputs()[0].name: ids})[0][0]
        assert back.replace("\ufffd", "") == encoded.decode(errors="ignore"), encoded


@needs_library
def test_python_kernels_replace_missing_native_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = BUILT - {"RegexSplit"}
    monkeypatch.setattr("onnx_specops.runtime.session.native_operators", lambda: lacking)
    model = convert(FILES / "gpt2" / "tokenizer.xml").model.SerializeToString()
    with pytest.warns(RuntimeWarning, match="kernels of RegexSplit need PCRE2"):
        tokenizer = onnx_specops.InferenceSession(model)
    assert tokenizer.kernels == "python"
    ids = tokenizer.run(None, {tokenizer.get_inputs()[0].name: np.array(TEXTS["one"], object)})[0]
    assert ids.tolist() == EXPECTED["gpt2"]["tokenizer"]["one"]["input_ids"]
