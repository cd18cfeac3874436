"""The arguments and options that subcommands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from converters.cli.derived import typer_option


class Kernels(StrEnum):
    auto = "auto"
    native = "native"
    python = "python"
    none = "none"


class Layout(StrEnum):
    hosts = "hosts"
    files = "files"


class Runtime(StrEnum):
    openvino = "openvino"
    native = "native"
    python = "python"
    none = "none"
    reference = "reference"


ModelXml = Annotated[Path, typer.Argument(metavar="MODEL.xml", help="The OpenVINO IR, with its .bin in the same folder.")]
Bin = Annotated[Path | None, typer_option("bin")]
Signature = Annotated[str | None, typer_option("signature")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Debug = Annotated[bool, typer.Option("--debug", help="Print the Python traceback if the command fails.")]
Inputs = Annotated[
    Path | None,
    typer.Option(
        metavar="IN",
        help="The inputs: an .npz with arrays by name, an .npy or image for a single input, or a folder of samples. The "
        "default is inputs.npz next to the model. If it does not exist, the inputs are random.",
        show_default=False,
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=DxDx...",
        help="The shape of a random input, for example x=1x3x224x224. Unspecified dynamic dimensions are 2. Can be "
        "given several times.",
        show_default=False,
    ),
]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rules",
        metavar="RULES.py",
        help="A Python file or module with rules for your own layers. Can be given several times.",
        show_default=False,
    ),
]
Extensions = Annotated[
    list[str] | None,
    typer.Option(
        "--extension",
        metavar="FILE",
        help="An extension that OpenVINO needs to run the model: a shared library, or a Python file with operations. "
        "Can be given several times.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="The seed for random inputs.")]
RelativeTolerance = Annotated[
    float, typer.Option("--rtol", min=0, help="The allowed relative error of floating-point values.")
]
AbsoluteTolerance = Annotated[
    float, typer.Option("--atol", min=0, help="The allowed absolute error of floating-point values.")
]
AllowedShare = Annotated[
    float,
    typer.Option("--share", min=0, max=1, help="The fraction of the elements of an output that may exceed the tolerance."),
]
