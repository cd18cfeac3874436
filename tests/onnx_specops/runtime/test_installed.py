"""A checkout that shadows an installation uses the installation's native kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import onnx_specops
from onnx_specops.runtime import installed, library
from tests.native import needs_library

pytestmark = needs_library

PACKAGE = Path(onnx_specops.__file__).parent


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Return a checkout without a library, and a site directory with an installation that has one."""
    checkout, site = tmp_path / "checkout", tmp_path / "site"
    ignored = shutil.ignore_patterns("__pycache__", Path(onnx_specops.library_path()).name)
    shutil.copytree(PACKAGE, checkout / "onnx_specops", ignore=ignored)
    (checkout / "onnx_specops" / "native").mkdir(exist_ok=True)
    (checkout / "onnx_specops" / "native" / "CMakeLists.txt").touch()  # the package may be installed without this file
    (site / "onnx_specops").mkdir(parents=True)
    shutil.copy(PACKAGE / "__init__.py", site / "onnx_specops")
    shutil.copytree(PACKAGE / "cmake", site / "onnx_specops" / "cmake")
    (site / "onnx_specops" / "native").mkdir()
    shutil.copy(onnx_specops.library_path(), site / "onnx_specops" / "native")
    return checkout, site


def install(site: Path, version: str = onnx_specops.__version__) -> None:
    folder = site / f"onnx_specops-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: onnx-specops\nVersion: {version}\n")


def python(places: tuple[Path, Path], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the root of the checkout with the test's site directory."""
    checkout, site = places
    others = [path for path in sys.path if path and not (Path(path) / "onnx_specops").is_dir()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *others])}
    environment.pop("PYTHONSAFEPATH", None)
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=checkout, env=environment, timeout=300
    )


SESSION = """
import warnings
warnings.simplefilter("always")
import numpy as np, onnx, onnx_specops
from onnx import TensorProto, helper
node = helper.make_node("ErfInv", ["x"], ["y"], domain=onnx_specops.DOMAIN)
ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
imports = [helper.make_opsetid("", 21), helper.make_opsetid(onnx_specops.DOMAIN, 1)]
graph = helper.make_graph([node], "g", ends[:1], ends[1:])
model = helper.make_model(graph, opset_imports=imports, ir_version=10)
for _ in range(2):
    session = onnx_specops.InferenceSession(model.SerializeToString())
print(session.kernels)
"""


def test_the_checkout_uses_the_installed_library(places: tuple[Path, Path]) -> None:
    install(places[1])
    for asked, expected in (
        ("--library-path", f"native/{Path(onnx_specops.library_path()).name}"),
        ("--cmake-dir", "cmake"),
    ):
        done = python(places, "-m", "onnx_specops", asked)
        assert (done.returncode, done.stderr) == (0, "")
        assert Path(done.stdout.strip()).samefile(places[1] / "onnx_specops" / expected)
    done = python(places, "-c", SESSION)
    assert (done.stdout, done.stderr) == ("native\n", "")


def test_an_installation_of_another_version_is_not_used(places: tuple[Path, Path]) -> None:
    """A warning names the command that installs the right version."""
    install(places[1], "0.0.9")
    done = python(places, "-m", "onnx_specops", "--library-path")
    assert (done.returncode, done.stdout) == (1, "")
    assert "onnx-specops has the version 0.0.9" in done.stderr and "`pip install .`" in done.stderr
    done = python(places, "-c", SESSION)
    assert done.stdout == "python\n"
    assert done.stderr.count("has the version 0.0.9") == 1


def test_the_warning_about_python_kernels_is_given_once(places: tuple[Path, Path]) -> None:
    """The first installation on the path has no library; later ones do not count."""
    install(places[1])
    (places[1] / "onnx_specops" / "native" / Path(onnx_specops.library_path()).name).unlink()
    done = python(places, "-c", SESSION)
    assert done.stdout == "python\n"
    assert done.stderr.count("uses its Python kernels, which are many times slower") == 1
    assert f"`pip install .` in {places[0]}" in done.stderr
    chosen = SESSION.replace("SerializeToString())", 'SerializeToString(), kernels="python")')
    assert python(places, "-c", chosen).stderr == ""


def test_an_installation_with_other_operators_is_not_used(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same version with other declarations: a checkout that is newer than the installation."""
    install(places[1])
    monkeypatch.setattr(sys, "path", [str(places[1])])
    own, name = places[0] / "onnx_specops", f"native/{Path(library.library_path()).name}"
    description = installed.describe(Path(library.library_path()))
    installed.installed_package.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert installed.installed_package(own, name) == (places[1] / "onnx_specops").resolve()
    installed.installed_package.cache_clear()
    changed, gone = description["operators"][:2]
    changed["inputs"] = changed["inputs"][::-1]
    gone["name"] = "OfTheFuture"
    monkeypatch.setattr(installed, "describe", lambda path: description)
    with pytest.warns(RuntimeWarning, match=f"differs in {changed['name']}, OfTheFuture"):
        assert installed.installed_package(own, name) is None
    installed.installed_package.cache_clear()
