"""Sessions that select the rows of their states, and that run several texts in turns: OpenVINO's logits."""

from __future__ import annotations

import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest

import onnx_specops
from converters.folders.stateful import write_language_model
from tests.language.test_in_place_caches import EXACT, KERNELS, agree
from tests.language.test_speech import convert

HERE = Path(__file__).parent
STEPS: tuple[tuple[list[int], int], ...] = (
    ([0, 1], 1), ([1, 0], 1), ([1, 1], 1), ([0, 0, 1], 1), ([2], 2), ([0], 66), ([0, 0], 1), ([1, 0], 1), ([0, 1], 1),
)  # fmt: skip
"""The rows of the previous run that a run continues, and its number of tokens: several only for one row, as
GroupQueryAttention requires.
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


@cache
def folders(name: str, place: Path) -> tuple[Path, Path]:
    """Return the folder of a model, and its conversion in the form of onnxruntime-genai."""
    source, target = place / Path(name).name, place / "out" / name
    with zipfile.ZipFile(HERE / f"{name}.zip") as file:
        file.extractall(source)
    write_language_model(source, target, convert)
    return source, target


class Both:
    """A text in OpenVINO and in a session."""

    def __init__(self, name: str, place: Path, session: onnx_specops.InferenceSession | None, kernels: Any) -> None:
        source, target = folders(name, place)
        compiled = ov.Core().compile_model(source / "openvino_model.xml", "CPU", EXACT)
        self._names = {port.any_name for port in compiled.inputs}
        self._request = compiled.create_infer_request()
        self.session = session or onnx_specops.InferenceSession(target / "model.onnx", kernels=kernels)
        self._total = 0

    def run(self, tokens: np.ndarray, rows: list[int] | None = None) -> None:
        """Compare the logits of the last token."""
        past, self._total = self._total, self._total + tokens.shape[1]
        feeds = {
            "input_ids": tokens,
            "attention_mask": np.ones((len(tokens), self._total), np.int64),
            "position_ids": np.tile(np.arange(past, self._total), (len(tokens), 1)),
            "beam_idx": np.array(range(len(tokens)) if rows is None else rows, np.int32),
        }
        wanted = self._request.infer({name: feeds[name] for name in self._names})["logits"]
        if rows is not None:
            self.session.select_rows(rows)
        names = {value.name for value in self.session.get_inputs()}
        (found,) = self.session.run(["logits"], {name: value for name, value in feeds.items() if name in names})
        agree(found[:, -1], wanted[:, -1])


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("name", ["models/llama", "models/bloom", "hybrids/lfm2", "hybrids/qwen3_5"])
def test_selected_rows(name: str, kernels: Any, place: Path) -> None:
    generator = np.random.default_rng(3)
    both = Both(name, place, None, kernels)
    both.session.select_rows([0, 5])  # without effect before the first run
    both.run(generator.integers(3, 200, (2, 5)))
    for rows, count in STEPS:
        both.run(generator.integers(3, 200, (len(rows), count)), rows)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("name", ["models/llama", "hybrids/lfm2"])
def test_two_texts_in_turns(name: str, kernels: Any, place: Path) -> None:
    generator = np.random.default_rng(4)
    first = Both(name, place, None, kernels)
    session = first.session
    second = Both(name, place, session, kernels)
    first.run(generator.integers(3, 200, (1, 5)))
    held = session.swap_state()
    second.run(generator.integers(3, 200, (3, 2)))
    for count in (1, 70, 1):
        held = session.swap_state(held)
        first.run(generator.integers(3, 200, (1, count)))
        held = session.swap_state(held)
        second.run(generator.integers(3, 200, (3, 1)), [1, 0, 2])
    session.reset_state()  # the other text remains
    session.swap_state(held)
    first.run(generator.integers(3, 200, (1, 1)))


def test_rows_that_do_not_exist(place: Path) -> None:
    both = Both("models/llama", place, None, "native")
    tokens = np.full((2, 3), 5)
    both.run(tokens)
    for rows in ([0, 2], [-1, 0]):
        with pytest.raises(ValueError, match=r"are not all among the 2 rows of the previous run"):
            both.session.select_rows(rows)
    both.run(tokens[:, :1], [1, 0])  # an error changes nothing


def test_models_that_select_rows_themselves(place: Path, tmp_path: Path) -> None:
    source, _ = folders("models/llama", place)
    convert(source / "openvino_model.xml", tmp_path / "model.onnx")
    session = onnx_specops.InferenceSession(tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="beam_idx selects the rows of the variables: pass it to run"):
        session.select_rows([0])
