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


ModelXml = Annotated[Path, typer.Argument(metavar="MODEL.xml", help="The OpenVINO IR; its .bin is beside it.")]
Bin = Annotated[Path | None, typer_option("bin")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show Python's traceback of what went wrong.")]
Inputs = Annotated[
    Path | None,
    typer.Option(
        metavar="IN",
        help="Inputs by name in an .npz, an .npy or an image for the only one, or a folder of such samples; by default "
        "inputs.npz beside the model, else random ones.",
        show_default=False,
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=DxDx...",
        help="The shape of a random input, as in x=1x3x224x224; may be given several times. Other unknown dimensions are 2.",
        show_default=False,
    ),
]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rules",
        metavar="RULES.py",
        help="A file of rules (or a module's name) for layers of your own; may be given several times.",
        show_default=False,
    ),
]
Extensions = Annotated[
    list[str] | None,
    typer.Option(
        "--extension",
        metavar="FILE",
        help="An extension that OpenVINO needs to run the model: a shared library, or a Python file with operations; may be "
        "given several times.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of random inputs.")]
RelativeTolerance = Annotated[float, typer.Option("--rtol", min=0, help="Largest relative error of floats.")]
AbsoluteTolerance = Annotated[float, typer.Option("--atol", min=0, help="Largest absolute error of floats.")]
AllowedShare = Annotated[
    float, typer.Option("--share", min=0, max=1, help="Share of an output's elements that may differ by more, 0 to 1.")
]
