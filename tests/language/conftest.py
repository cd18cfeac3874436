"""Conversions that several modules of tests share."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.converters.cli.specops import as_json, specops

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for files that are written once in a process."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="session")
def with_images(shared: Path) -> Callable[[str], Path]:
    """Return a function of the name of a vision-language model. It returns a folder with the model, converted into OUT."""

    @cache
    def converted(name: str) -> Path:
        folder = shared / "vision" / name
        with zipfile.ZipFile(HERE / "vision" / f"{name}.zip") as file:
            file.extractall(folder)
        document = as_json(specops("convert", folder, "-o", folder / "OUT", "--genai", "--json"))
        assert len(document["models"]) == 3
        return folder

    return converted
