"""Each key of each JSON file in the folders of encoders and pipelines, missing or with another value.

The result is success, or one clear error, and nothing in OUT.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.converters.cli.specops import specops
from tests.converters.folders.test_hosts_layout import LABELS, WIDTH, encoder, pipeline, save, write  # noqa: F401
from tests.language.test_damaged_folders import DAMAGES, changed

_BAD_INPUT = 2


@pytest.fixture
def router(tmp_path: Path) -> Path:
    """Create a router of sentence-transformers with two models."""
    folder = tmp_path / "router"
    for name in ("query_0_Transformer", "document_0_Transformer"):
        save(folder / name / "openvino" / "openvino_model.xml", {"x": [-1, WIDTH]}, {"last_hidden_state": LABELS})
        write(folder / name / "config.json", {"architectures": ["BertModel"], "vocab_size": 9})
    write(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Router"}])
    types = dict.fromkeys(("query_0_Transformer", "document_0_Transformer"), "sentence_transformers.models.Transformer")
    structure = {"query": ["query_0_Transformer"], "document": ["document_0_Transformer"]}
    write(folder / "router_config.json", {"types": types, "structure": structure, "parameters": {"default_route": "query"}})
    return folder


@pytest.fixture(params=["encoder", "pipeline", "router"])
def folder(request: pytest.FixtureRequest) -> Path:
    return Path(request.getfixturevalue(request.param))


def documents(folder: Path) -> Iterator[tuple[Path, Any]]:
    for path in sorted(folder.rglob("*.json")):
        yield path, json.loads(path.read_text())


def fault(folder: Path, out: Path, name: str) -> str:
    """Convert a folder. Return the fault of the result, or ``""``."""
    result = specops("convert", folder, "-o", out)
    told = " ".join(result.stderr.split())
    remaining = [path.name for path in out.rglob("*")]
    shutil.rmtree(out, ignore_errors=True)
    if result.exit_code == 0:
        return ""
    if result.exit_code != _BAD_INPUT or name not in told:
        return f"{result.exit_code} {told}"
    return f"{remaining} remain" if remaining else ""


def test_every_key(folder: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    step = 1 if request.config.getoption("--conformance") == "all" else 41
    wrong = []
    for path, document in documents(folder):
        original = path.read_bytes()
        for text, made in [*changed(document)][::step]:
            path.write_text(json.dumps(made))
            if said := fault(folder, tmp_path / "out", path.name):
                wrong.append(f"{path.relative_to(folder)} {text}: {said}")
        path.write_bytes(original)
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(damage: str, folder: Path, tmp_path: Path) -> None:
    for path, _ in documents(folder):
        made = shutil.copytree(folder, tmp_path / "changed")
        DAMAGES[damage](made / path.relative_to(folder))
        assert not fault(made, tmp_path / "out", path.name), path
        shutil.rmtree(made)


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        ("encoder", "architectures", "x", "its architectures is 'x'; expected names of classes"),
        ("encoder", "architectures", [1], "its architectures is [1]; expected names of classes"),
        ("encoder", "id2label", [], "its id2label is []; expected an object"),
        ("pipeline", "unet", "x", "its unet is 'x'; expected a library and a class"),
        ("pipeline", "vae", ["x"], "its vae is ['x']; expected a library and a class"),
        ("pipeline", "scheduler", {}, "its scheduler is {}; expected a library and a class"),
        ("pipeline", "tokenizer", [1, 2], "its tokenizer is [1, 2]; expected a library and a class"),
    ],
)
def test_values_of_the_wrong_type(
    name: str, key: str, value: Any, message: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = Path(request.getfixturevalue(name))
    path = source / ("config.json" if name == "encoder" else "model_index.json")
    write(path, {**json.loads(path.read_text()), key: value})
    result = specops("convert", source, "-o", tmp_path / "out")
    assert result.exit_code == _BAD_INPUT and message in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", ["x", 4.0, True, -4, 0, [4]])
def test_sizes_of_the_wrong_type(size: Any, pipeline: Path, tmp_path: Path) -> None:  # noqa: F811
    write(pipeline / "unet/config.json", {"in_channels": size, "cross_attention_dim": WIDTH})
    result = specops("convert", pipeline, "-o", tmp_path / "out")
    said = f"its in_channels is {size!r}; expected a positive integer"
    assert result.exit_code == _BAD_INPUT and said in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()
