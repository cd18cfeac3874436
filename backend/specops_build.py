"""A build backend based on scikit-build-core, whose metadata needs no C++ build.

scikit-build-core does not prepare metadata for a project that builds again after a failure (`if.failed` in pyproject.toml),
because the second build could have other metadata. pip would then compile the whole library to read the dependencies. In
this project only the wheel's tag depends on the build, and nothing reads the tag of prepared metadata.
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TypeAlias

from scikit_build_core import build
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings: TypeAlias = dict[str, str | list[str]] | None


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """Write the .dist-info of a wheel without the native kernels to ``metadata_directory``; return its name."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {**(config_settings or {}), "wheel.cmake": "false", "messages.after-success": ""}
        with zipfile.ZipFile(Path(folder) / build.build_wheel(folder, settings)) as wheel:
            files = [name for name in wheel.namelist() if name.split("/")[0].endswith(".dist-info")]
            wheel.extractall(metadata_directory, [name for name in files if not name.endswith("/RECORD")])
    return files[0].split("/")[0]


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build the wheel. Its metadata is not compared with the prepared metadata, whose tag differs."""
    return build.build_wheel(wheel_directory, config_settings)


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build the editable wheel; see `build_wheel`."""
    return build.build_editable(wheel_directory, config_settings)
