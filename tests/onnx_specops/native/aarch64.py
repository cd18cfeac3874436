"""The native kernels on AArch64, emulated by QEMU.

    python -m tests.onnx_specops.native.aarch64 FOLDER [PYTEST ARGUMENT...]

The command cross-compiles the library and runs tests with Debian's Python for AArch64 and the wheels of PyPI, which it
downloads. Everything is in FOLDER, where later runs find it. The tests use OpenVINO's results on this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.onnx_specops.ops.case import STORED

ROOT = Path(__file__).parents[3]
FORMS = "tests/onnx_specops/ops/test_forms.py"
TESTS = (FORMS, "tests/onnx_specops/native/test_random_nodes.py", "tests/onnx_specops/native/test_random_layers.py")
SELECTED = "native and not instruction_set"

COMPILER, EMULATOR, PROCESSOR = "aarch64-linux-gnu-g++", "qemu-aarch64", "neoverse-n1"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TOOLS = {COMPILER: "g++-aarch64-linux-gnu", EMULATOR: "qemu-user", "apt-get": "apt", "dpkg-deb": "dpkg"}
"""The programs that the command needs -> their packages in Debian."""

SUITE, PYTHON = "trixie", "3.13"
PACKAGES = ("python3", "libgomp1", "libpcre2-8-0", "libstdc++6")
WHEELS = ("hypothesis", "onnxruntime-extensions", "openvino", "pytest", "regex")  # besides the package's dependencies

# ONNX Runtime reads the processor's features from this file, and crashes without it. QEMU does not emulate it.
INFO = """processor\t: 0
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0b
CPU revision\t: 1
"""


def missing() -> list[str]:
    """Return the Debian packages that this machine lacks."""
    packages = [package for program, package in TOOLS.items() if shutil.which(program) is None]
    return packages if KEYS.is_file() else [*packages, "debian-archive-keyring"]


def run(command: Sequence[str | Path], more: Mapping[str, str | Path] | None = None) -> None:
    environment = {**os.environ, **{name: str(value) for name, value in (more or {}).items()}}
    subprocess.run(command, check=True, cwd=ROOT, env=environment)


def build(folder: Path) -> Path:
    """Cross-compile the library, and return its path."""
    target = ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_CXX_COMPILER={COMPILER}")
    output = f"-DONNX_SPECOPS_OUTPUT_DIRECTORY={folder}"
    run(["cmake", "-S", ROOT / "onnx_specops" / "native", "-B", folder / "build", "-G", "Ninja", *target, output])
    run(["cmake", "--build", folder / "build"])
    return folder / "libonnx_specops.so"


def download_system(folder: Path) -> Path:
    """Download and unpack Debian's Python for AArch64, without a change to this machine. Return the root of its files."""
    root, state = folder / "root", folder / "apt"
    if root.is_dir():
        return root
    for path in (state / "lists" / "partial", state / "archives" / "partial"):
        path.mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    (state / "sources.list").write_text(f"deb [signed-by={KEYS}] http://deb.debian.org/debian {SUITE} main\n")
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "root",
        "Dir::Cache": state,
        "Dir::Etc::sourcelist": state / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
    }
    get = ["apt-get", "-q", *(part for name, value in settings.items() for part in ("-o", f"{name}={value}"))]
    run([*get, "update"])
    run([*get, "--yes", "--no-install-recommends", "--download-only", "install", *PACKAGES])
    unpacked = folder / "unpacked"
    for package in sorted((state / "archives").glob("*.deb")):
        run(["dpkg-deb", "-x", package, unpacked])
    (unpacked / "lib").symlink_to("usr/lib")
    (unpacked / "proc").mkdir()
    (unpacked / "proc" / "cpuinfo").write_text(INFO)
    return unpacked.rename(root)


def download_wheels(folder: Path) -> Path:
    """Download and unpack the wheels for AArch64. Return their folder."""
    site = folder / "site"
    if not site.is_dir():
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in range(17, 42)]
        options = ["--only-binary=:all:", f"--python-version={PYTHON}", "--platform=manylinux2014_aarch64", *platforms]
        install = [sys.executable, "-m", "pip", "install", "-q", "--target", folder / "unpacked-site", *options]
        run([*install, *project["dependencies"], *WHEELS])
        (folder / "unpacked-site").rename(site)
    return site


def main(folder: Path, arguments: Sequence[str]) -> None:
    if packages := missing():
        sys.exit(f"AArch64 is not emulated, because this machine lacks the Debian packages {', '.join(packages)}")
    folder.mkdir(parents=True, exist_ok=True)
    library, root, site = build(folder), download_system(folder), download_wheels(folder)
    answers = folder / "answers"
    answers.mkdir(exist_ok=True)
    run([sys.executable, "-m", "pytest", FORMS, "-k", "native"], {STORED: answers})
    emulated = {
        "ONNX_SPECOPS_SIMD": "portable",  # it also registers the kernels that function bodies replace
        "ONNX_SPECOPS_TEST_LIBRARY": library,
        "ONNX_SPECOPS_TEST_PART": "0/1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)]),
        STORED: answers,
    }
    python = [EMULATOR, "-cpu", PROCESSOR, "-L", root, root / "usr" / "bin" / f"python{PYTHON}"]
    plugin = ("-p", "tests.onnx_specops.native.sanitized", "-p", "no:cacheprovider")
    run([*python, "-B", "-m", "pytest", *plugin, *(arguments or [*TESTS, "-k", SELECTED])], emulated)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        main(Path(sys.argv[1]).absolute(), sys.argv[2:])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
