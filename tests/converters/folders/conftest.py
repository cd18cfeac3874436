"""Folders that several tests change."""

from __future__ import annotations

import pytest

from tests.converters.folders.genai_folder import Folder


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder("models/llama", tmp_path_factory.mktemp("llama"))
