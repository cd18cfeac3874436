"""``python -m onnx_specops``: paths of the native kernels, for build systems and programs in other languages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import onnx_specops
from onnx_specops.runtime.errors import MissingKernelError
from onnx_specops.runtime.library import cmake_folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one path or number; return 1 if the installation has no native library."""
    parser = argparse.ArgumentParser(
        prog="python -m onnx_specops",
        description="Print the paths of the native kernels, for build systems and programs in other languages.",
    )
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument(
        "--library-path", action="store_true", help="the path of the shared library, for RegisterCustomOpsLibrary"
    )
    asked.add_argument(
        "--cmake-dir", action="store_true", help="the folder of the CMake package, for cmake -Donnx_specops_DIR=..."
    )
    asked.add_argument("--version", action="store_true", help="the version of the package")
    asked.add_argument("--opset-version", action="store_true", help="the version of the domain")
    given = parser.parse_args(arguments)
    if given.version:
        print(onnx_specops.__version__)
    elif given.opset_version:
        print(onnx_specops.OPSET_VERSION)
    elif given.cmake_dir:
        print(cmake_folder().as_posix())
    else:
        try:
            print(onnx_specops.library_path())
        except MissingKernelError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
