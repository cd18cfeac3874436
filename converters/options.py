"""The options of a conversion, each defined once.

`Options` is what `converters.convert.convert`, the command ``specops convert``, its help and docs/command.md are made of: a
field is the option's name, type and default; `option` gives its description, its form on the command line, and which
other options it needs or excludes. ``python docs/make.py`` brings the signature of ``convert`` and the page up to date.

Descriptions are written once for all three places. A text in single backquotes is code; ``{weights}`` is the name of an
option and ``{form=genai}`` an option with its value, as the place spells them: ``form="genai"`` or ``--genai``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

if TYPE_CHECKING:
    import numpy as np

    Arrays = Mapping[str, np.ndarray]
else:
    Arrays = Mapping[str, Any]  # NumPy is not loaded for the command's help

Weights = Literal["auto", "embed", "copy", "reference"]
Precision = Literal["model", "float16", "float32"]
Quantized = Literal["integer", "float"]
Activations = Literal["float", "int8"]
Form = Literal["openvino", "genai"]
Variables = Literal["defaults", "inputs"]
KvCache = Literal["float32", "float16", "uint8"]
LogitsOf = Literal["last", "all"]
TargetName = Literal[
    "onnxruntime",
    "standard",
    "qnn",
    "webgpu",
    "coreml",
    "directml",
    "opencv",
    "openvino",
    "tract",
    "tvm",
    "tinygrad",
    "mnn",
    "ncnn",
    "rknn",
    "tflite",
    "iree",
    "tensorrt",
]
Channels = Literal["rgb", "bgr"]

OPSET = 21
"""The opset of converted models: `onnx_specops.building.OPSET`, which is not loaded for the command's help."""


@dataclass(frozen=True)
class Relation:
    """Another option's value that an option needs or excludes, and why."""

    option: str
    value: str
    why: str


@dataclass(frozen=True)
class Description:
    """What is said of an option, and how the command takes it.

    Attributes:
        help: one or two sentences: the command's help, and where other descriptions begin.
        details: further sentences, for the docstring and docs/command.md.
        python: how its value is written in Python.
        command: how its value is written on the command line.
        page: further sentences for docs/command.md alone.
        flags: the command line's flags for single values, with their help, in place of an option that takes the value.
        flag: the option on the command line, if it is not spelled like the field.
        metavar: what its value is called in the command's help.
        least: the least value of a number.
        needs: without which it means nothing.
        excludes: with which it cannot be met.
        one_model: whether it concerns one model alone, not each of several.
        in_command: whether the command has it.
    """

    help: str
    details: str = ""
    python: str = ""
    command: str = ""
    page: str = ""
    flags: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    flag: str = ""
    metavar: str = ""
    least: int | None = None
    needs: Relation | None = None
    excludes: Relation | None = None
    one_model: bool = False
    in_command: bool = True


def option(default: Any, help: str, **more: Any) -> Any:
    """A field of `Options`; the arguments are those of `Description`."""
    return field(default=default, metadata={"option": Description(help, **more)})


class OptionError(ValueError):
    """An option has a value that it cannot have, alone or with the others.

    Attributes:
        option: the field.
        template: the message, in which options are ``{name}`` or ``{name=value}``.
    """

    def __init__(self, option: str, template: str) -> None:
        super().__init__(plain(template, in_python))
        self.option, self.template = option, template

    def __reduce__(self) -> tuple[Any, ...]:
        return OptionError, (self.option, self.template)


_GENAI_CACHE = Relation("form", "genai", "in OpenVINO's form the cache is variables")
_GENAI_LOGITS = Relation("form", "genai", "in OpenVINO's form all of the model's outputs stay as they are")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a model is converted; the keywords of `converters.convert.convert`.

    Raises:
        OptionError: an option has a value that it cannot have, alone or with the others.
    """

    bin: str | Path | bytes | None = option(
        None,
        "The IR's weights; by default the .bin of the same name beside the .xml.",
        metavar="MODEL.bin",
        one_model=True,
    )
    weights: Weights = option(
        "auto",
        "Where the weights go: into the .onnx (`embed`), into a file beside it (`copy`), or nowhere (`reference`): the "
        ".onnx then refers to the IR's own .bin. `auto` embeds up to 1 GiB.",
        details="Above that, `auto` refers to the .bin if it is in the folder of the .onnx, and copies otherwise. "
        "`reference` needs the .bin in that folder. A .bin that is a link to another folder gets a second name there, "
        "`.onnx.data`, since no runtime follows such links.",
    )
    input_shapes: Mapping[str, Sequence[int]] | None = option(
        None,
        "The shapes of inputs in the .onnx, as `Model.reshape` of OpenVINO sets them.",
        python="The keys are tensor names or friendly names; -1 is an open dimension.",
        command="As in x=1x3x224x224; ?, -1 or a range such as 1..8 leaves a dimension open. May be given several "
        "times; of several models, each that has such an input gets its shape.",
        flag="--input-shape",
        metavar="NAME=DxDx...",
    )
    strict: bool = option(
        False, "Whatever the file holds that OpenVINO ignores is an error; without it the report lists it."
    )
    target: TargetName = option(
        "onnxruntime",
        "What the .onnx is for. `standard` is standard ONNX alone, with no functions, in the oldest opset that "
        "represents the model; the others are programs that read ONNX, each with its own limits.",
        details="What a target does not take is an error before anything is written. docs/targets.md lists what each needs.",
        excludes=Relation("form", "genai", "onnxruntime-genai is ONNX Runtime's"),
    )
    opset: int | None = option(
        None,
        "The ONNX opset of the .onnx, from 11 to the newest of the installed onnx. By default 21, or the oldest of the "
        "target's that represents the model.",
        details="Below 21 a file cannot carry the domain's operators with their bodies: the bodies take their places, "
        "and the plugin's kernels no longer apply.",
        metavar="N",
        least=11,
    )
    precision: Precision = option(
        "model",
        "The type of weights and computation: the model's own (`model`), `float32`, or `float16` wherever that is exact "
        "enough.",
        details="16-bit weights are stored as float32 in the second case. Inputs and outputs keep OpenVINO's types.",
        flags={
            "float16": ("--fp16", "Weights and computation in float16, for GPUs and NPUs, wherever that is exact enough."),
            "float32": ("--fp32", "Weights and computation in float32, also of models with 16-bit weights."),
        },
    )
    with_weights: bool = option(
        True,
        "Whether the model that is returned has embedded weights, as the file always has.",
        details="Without them a conversion into a file never has them in memory.",
        in_command=False,
    )
    contrib: bool = option(
        True,
        "Use operators of ONNX Runtime's own (`com.microsoft`) too, each with its body in standard ONNX for other runtimes.",
        details="Without them the bodies take their places.",
    )
    quantized: Quantized = option(
        "integer",
        "How quantised networks (FakeQuantize) compute: in integers, as OpenVINO does by default, or in floats that "
        "emulate each FakeQuantize exactly.",
    )
    activations: Activations = option(
        "float",
        "What weights of 8 bits or fewer are multiplied with: floats, or blocks of 32 rounded to 8 bits, which is faster.",
        details="OpenVINO rounds them unless `DYNAMIC_QUANTIZATION_GROUP_SIZE` is 0.",
    )
    form: Form = option(
        "openvino",
        "What a language model's keys and values are: variables, as in OpenVINO (`openvino`), or inputs and outputs "
        "extended by GroupQueryAttention, as ONNX Runtime's generators have them (`genai`).",
        flags={
            "genai": (
                "--genai",
                "Convert the folder of a language model or a Whisper to what onnxruntime-genai loads: models with the cache "
                "as inputs and outputs, genai_config.json, the tokenizer's files.",
            )
        },
    )
    variables: Variables = option(
        "defaults",
        "How a host feeds a stateful model's variables: by inputs that have the initial values as `defaults`, or by "
        "required `inputs`, which ONNX Runtime for JavaScript and Java, and Triton, need.",
        details="There are two of the latter for each variable: NAME is its value, and NAME.is_set says whether that "
        "counts: false, with any value of the right shape, starts with the initial value.",
    )
    positions: int | None = option(
        None,
        "The most tokens that the model is made for, if that is known.",
        least=1,
        in_command=False,
    )
    kv_cache: KvCache | None = option(
        None,
        "The type of the cache of keys and values, `float32` by default. The smaller it is, the faster are tokens that "
        "follow many.",
        details="`uint8` has 256 steps from the least to the greatest value of each head of a token, as OpenVINO has "
        "unless `KV_CACHE_PRECISION` says otherwise.",
        page="See [a smaller cache](language-models.md#a-smaller-cache).",
        needs=_GENAI_CACHE,
    )
    logits: LogitsOf | None = option(
        None,
        "Which tokens of a run have logits: the `last` of each row, which is enough for the next token, or `all`, as in "
        "the IR. `last` by default.",
        page="See [the last token's logits](language-models.md#the-last-tokens-logits).",
        needs=_GENAI_LOGITS,
    )
    outputs: Sequence[str] = option(
        (),
        "The values that are the .onnx's outputs, in this order: outputs of the IR or of any layer, by tensor name or "
        "friendly name.",
        details="A friendly name with `.0`, `.1`, ... is one of several outputs. Layers and inputs that they do not "
        "need are removed. `specops validate` compares such a file with the same values of the IR.",
        metavar="NAME,...",
        excludes=Relation("form", "genai", "a generator needs the logits and the cache alone"),
        one_model=True,
    )
    rename: Mapping[str, str] | None = option(
        None,
        "New names of inputs and outputs.",
        python="The keys are the old ones.",
        command="May be given several times.",
        metavar="OLD=NEW",
        one_model=True,
    )
    model_api: Channels | None = option(
        None,
        "Put what Model API does around the model into the graph: an image of any size in, objects out. The value is the "
        "order of the image's channels.",
        details="The model has to state its wrapper in its run-time information (`model_info`), as models of Geti, "
        "Anomalib, OTX and the Open Model Zoo do.",
        page="See [Model API](model-api.md).",
        excludes=Relation("form", "genai", "a language model has no image"),
    )
    verify: bool | Arrays = option(
        False,
        "Evaluate each rewrite of the passes: the nodes that it replaces and those that replace them run on the same "
        "inputs. A rewrite whose results differ is refused and reported.",
        details="The values are ordinary numbers, zeros, tiny and large numbers, infinities and NaN. It takes several "
        "times as long as the conversion alone.",
        python="Inputs of the model by name tell the sizes of values; without them sizes are tried.",
        command="{inputs}, {shape} or random inputs of the model give the sizes of values.",
    )

    def __post_init__(self) -> None:
        for one in options():
            value = getattr(self, one.name)
            if one.choices and value not in one.choices and not (one.is_optional and value is None):
                raise OptionError(one.name, f"{{{one.name}}} is {_either(one.choices)}, not {value!r}")
            if one.description.least is not None and value is not None and value < one.description.least:
                raise OptionError(one.name, f"{{{one.name}}} is {one.description.least} or more, not {value}")
            if value == one.default:
                continue
            needed, excluded = one.description.needs, one.description.excludes
            if needed is not None and getattr(self, needed.option) != needed.value:
                template = f"{{{one.name}}} is for {{{needed.option}={needed.value}}}: {needed.why}"
                raise OptionError(one.name, template)
            if excluded is not None and getattr(self, excluded.option) == excluded.value:
                template = f"{{{one.name}}} is not for {{{excluded.option}={excluded.value}}}: {excluded.why}"
                raise OptionError(one.name, template)
        if self.weights == "reference" and self.target != "onnxruntime":
            template = "weights that are computed with cannot be referred to: {weights} is for {target=onnxruntime}"
            raise OptionError("weights", template)
        if self.weights == "reference" and self.precision != "model":
            other = _either([choice for choice in get_args(Weights) if choice != self.weights])
            template = f"weights that become {self.precision} cannot be referred to: {{weights}} is {other}"
            raise OptionError("weights", template)


@dataclass(frozen=True)
class Option:
    """An option of `Options`.

    Attributes:
        name: the field.
        type: its type.
        annotation: its type, as it is written.
        default: its value unless another is given.
        description: what is said of it.
    """

    name: str
    type: Any
    annotation: str
    default: Any
    description: Description

    @property
    def choices(self) -> tuple[str, ...]:
        """Its values, where they are counted."""
        kinds = [self.type, *get_args(self.type)]
        return next((get_args(kind) for kind in kinds if getattr(kind, "__origin__", None) is Literal), ())

    @property
    def is_optional(self) -> bool:
        """Whether ``None`` is a value."""
        return type(None) in get_args(self.type)

    @property
    def flag(self) -> str:
        """What the command line calls it."""
        return self.description.flag or f"--{self.name.replace('_', '-')}"


@cache
def options() -> tuple[Option, ...]:
    """All options, in their order."""
    types = get_type_hints(Options)
    return tuple(_option(one, types[one.name]) for one in fields(Options))


def _option(one: Field[Any], type_: Any) -> Option:
    return Option(one.name, type_, str(one.type), one.default, one.metadata["option"])


@cache
def find(name: str) -> Option | None:
    """The option of a name, if there is one."""
    return next((one for one in options() if one.name == name), None)


def _either(choices: Sequence[str]) -> str:
    *others, last = map(repr, choices)
    return f"{', '.join(others)} or {last}" if others else last


# -- one text in three places ----------------------------------------------------------------------------------------------


def in_python(name: str, value: str) -> str:
    """How Python spells an option, or one with a value."""
    return f"{name}={value!r}" if value else name


def in_command(name: str, value: str) -> str:
    """How the command line spells an option, or one with a value."""
    one = find(name)
    if one is None:
        return f"--{name.replace('_', '-')}"
    if value in one.description.flags:
        return one.description.flags[value][0]
    return f"{one.flag} {value}" if value else one.flag


_SPELLED = re.compile(r"\{(\w+)(?:=(\w+))?\}")


def plain(text: str, spell: Callable[[str, str], str]) -> str:
    """A text for a terminal, with options as ``spell`` writes them and no marks around code."""
    return _SPELLED.sub(lambda found: spell(found[1], found[2] or ""), text).replace("`", "")


def in_docstring(one: Option) -> str:
    """An option's description, as docstrings are written."""
    said = one.description
    text = " ".join(filter(None, (_with_relations(said), said.details, said.python)))
    text = re.sub(r"`([^`]+)`", lambda code: f'``"{code[1]}"``' if code[1] in one.choices else f"``{code[1]}``", text)
    return _SPELLED.sub(lambda found: f"``{found[1]}" + (f'="{found[2]}"``' if found[2] else "``"), text)


def in_markdown(one: Option) -> str:
    """An option's description, for docs/command.md."""
    said = one.description
    text = " ".join(filter(None, (_with_relations(said), said.details, said.command, said.page)))
    return _SPELLED.sub(lambda found: f"`{in_command(found[1], found[2] or '')}`", text)


def in_help(one: Option) -> str:
    """An option's description, for the command's help."""
    said = one.description
    return plain(" ".join(filter(None, (_with_relations(said), said.command))), in_command)


def _with_relations(said: Description) -> str:
    """The help; an option that means nothing without another begins with that."""
    return f"With {{{said.needs.option}={said.needs.value}}}: {_lower(said.help)}" if said.needs else said.help


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
