"""Small nodes with large outputs are rejected before the memory is allocated."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.native import BUILT, OF_PCRE2, needs_library
from tests.onnx_specops.ops.one_node import one_node

pytestmark = [
    needs_library,
    pytest.mark.skipif(sys.platform == "win32", reason="the process measures itself by resource"),
]

MOST = 1 << 20  # KiB
LENGTH = 20_000


def integers(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def symbols(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8)


def wordpiece() -> tuple[str, dict[str, np.ndarray], dict[str, object]]:
    """Rows share strings, which share bytes."""
    rows, strings = 160, 200
    inputs = {
        "ragged_begins": np.zeros(rows, np.int32), "ragged_ends": np.full(rows, strings, np.int32),
        "begins": np.zeros(strings, np.int32), "ends": np.full(strings, LENGTH, np.int32), "symbols": symbols(b"a" * LENGTH),
        "vocab_begins": integers(0, 1), "vocab_ends": integers(1, 4), "vocab_symbols": symbols(b"a##a"),
    }  # fmt: skip
    return "WordpieceTokenizer", inputs, {"suffix_indicator": "##", "max_bytes_per_word": 1 << 30, "unk_token_id": 0}


def byte_pairs() -> tuple[str, dict[str, np.ndarray], dict[str, object]]:
    """A long suffix for each word."""
    words = 6000
    inputs = {
        "ragged_begins": integers(0), "ragged_ends": integers(words),
        "begins": np.zeros(words, np.int32), "ends": np.ones(words, np.int32), "symbols": symbols(b"a"),
        "vocab_begins": integers(0), "vocab_ends": integers(1), "vocab_symbols": symbols(b"a"),
        "vocab_ids": integers(7), "merges": np.zeros((0, 3), np.int32),
    }  # fmt: skip
    return "BPETokenizer", inputs, {"end_suffix": "a" * 100_000, "unk_token_id": 0}


def regular_expression() -> tuple[str, dict[str, np.ndarray], dict[str, object]]:
    """A long replacement for each character."""
    inputs = {"begins": integers(0), "ends": integers(10_000), "symbols": symbols(b"a" * 10_000)}
    return "RegexNormalization", inputs, {"pattern": "a", "replacement": "b" * 300_000}


def detokenizer() -> tuple[str, dict[str, np.ndarray], dict[str, object]]:
    """Many unknown pieces, each a long text."""
    inputs = {
        "ids": np.zeros((1, 4000), np.int32),
        "vocab_begins": np.zeros(LENGTH, np.int32), "vocab_ends": np.ones(LENGTH, np.int32),
        "vocab_symbols": symbols(b"a"), "types": np.full(LENGTH, 2, np.uint8),
    }  # fmt: skip
    return "SentencepieceDetokenizer", inputs, {"unk_surface": "a" * 100_000}


MEASURE = """
import resource, sys
import numpy as np, onnx_specops
session = onnx_specops.InferenceSession(sys.argv[1], kernels="native")
feeds = dict(np.load(sys.argv[2]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    session.run(None, feeds)
except Exception as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("case", [wordpiece, byte_pairs, regular_expression, detokenizer])
def test_memory(case: Callable[[], tuple[str, dict[str, np.ndarray], dict[str, object]]], tmp_path: Path) -> None:
    op_type, inputs, attributes = case()
    if op_type in OF_PCRE2 and op_type not in BUILT:
        pytest.skip("there is no PCRE2")
    (tmp_path / "node.onnx").write_bytes(one_node(op_type, inputs, attributes).SerializeToString())
    np.savez(tmp_path / "inputs.npz", **inputs)
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "node.onnx"), str(tmp_path / "inputs.npz")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    *said, peak = done.stdout.strip().splitlines()
    assert "and than 1024 times as many as the inputs" in " ".join(said), done.stdout
    assert int(peak) * (1 if sys.platform != "darwin" else 1 / 1024) < MOST


def test_pieces_that_share_their_bytes() -> None:
    """8,000 byte-pair pieces in 8,000 bytes have 32 million bytes and as many pairs."""
    import onnxruntime as ort

    import onnx_specops

    count = 8000
    inputs = {
        "ragged_begins": integers(0), "ragged_ends": integers(1), "begins": integers(0), "ends": integers(3),
        "symbols": symbols(b"aaa"), "vocab_begins": np.zeros(count + 1, np.int32),
        "vocab_ends": integers(*range(1, count + 1), 1), "vocab_symbols": symbols(b"a" * count),
        "vocab_ids": integers(*range(count + 1)), "scores": np.zeros(count + 1, np.float32),
        "types": np.array([1] * count + [2], np.uint8),
    }  # fmt: skip
    options = ort.SessionOptions()
    options.log_severity_level = 4
    model = one_node("SentencepieceTokenizer", inputs, {"model_type": "bpe"})
    session = onnx_specops.InferenceSession(model.SerializeToString(), options, kernels="native")
    with pytest.raises(Exception, match="the pieces have 32004001 bytes"):
        session.run(None, inputs)
