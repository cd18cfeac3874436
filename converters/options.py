"""The options of a conversion, each defined once.

`converters.convert.convert`, the command ``specops convert``, its help and docs/command.md derive from `Options`. A field
has the option's name, type and default. `option` adds its description, its form on the command line, and the options that it
needs or excludes. ``python -m docs.make`` updates the signature of ``convert`` and the page.

Each description serves all three places. A text in single backquotes is code. ``{weights}`` is the name of an option, and
``{form=genai}`` an option with its value. Each place writes them in its own syntax: ``form="genai"`` or ``--genai``.
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
    "cuda",
    "standard",
    "qnn",
    "webgpu",
    "coreml",
    "directml",
    "opencv",
    "opencv4",
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
    "onnx2torch",
    "jax",
]
Channels = Literal["rgb", "bgr"]
Tiles = Literal["stated", "none"]

OPSET = 21
"""The opset of converted models: `onnx_specops.building.OPSET`, which is not loaded for the command's help."""


@dataclass(frozen=True)
class Relation:
    """The value of another option that an option requires or excludes, and the reason."""

    option: str
    value: str
    why: str


@dataclass(frozen=True)
class Description:
    """The documentation of an option, and its form on the command line.

    Attributes:
        help: a short description, for the command's help. The descriptions for other places begin with it.
        details: more sentences, for the docstring and docs/command.md.
        python: the notation of the value in Python, for the docstring.
        command: the notation of the value on the command line, for the command's help and docs/command.md.
        page: more sentences, for docs/command.md only.
        flags: flags for single values on the command line, with their help. They replace an option with a value.
        flag: the option on the command line, if its name differs from the field's.
        metavar: the name of its value in the command's help.
        least: the smallest allowed number.
        needs: the value of another option that this option requires.
        excludes: the value of another option with which this option cannot be combined.
        one_model: whether it applies to a single model only.
        in_command: whether the command has the option.
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
    """The value of an option is invalid, by itself or in combination with other options.

    Attributes:
        option: the field.
        template: the message, in which options are ``{name}`` or ``{name=value}``.
    """

    def __init__(self, option: str, template: str) -> None:
        super().__init__(plain(template, in_python))
        self.option, self.template = option, template

    def __reduce__(self) -> tuple[Any, ...]:
        return OptionError, (self.option, self.template)


_GENAI_CACHE = Relation("form", "genai", "in OpenVINO's form, the cache consists of variables")
_GENAI_LOGITS = Relation("form", "genai", "in OpenVINO's form, the model keeps all its outputs")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a conversion, which are the keyword arguments of `converters.convert.convert`.

    Raises:
        OptionError: the value of an option is invalid, by itself or in combination with other options.
    """

    bin: str | Path | bytes | None = option(
        None,
        "The file that contains the IR's weights. The default is the .bin with the same name as the .xml.",
        python="If ``model`` is the content of an .xml, this is the content of the .bin.",
        metavar="MODEL.bin",
        one_model=True,
    )
    signature: str | None = option(
        None,
        "The signature of a TensorFlow SavedModel. The default is `serving_default`, or the only signature.",
        metavar="NAME",
        one_model=True,
    )
    weights: Weights = option(
        "auto",
        "The location of the weights. `embed` stores them in the .onnx, and `copy` in a separate file next to it. With "
        "`reference`, the .onnx refers to the IR's .bin. `auto` embeds up to 1 GiB.",
        details="For larger weights, `auto` selects `reference` if the .bin is in the same folder as the .onnx, and `copy` "
        "otherwise. `reference` requires the .bin in that folder. If the .bin is a link to another folder, the converter "
        "adds a hard link to the file, `.onnx.data`, because runtimes do not follow links out of the folder.",
    )
    input_shapes: Mapping[str, Sequence[int]] | None = option(
        None,
        "New shapes for inputs, as in OpenVINO's `Model.reshape`.",
        python="The keys are tensor names or friendly names; -1 is a dynamic dimension.",
        command="For example, x=1x3x224x224. ?, -1 or a range such as 1..8 is a dynamic dimension. With several models, "
        "the shape applies to each model that has an input of that name. Can be given several times.",
        flag="--input-shape",
        metavar="NAME=DxDx...",
    )
    strict: bool = option(
        False, "Treat parts of the file that OpenVINO ignores as errors. By default, the report lists them."
    )
    target: TargetName = option(
        "onnxruntime",
        "The program that will load the .onnx. `standard` uses only standard ONNX, without functions, at the oldest opset "
        "that can represent the model.",
        details="If the target does not support the model, the conversion fails before it writes anything. docs/targets.md "
        "lists the requirements of each target.",
    )
    opset: int | None = option(
        None,
        "The ONNX opset of the .onnx, from 11 to the newest opset of the installed onnx package. The default is 21. For a "
        "target, the default is the oldest supported opset that can represent the model.",
        details="Below 21, bodies replace the custom operators, so the plugin's kernels are not used.",
        metavar="N",
        least=11,
    )
    precision: Precision = option(
        "model",
        "The floating-point type of weights and computation: the model's own type (`model`), `float32`, or `float16` where "
        "it is accurate enough.",
        details="`float32` also converts 16-bit weights to float32. Inputs and outputs keep OpenVINO's types.",
        flags={
            "float16": ("--fp16", "Use float16 for weights and computation where it is accurate enough, for GPUs and NPUs."),
            "float32": ("--fp32", "Use float32 for weights and computation, even if the model has 16-bit weights."),
        },
    )
    with_weights: bool = option(
        True,
        "Whether the returned model contains the embedded weights. The file always does.",
        details="Without them, a conversion to a file never loads the weights into memory.",
        in_command=False,
    )
    contrib: bool = option(
        True,
        "Also use ONNX Runtime's own operators (`com.microsoft`), each with a function body for other runtimes.",
        details="If this is disabled, the function bodies replace these operators.",
    )
    quantized: Quantized = option(
        "integer",
        "The arithmetic of quantized networks (FakeQuantize). `integer` computes in integers, as OpenVINO does by default. "
        "`float` emulates each FakeQuantize exactly in floating point.",
    )
    activations: Activations = option(
        "float",
        "The type of the activations in matrix multiplications with weights of 8 bits or fewer. `int8` quantizes them in "
        "blocks of 32, which is faster.",
        details="By default, OpenVINO quantizes these activations, too. Its property `DYNAMIC_QUANTIZATION_GROUP_SIZE=0` "
        "disables this.",
    )
    form: Form = option(
        "openvino",
        "The representation of a language model's key-value cache. `openvino` keeps OpenVINO's variables. `genai` uses "
        "inputs and outputs that GroupQueryAttention extends, as onnxruntime-genai requires.",
        flags={
            "genai": (
                "--genai",
                "Convert the folder of a language model, Whisper model or vision-language model for onnxruntime-genai. The "
                "key-value cache becomes inputs and outputs. The output folder also contains genai_config.json and the "
                "tokenizer.",
            )
        },
    )
    variables: Variables = option(
        "defaults",
        "The kind of inputs that represent the variables of a stateful model. `defaults` creates optional inputs, whose "
        "defaults are the initial values. `inputs` creates required inputs, for ONNX Runtime in JavaScript and Java, and "
        "for Triton.",
        details="`inputs` creates two inputs for each variable. NAME is the value of the variable, and the boolean "
        "NAME.is_set determines whether the run uses it. If NAME.is_set is false, the run starts with the initial value, "
        "and NAME can have any value of the right shape.",
    )
    positions: int | None = option(
        None,
        "The maximum number of tokens that the model supports, if it is known.",
        least=1,
        in_command=False,
    )
    kv_cache: KvCache | None = option(
        None,
        "The element type of the key-value cache. The default is `float32`, or `float16` with {target=cuda}. A smaller type "
        "speeds up the generation of long texts.",
        details="`uint8` quantizes each head of each token to 256 levels between its smallest and largest value, as "
        "OpenVINO does by default (`KV_CACHE_PRECISION`).",
        page="See [a smaller cache](language-models.md#a-smaller-cache).",
        needs=_GENAI_CACHE,
    )
    logits: LogitsOf | None = option(
        None,
        "The tokens for which logits are computed. `last` computes the logits of the last token of each sequence, which "
        "are sufficient to generate text. `all` computes the logits of all tokens, as in the IR. The default is `last`.",
        page="See [the last token's logits](language-models.md#the-last-tokens-logits).",
        needs=_GENAI_LOGITS,
    )
    outputs: Sequence[str] = option(
        (),
        "The outputs of the .onnx, in this order. Specify outputs of the IR or of any layer, by tensor name or friendly "
        "name.",
        details="To select one of several outputs of a layer, append `.0`, `.1`, ... to its friendly name. Layers and "
        "inputs that do not affect these outputs are removed. `specops validate` compares the outputs with the same values "
        "of the IR.",
        metavar="NAME,...",
        excludes=Relation("form", "genai", "text generation requires only the logits and the cache"),
        one_model=True,
    )
    rename: Mapping[str, str] | None = option(
        None,
        "New names for inputs and outputs.",
        python="The keys are the old names.",
        command="Can be given several times.",
        metavar="OLD=NEW",
        one_model=True,
    )
    model_api: Channels | None = option(
        None,
        "Add the preprocessing and postprocessing of Model API to the graph. The input is then an image of any size, and "
        "the outputs are the final results, such as boxes and labels. The value specifies the channel order of the image.",
        details="The model's runtime information (`model_info`) must name a Model API wrapper, as in models from Geti, "
        "Anomalib, OTX and the Open Model Zoo.",
        page="See [Model API](model-api.md).",
        excludes=Relation("form", "genai", "a language model has no image input"),
    )
    model_api_tiles: Tiles = option(
        "stated",
        "With {model_api}: the tiling of the image. `stated` uses the `tile_size` of the model, and `none` ignores it.",
        details="With `stated`, the network runs in a loop on each tile. It also runs on the whole image, unless the model "
        "disables this.",
    )
    verify: bool | Arrays = option(
        False,
        "Check each rewrite of the graph by running the nodes before and after it on the same inputs. A rewrite that "
        "changes a result is rejected and reported.",
        details="The inputs include ordinary numbers, zeros, tiny and large numbers, infinities and NaN. The conversion "
        "takes several times as long.",
        python="To determine the shapes of the tensors, pass inputs of the model by name. With true, several sizes are "
        "tried.",
        command="The shapes of the tensors come from {inputs}, {shape} or random inputs of the model.",
    )

    def __post_init__(self) -> None:
        for one in options():
            value = getattr(self, one.name)
            if one.choices and value not in one.choices and not (one.is_optional and value is None):
                raise OptionError(one.name, f"{{{one.name}}} must be {_either(one.choices)}, not {value!r}")
            if one.description.least is not None and value is not None and value < one.description.least:
                raise OptionError(one.name, f"{{{one.name}}} must be {one.description.least} or more, not {value}")
            if value == one.default:
                continue
            needed, excluded = one.description.needs, one.description.excludes
            if needed is not None and getattr(self, needed.option) != needed.value:
                template = f"{{{one.name}}} requires {{{needed.option}={needed.value}}}: {needed.why}"
                raise OptionError(one.name, template)
            if excluded is not None and getattr(self, excluded.option) == excluded.value:
                template = f"{{{one.name}}} cannot be combined with {{{excluded.option}={excluded.value}}}: {excluded.why}"
                raise OptionError(one.name, template)
        if self.form == "genai" and self.target not in ("onnxruntime", "cuda"):
            template = f"{{form=genai}} requires {{target=onnxruntime}} or {{target=cuda}}, not {self.target}: "
            raise OptionError("target", f"{template}onnxruntime-genai uses ONNX Runtime")
        if self.target == "cuda" and self.kv_cache not in (None, "float16"):
            template = (
                f"{{kv_cache={self.kv_cache}}} cannot be combined with {{target=cuda}}: CUDA's GroupQueryAttention "
                "supports float16 caches only"
            )
            raise OptionError("kv_cache", template)
        if self.target == "cuda" and self.activations != "float":
            template = (
                "{activations=int8} cannot be combined with {target=cuda}: CUDA's matrix multiplication with compressed "
                "weights requires float activations"
            )
            raise OptionError("activations", template)
        if self.weights == "reference" and self.target != "onnxruntime":
            template = "{weights=reference} requires {target=onnxruntime}: conversion for other targets changes the weights"
            raise OptionError("weights", template)
        if self.weights == "reference" and self.precision != "model":
            other = _either([choice for choice in get_args(Weights) if choice != self.weights])
            template = f"weights that are converted to {self.precision} cannot be referenced: {{weights}} must be {other}"
            raise OptionError("weights", template)


@dataclass(frozen=True)
class Option:
    """An option of `Options`.

    Attributes:
        name: the field.
        type: its type.
        annotation: its type, as it is written.
        default: its default value.
        description: its documentation.
    """

    name: str
    type: Any
    annotation: str
    default: Any
    description: Description

    @property
    def choices(self) -> tuple[str, ...]:
        """Its values, if it has a fixed set of them."""
        kinds = [self.type, *get_args(self.type)]
        return next((get_args(kind) for kind in kinds if getattr(kind, "__origin__", None) is Literal), ())

    @property
    def is_optional(self) -> bool:
        """Whether ``None`` is a value."""
        return type(None) in get_args(self.type)

    @property
    def flag(self) -> str:
        """The name on the command line."""
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
    """Return the Python form of an option, or of an option with a value."""
    return f"{name}={value!r}" if value else name


def in_command(name: str, value: str) -> str:
    """Return the command line's form of an option, or of an option with a value."""
    one = find(name)
    if one is None:
        return f"--{name.replace('_', '-')}"
    if value in one.description.flags:
        return one.description.flags[value][0]
    return f"{one.flag} {value}" if value else one.flag


_OPTION = re.compile(r"\{(\w+)(?:=(\w+))?\}")


def plain(text: str, spell: Callable[[str, str], str]) -> str:
    """A text for a terminal. ``spell`` writes options; backquotes are removed."""
    return _OPTION.sub(lambda found: spell(found[1], found[2] or ""), text).replace("`", "")


def in_docstring(one: Option) -> str:
    """An option's description, as docstrings are written."""
    about = one.description
    text = " ".join(filter(None, (_with_relations(about), about.details, about.python)))
    text = re.sub(r"`([^`]+)`", lambda code: f'``"{code[1]}"``' if code[1] in one.choices else f"``{code[1]}``", text)
    return _OPTION.sub(lambda found: f"``{found[1]}" + (f'="{found[2]}"``' if found[2] else "``"), text)


def in_markdown(one: Option) -> str:
    """An option's description, for docs/command.md."""
    about = one.description
    text = " ".join(filter(None, (_with_relations(about), about.details, about.command, about.page)))
    return _OPTION.sub(lambda found: f"`{in_command(found[1], found[2] or '')}`", text)


def in_help(one: Option) -> str:
    """An option's description, for the command's help."""
    about = one.description
    return plain(" ".join(filter(None, (_with_relations(about), about.command))), in_command)


def _with_relations(about: Description) -> str:
    """The help. If the option needs another one, the help begins with it."""
    return f"With {{{about.needs.option}={about.needs.value}}}: {_lower(about.help)}" if about.needs else about.help


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
