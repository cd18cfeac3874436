"""``specops convert``: one model, several, or folders of them."""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from converters.cli import batch
from converters.cli.checking import Checking, require_openvino, sample
from converters.cli.console import err, out, print_json, progress
from converters.cli.failures import DIFFERENCE, failures
from converters.cli.genai import convert_folder
from converters.cli.options import (
    OPSET,
    AbsoluteTolerance,
    Activations,
    AllowedShare,
    Bin,
    Debug,
    Extensions,
    Inputs,
    Json,
    KvCache,
    LogitsOf,
    Opset,
    Quantized,
    RelativeTolerance,
    Rules,
    Seed,
    Shapes,
    Variables,
    Weights,
    shapes,
)
from converters.outputs import refuse_inputs

if TYPE_CHECKING:
    from converters.openvino.conversion import Conversion

_STDOUT = Path("-")
_FLOAT16_ROUNDING = 2.0**-10


@dataclass(frozen=True)
class Settings:
    """What ``specops convert`` was told that concerns each model alike; the keywords of `converters.openvino.convert`."""

    weights: str
    strict: bool
    rules: tuple[str, ...]
    opset: int
    precision: str
    contrib: bool
    quantized: str
    activations: str
    variables: str
    verify: bool = False

    def convert(self, model: Path, target: Path | None, **more: Any) -> Conversion:
        """Convert one model."""
        from converters.openvino import convert as convert_model
        from converters.openvino.plugins import load_all

        load_all(self.rules)
        chosen: dict[str, Any] = {"contrib": self.contrib, "quantized": self.quantized, "activations": self.activations}
        chosen |= {"weights": self.weights, "opset": self.opset, "precision": self.precision}
        chosen |= {"variables": self.variables, "verify": self.verify, **more}
        return convert_model(model, target, strict=self.strict, with_weights=target is None, **chosen)

    @property
    def arguments(self) -> list[str]:
        """What tells another process the same."""
        arguments = ["--weights", self.weights, "--opset", str(self.opset), *(["--strict"] if self.strict else [])]
        arguments += {"float16": ["--fp16"], "float32": ["--fp32"]}.get(self.precision, [])
        arguments += ["--activations", self.activations, "--variables", self.variables]
        arguments += ["--quantized", self.quantized, *([] if self.contrib else ["--no-contrib"])]
        arguments += ["--verify"] if self.verify else []
        return arguments + [text for rules in self.rules for text in ("--rules", rules)]

    @property
    def files(self) -> list[Path]:
        """The files among what it was told."""
        return [path for path in map(Path, self.rules) if path.is_file()]


def convert(
    context: typer.Context,
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL.xml", help="OpenVINO IR files, or folders of them; the .bin lies beside each .xml."),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="The .onnx file, a folder for it, or - for standard output; of several models, or a folder of them, a "
            "folder. By default beside the IR.",
            show_default=False,
        ),
    ] = None,
    bin: Bin = None,
    weights: Annotated[
        Weights,
        typer.Option(
            help="Where the weights go: into the .onnx (embed), into a file beside it (copy), or nowhere: the .onnx "
            "refers to the IR's own .bin (reference). auto embeds up to 1 GiB."
        ),
    ] = Weights.auto,
    input_shape: Annotated[
        list[str] | None,
        typer.Option(
            "--input-shape",
            metavar="NAME=DxDx...",
            help="The shape of an input in the .onnx, as in x=1x3x224x224, with ? for a dimension that stays open; may be "
            "given several times.",
            show_default=False,
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--outputs",
            metavar="NAME,...",
            help="The values that are the .onnx's outputs, of any layers: tensor names or friendly names. Inputs that they "
            "do not need are removed.",
            show_default=False,
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            "--rename",
            metavar="OLD=NEW",
            help="Another name for an input or an output; may be given several times.",
            show_default=False,
        ),
    ] = None,
    rules: Rules = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse files that hold what OpenVINO passes over, instead of telling of it.")
    ] = False,
    opset: Opset = OPSET,
    fp16: Annotated[
        bool,
        typer.Option("--fp16", help="Weights and computation in float16, for GPUs and NPUs, wherever that is exact enough."),
    ] = False,
    fp32: Annotated[
        bool, typer.Option("--fp32", help="Weights and computation in float32, also of models with 16-bit weights.")
    ] = False,
    contrib: Annotated[
        bool,
        typer.Option(
            "--contrib/--no-contrib",
            help="Operators of ONNX Runtime's own, each with its body in standard ONNX for other runtimes; or none of them.",
        ),
    ] = True,
    quantized: Annotated[
        Quantized,
        typer.Option(help="What networks with FakeQuantize compute in: integers, or floats that emulate it exactly."),
    ] = Quantized.integer,
    activations: Annotated[
        Activations,
        typer.Option(help="What compressed weights are multiplied with: floats, or blocks rounded to 8 bits, quicker."),
    ] = Activations.float,
    variables: Annotated[
        Variables,
        typer.Option(
            help="How a host feeds a stateful model's variables: by inputs that have defaults, or by required ones, which "
            "ONNX Runtime for JavaScript and Java, and Triton, ask for."
        ),
    ] = Variables.defaults,
    genai: Annotated[
        bool,
        typer.Option(
            "--genai",
            help="Of a language model's folder, what onnxruntime-genai loads: model.onnx with the cache as inputs and "
            "outputs, genai_config.json, the tokenizer's files.",
        ),
    ] = False,
    kv_cache: Annotated[
        KvCache | None,
        typer.Option(
            help="With --genai: what the cache of keys and values holds. The smaller it is, the quicker are tokens that "
            "follow many. float32 unless told.",
            show_default=False,
        ),
    ] = None,
    logits: Annotated[
        LogitsOf | None,
        typer.Option(
            help="With --genai: of which tokens of a run there are logits. The next token needs the last one's; all take "
            "time and memory. last unless told.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="How many models to convert at a time.")] = 1,
    check: Annotated[bool, typer.Option("--check", help="Run OpenVINO and ONNX Runtime and compare the results.")] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Evaluate each rewrite of the passes: what it replaces and what replaces it run on the same inputs. One "
            "that differs is refused and reported.",
        ),
    ] = False,
    extension: Extensions = None,
    inputs: Inputs = None,
    shape: Shapes = None,
    seed: Seed = 0,
    rtol: RelativeTolerance = 1e-3,
    atol: AbsoluteTolerance = 1e-4,
    share: AllowedShare = 0.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Convert OpenVINO IR into ONNX, each model into one file."""
    with failures(as_json, debug):
        from converters.cli import data, text

        settings = Settings(
            weights.value,
            strict,
            tuple(rules or ()),
            opset,
            _precision(fp16, fp32),
            contrib,
            quantized.value,
            activations.value,
            variables.value,
            verify,
        )
        alone = {"--bin": bin, "--inputs": inputs, "--outputs": outputs, "--rename": rename}
        fixed, random_shapes = shapes(input_shape, "--input-shape", with_open=True), shapes(shape, "--shape")
        if genai:
            _only_for_one(alone | {"--input-shape": fixed, "--check": check, "--shape": random_shapes})
            convert_folder(models, None if output is None else Path(output), settings, kv_cache, logits, as_json)
            return
        for given, option in ((kv_cache, "--kv-cache"), (logits, "--logits")):
            if given is not None:
                raise typer.BadParameter("it is for --genai", param_hint=option)
        checking = None
        if check:
            from converters.validation.compare import Tolerance

            tolerance = Tolerance(rtol, atol, share=share, rounding=_FLOAT16_ROUNDING if fp16 else 0.0)
            checking = Checking(tolerance, seed, inputs, random_shapes, tuple(extension or ()))
        for model in models:
            if model.suffix.lower() == ".onnx" and model.is_file():
                raise ValueError(f"{model} is an ONNX model already: give the .xml of an OpenVINO IR")
        several = len(models) > 1 or models[0].is_dir()
        if several:
            _only_for_one(alone)
        _only_for_checks(context, {"--check": check, "--verify": verify})
        if several:
            if output is not None and output.lower().endswith(".onnx") and not Path(output).is_dir():
                raise typer.BadParameter(f"{output} is one file: several models need a folder", param_hint="--output")
            folder = None if output is None else Path(output)
            raise typer.Exit(batch.convert_all(models, folder, settings, jobs, as_json, fixed, checking))
        (model,) = models
        more: dict[str, Any] = {"bin": bin, "input_shapes": fixed, "outputs": outputs or (), "rename": _pairs(rename)}
        if output == str(_STDOUT):
            _to_stdout(model, settings, more, check, as_json)
            return
        target = _target(model, output)
        refuse_inputs([target], [model, *settings.files, *([] if inputs is None else [inputs])])
        if check:
            require_openvino()
        with progress(as_json) as step:
            step("converting")
            if verify:  # the inputs tell which sizes the values have
                unverified = settings.convert(model, None, **more, verify=False).model
                more["verify"] = sample(model, unverified, inputs, random_shapes, seed)
                step("converting, with each rewrite evaluated")
            converted = settings.convert(model, target, **more)
        if not as_json:
            text.print_conversion(out, converted.report, target)
        validation = None if checking is None else checking.compare(model, target, as_json, bin)
        if as_json:
            document = {"output": str(target), **data.conversion(converted.report)}
            if validation is not None:
                document["check"] = data.validation(validation)
            print_json(document)
        elif validation is not None:
            text.print_validation(out, validation)
        if validation is not None and not validation.agrees:
            raise typer.Exit(DIFFERENCE)


def _target(model: Path, output: str | None) -> Path:
    """The .onnx that a model becomes: in the folder that ``output`` names, or at its place."""
    beside = model.with_suffix(".onnx")
    if output is None:
        return beside
    path = Path(output)
    if path.is_dir():
        return path / beside.name
    if output.endswith(("/", os.sep)):
        raise NotADirectoryError(errno.ENOTDIR, "there is no such folder", output)
    return path


def _pairs(texts: list[str] | None) -> dict[str, str]:
    """``OLD=NEW`` as old and new name."""
    found = {}
    for text in texts or ():
        old, equals, new = text.partition("=")
        if not (equals and old and new):
            raise typer.BadParameter(f"{text!r} is not of the form OLD=NEW", param_hint="--rename")
        found[old] = new
    return found


_CHECKS = {
    "inputs": ("--check", "--verify"),
    "shape": ("--check", "--verify"),
    "seed": ("--check", "--verify"),
    "extension": ("--check",),
    "rtol": ("--check",),
    "atol": ("--check",),
    "share": ("--check",),
}
"""Parameters that change nothing without one of these options."""


def _only_for_checks(context: typer.Context, given: dict[str, bool]) -> None:
    for parameter, options in _CHECKS.items():
        source = context.get_parameter_source(parameter)
        if source is not None and source.name == "COMMANDLINE" and not any(given[option] for option in options):
            raise typer.BadParameter(f"it needs {' or '.join(options)}", param_hint=f"--{parameter}")


def _only_for_one(given: dict[str, Any]) -> None:
    if alone := [option for option, value in given.items() if value]:
        raise typer.BadParameter("it is for one model alone", param_hint=alone[0])


def _precision(fp16: bool, fp32: bool) -> str:
    if fp16 and fp32:
        raise typer.BadParameter("it excludes --fp32", param_hint="--fp16")
    return "float16" if fp16 else "float32" if fp32 else "model"


def _to_stdout(model: Path, settings: Settings, more: dict[str, Any], check: bool, as_json: bool) -> None:
    """The model's bytes on standard output; what there is to tell of them goes to standard error."""
    from converters.cli import text

    if as_json or check:
        raise typer.BadParameter("standard output has the model", param_hint="--json" if as_json else "--check")
    if settings.weights not in (Weights.auto, Weights.embed):
        raise typer.BadParameter("on standard output the weights are in the model", param_hint="--weights")
    converted = settings.convert(model, None, **more)
    text.print_conversion(err, converted.report, _STDOUT)
    sys.stdout.buffer.write(converted.model.SerializeToString())
    sys.stdout.buffer.flush()
