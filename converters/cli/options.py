"""The arguments and options that subcommands share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Weights(StrEnum):
    auto = "auto"
    embed = "embed"
    copy = "copy"
    reference = "reference"


class Quantized(StrEnum):
    integer = "integer"
    float = "float"


class Variables(StrEnum):
    defaults = "defaults"
    inputs = "inputs"


class Kernels(StrEnum):
    auto = "auto"
    native = "native"
    python = "python"
    none = "none"


class Activations(StrEnum):
    float = "float"
    int8 = "int8"


class KvCache(StrEnum):
    float32 = "float32"
    float16 = "float16"
    uint8 = "uint8"


class LogitsOf(StrEnum):
    last = "last"
    all = "all"


class Runtime(StrEnum):
    openvino = "openvino"
    native = "native"
    python = "python"
    none = "none"
    reference = "reference"


ModelXml = Annotated[Path, typer.Argument(metavar="MODEL.xml", help="The OpenVINO IR; its .bin lies beside it.")]
Bin = Annotated[
    Path | None,
    typer.Option(
        "--bin", metavar="MODEL.bin", help="The IR's weights, if they are not beside the .xml.", show_default=False
    ),
]
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
OPSET = 21
"""The opset of converted models; `onnx_specops.building.OPSET`, which the command need not load to show its help."""

Opset = Annotated[
    int,
    typer.Option(
        "--opset",
        metavar="N",
        min=11,
        help="The ONNX opset of the .onnx, 11 or newer. Below 21 the plugin's operators are written out as standard ONNX.",
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


_OPEN = re.compile(r"\?|-1|\d{0,9}\.\.\d{0,9}", re.ASCII)
_SIZE = re.compile(r"\d{1,9}", re.ASCII)


def shapes(texts: list[str] | None, option: str, *, with_open: bool = False) -> dict[str, list[int]]:
    """Shapes by name.

    Args:
        texts: ``NAME=DxD`` each; ``NAME=`` is a scalar.
        option: the option that an error names.
        with_open: whether a dimension may be open: ``?``, ``-1``, or a range as ``1..8``. It is -1 in the result.
    """
    found = {}
    form = "x=1x3x224x224" + (", with ? for a dimension that stays open" if with_open else "")
    for text in texts or ():
        name, equals, dims = text.rpartition("=")
        sizes = dims.split("x") if dims else []
        if (
            not equals
            or not name
            or not all(_SIZE.fullmatch(size) or (with_open and _OPEN.fullmatch(size)) for size in sizes)
        ):
            raise typer.BadParameter(f"{text!r} is not of the form {form}", param_hint=option)
        found[name] = [int(size) if _SIZE.fullmatch(size) else -1 for size in sizes]
    return found


def shape_arguments(found: Mapping[str, Sequence[int]], option: str) -> list[str]:
    """What `shapes` reads."""
    return [text for name, dims in found.items() for text in (option, f"{name}={'x'.join(map(str, dims))}")]
