"""Virtual environments for hosts, on top of the packages of the current one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

_TORCH = "torch==2.13.0"
_MODELS = (_TORCH, "nncf", "accelerate", "compressed-tensors<0.18")
_GENAI = ("onnxruntime-genai", "openvino-genai")


@dataclass(frozen=True)
class Environment:
    """Packages with releases that do not exclude each other.

    Attributes:
        name: the name of its folder.
        packages: the packages to install.
        removed: the packages that they require and the tests do not use.
    """

    name: str
    packages: tuple[str, ...]
    removed: tuple[str, ...] = ()


# The releases are exact where pip would otherwise search for minutes for those that fit together.
_OPTIMUM = ("transformers==4.57.6", "optimum-intel==1.27.0", "optimum-onnx==0.1.0", "diffusers", "sentence-transformers")
_OPTIMUM_INTEL = (*_MODELS, *_GENAI, "optimum-intel==2.2.0")
SAMPLE = Environment("sample", (*_MODELS, *_OPTIMUM))
FOLDERS = (
    Environment("optimum-onnx", (*_MODELS, *_OPTIMUM, *_GENAI)),
    # torchvision cannot be imported with each build of torch.
    Environment("transformers-5.2", (*_OPTIMUM_INTEL, "transformers==5.2.0"), removed=("torchvision",)),
    Environment("transformers-5.0", (*_OPTIMUM_INTEL, "transformers==5.0.0"), removed=("torchvision",)),
)
"""For `tests.folders`: a model runs in the first one that can export it."""
RAY = Environment("ray", ("ray[data,serve]", "onnxruntime-genai", "tokenizers", "pytest"))


class NotInstalled(Exception):
    """Packages that cannot be installed."""


def python_of(environment: Environment, place: Path, seconds: float) -> Path:
    """Return the interpreter of an environment. If the environment does not exist, create it in a folder.

    Its own packages precede those of the current environment, which pip counts as installed.

    Raises:
        NotInstalled: if pip fails, or takes longer.
    """
    folder = place / environment.name
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    current = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    complete, content = folder / "complete.json", json.dumps([current, environment.packages, environment.removed])
    if complete.is_file() and complete.read_text() == content:
        return python
    venv.create(folder, with_pip=True, clear=True)
    (own,) = (path for path in folder.rglob("site-packages") if path.parent.name in ("Lib", f"python{_VERSION}"))
    (own / "current.pth").write_text("\n".join(current) + "\n")
    # Most modules are never imported, so pip need not compile them.
    pip = [str(python), "-m", "pip"]
    _install([*pip, "install", "-q", "--disable-pip-version-check", "--no-compile", *environment.packages], seconds)
    for package in environment.removed:
        _install([*pip, "uninstall", "-q", "-y", package], seconds)
    complete.write_text(content)
    return python


_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def install_javascript(folder: Path, seconds: float) -> None:
    """Install the packages of a folder with ``package-lock.json``, unless they are installed.

    Raises:
        NotInstalled: if npm is missing, fails or takes longer.
    """
    if (folder / "node_modules" / ".package-lock.json").is_file():
        return
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled("npm is not installed")
    _install([npm, "ci", "--ignore-scripts", "--prefix", str(folder)], seconds)


def _install(command: list[str], seconds: float) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{' '.join(command)}: no end after {seconds:.0f} s") from None
    if done.returncode:
        raise NotInstalled(f"{' '.join(command)}: {(done.stderr.strip() or done.stdout.strip())[-500:]}")
