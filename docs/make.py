"""Write the generated parts of the documentation.

docs/operations.md, docs/departures.md and docs/operators.md come from the registries of rules and operators; the table of
options in docs/command.md and the signature of `convert` come from converters/options.py.

python docs/make.py          # writes them
python docs/make.py --check  # exits 1 if one is out of date
"""

from __future__ import annotations

import functools
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import converters
from converters.inference_engine import rules as _layer_rules  # noqa: F401  (importing it registers them)
from converters.inference_engine.rule import layer_rules
from converters.openvino.coverage.departures import declared_departures
from converters.openvino.coverage.table import Coverage, coverage, openvino_version
from converters.openvino.rule import EVERYWHERE, Departure
from converters.options import Option, in_docstring, in_markdown, options
from converters.targets import TARGETS, Target
from onnx_specops.domain import (
    CONTRIB_DOMAIN,
    DOMAIN,
    MOST_ELEMENTS,
    MOST_GROWTH,
    OPSET_VERSION,
    Attribute,
    Declaration,
    Operator,
    declared,
    find,
    operators,
)

DOCS = Path(__file__).parent
ROOT = DOCS.parent
_HOSTS = DOCS.parent / "tests" / "hosts" / "operators.json"
_EXAMPLES = DOCS / "operator_examples"
_TARGETS = DOCS.parent / "tests" / "conformance" / "targets"
_HELD_OUT = re.findall(
    r'^    "(.+)",$',
    _TARGETS.joinpath("networks.py").read_text("utf-8").partition("HELD_OUT = [")[2].partition("]")[0],
    re.M,
)
_TARGET_RESULTS = _TARGETS / "results.json"
_NATIVE = DOCS.parent / "onnx_specops" / "native" / "ops.h"

_OPERATIONS = f"""\
# OpenVINO's operations

<!-- Made by docs/make.py: change that, or what it reads. -->

The table lists all {{total}} pairs of operation and version of opset1 to opset17, and what a layer of each becomes:
*standard* ONNX, an operator of the domain `{DOMAIN}` (*custom*), or *both*. With *both*, the operator of the domain is used
only if standard ONNX cannot represent the attributes and types of the layer. *Forms* are the forms of the domain's
operators; a standard node runs in any runtime. *Rule* is the module that converts the layer.

{{ruled}} have a rule. {{passing}} pass all their cases in `tests/conformance/operations` ({{cases}} in total), which
compare them with OpenVINO {{version}}. `specops inspect --all-operations` prints the same table.
[departures.md](departures.md) lists where OpenVINO's CPU plugin differs from its specification, and what a converted model
computes there.
"""

_DEPARTURES = """\
# Where OpenVINO's CPU plugin differs from its specification

<!-- Made by docs/make.py: change that, or what it reads. -->

A converted model computes what OpenVINO's CPU plugin computes in float32 (`INFERENCE_PRECISION_HINT=f32`). For some inputs,
the plugin differs from OpenVINO's own specification, or from the reference kernel of the same release
(`ov.Model.evaluate`) where the specification is silent. The tables list the {count} known differences:

- *where*: the inputs that show the difference;
- *CPU plugin*: what the plugin computes for them;
- *specification*: what the specification defines. *reference:* marks what the reference kernel computes, where the
  specification is silent or the kernel differs from it too;
- *follows*: which of them the converted model computes. *runtime* means that the ONNX runtime decides;
- *release*: the OpenVINO release in which the difference was observed.

The tables do not cover quantized and compressed models. What OpenVINO computes for them (integer kernels, activations
rounded to 8 bits) depends on its settings and on the whole graph, not on one operation.

The rules declare the differences themselves, as `@rule(..., departs=[...])` in the modules that the headings name.
`tests/conformance/operations/test_departures.py` has an example of nearly every difference, so that the tests fail when an
OpenVINO release changes one.
"""

_OLD_IR = """\
# IR of versions 2 to 7

<!-- Made by docs/make.py: change that, or what it reads. -->

OpenVINO's releases of 2018 to 2020 wrote IR of versions 2 to 7. No later release reads these files. onnx-specops converts
them like files of versions 10 and 11:

```console
specops convert old.xml
specops convert FOLDER -o ONNX_FOLDER
specops inspect old.xml
specops validate old.xml
```

`convert` of a folder converts all IR files in it. `--json` gives each command's result as JSON.

The reference is the CPU plugin of the Inference Engine 2020.2, which the PyPI package `opencv-python-inference-engine`
4.3.0.2 contains. The package needs Python 3.11 or older and NumPy below 2, so install it in a separate environment.
`specops validate` compares with it if the environment variable `SPECOPS_INFERENCE_ENGINE` is the path of the Python in that
environment. Otherwise it compares the ONNX runtimes with each other:

```console
python3.11 -m venv ie && ie/bin/pip install 'numpy<2' opencv-python-inference-engine==4.3.0.2
SPECOPS_INFERENCE_ENGINE=ie/bin/python specops validate old.xml
```

- Weights are read from `<weights>`, `<biases>` and `<blobs>`, and from Const layers. 16-bit weights stay 16 bits wide in the
  file; layers compute in float32, as in the Inference Engine.
- `Input` layers become inputs, and values without consumers become outputs. They have the names of their layers.
- `<pre-process>` with mean values or mean images becomes part of the graph. A `<scale>` is ignored, as in the CPU plugin,
  and the report notes it.
- `<statistics>` of an 8-bit calibration are ignored, and the report notes it: layers compute in floats.
- The output shapes in the file determine the padding at the end of Pooling and Convolution, as in the Inference Engine. With
  `--input-shape`, the attributes determine it. Pooling then rounds up, unless `rounding_type` is `floor`, and the parts of a
  Split keep their sizes.
- A layer whose shape in the file differs from the computed one is an error, also where the Inference Engine runs the file
  and returns memory that no layer wrote. The report notes blobs and attributes that the Inference Engine ignores.

## Differences from the Inference Engine

- DepthToSpace and SpaceToDepth follow the specification (blocks first). The CPU plugin of 2020.2 uses another order if
  there is more than one channel outside the blocks.
- A Memory layer contains zeros before the first run. The Inference Engine does not initialize this memory.
- SpatialTransformer and Upsampling are errors. The Inference Engine infers the shapes of their outputs, but has no
  implementation for the CPU.
- If several layers use a value, the Inference Engine computes some of them in place, and the others then read the result.
  Some layers after a Split or a Slice read the elements of another output. Converted files compute the definition of the
  layers. Of 2,500 random networks (seed 1), 1,203 agree. 5 differ for these reasons: the Inference Engine agrees if the
  network contains only the layers of one output. It rejects 1,291, and the values of one are too large to compare.
- Eltwise multiplies its inputs by `coeff` also when it broadcasts them. The Inference Engine then ignores `coeff`.
- Activations of an integer input compute in floats. The Inference Engine rounds their results to integers.
- FakeQuantize with the levels 0 and 1 gives these numbers. The Inference Engine gives bits, which BinaryConvolution reads.
- ReduceMax of negative numbers is the largest one. The Inference Engine can return 1.2e-38.
- DetectionOutput with priors for each image uses the variances of each image. The Inference Engine reads boxes as variances
  from the second image on.
- Softplus of numbers above 88 is the number. The Inference Engine returns infinity.
- Files of version 7 with SpaceToBatch, BatchToSpace or ScatterUpdate are supported. The Inference Engine 2020.2 does not run
  them.

## Layer types

{types} layer types have a rule. {cases} cases compare them with the Inference Engine, with native kernels, with Python
kernels and without kernels. {agreeing} cases agree within 1e-4. Type names are not case-sensitive. Types without cases are
not implemented in the Inference Engine, or folded when it loads a file.

The results of the Inference Engine are stored with the tests (`tests/conformance/inference_engine`). The first command
records them again, the second compares your own IR files, the third random networks:

```console
SPECOPS_INFERENCE_ENGINE=ie/bin/python python -m tests.conformance.inference_engine.record
SPECOPS_INFERENCE_ENGINE=ie/bin/python python -m tests.conformance.inference_engine.files FOLDER
SPECOPS_INFERENCE_ENGINE=ie/bin/python python -m tests.conformance.inference_engine.random --count 1000
```
"""

_OPERATORS = f"""\
# The operators of the domain `{DOMAIN}`

<!-- Made by docs/make.py: change that, or what it reads. -->

This page describes version {OPSET_VERSION} of the domain. Every operator has a schema and a NumPy kernel. Most have a
*body*: a function in standard ONNX that a converted file carries, so that it runs without the plugin. `specops ops` lists
the forms of an installation. The examples call the NumPy kernels and are run as tests.

Attributes are checked before the operator runs in any form, each value and their combined size. Kernels reject an
output of more than {MOST_ELEMENTS:,} elements and more than {MOST_GROWTH:,} times the elements of all inputs, so that a few
numbers in a file cannot exhaust the memory.

*JavaScript* counts the small models (chosen by `tests/hosts/subjects.py`) that give the results of ONNX Runtime in Python
when their bodies run in {{runtimes}} without the plugin. Where Node and the web differ, the column has both numbers.
`python -m tests.hosts.record` measures it again.

The page ends with [ONNX Runtime's operators](#onnx-runtimes-operators).
"""

_CONTRIB = f"""\
## ONNX Runtime's operators

Converted models may also contain these operators of the domain `{CONTRIB_DOMAIN}`. Each node carries its body. ONNX Runtime
uses its own kernel (also in Node and on the web); every other runtime uses the body. `specops convert --no-contrib` writes
the bodies instead of the operators.
"""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Iterate over the lines of a Markdown table."""
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


# -- operations.md ---------------------------------------------------------------------------------------------------------


def operations_page() -> Iterator[str]:
    """The page of OpenVINO's operations and their conversion."""
    covered = coverage()
    yield _OPERATIONS.format(
        total=len(covered),
        ruled=sum(row.has_rule for row in covered),
        passing=sum(row.passes for row in covered),
        cases=sum(row.cases for row in covered),
        version=openvino_version(),
    )
    headings = ("operation", "versions", "becomes", f"operators of `{DOMAIN}`", "forms", "cases", "rule", "restrictions")
    alike = groupby(covered, key=lambda row: (row.operation.name, row.module, row.standard, row.custom, row.restrictions))
    yield from table(headings, (_operation_row(list(versions)) for _, versions in alike))


def _operation_row(versions: Sequence[Coverage]) -> tuple[str, ...]:
    row = versions[0]
    return (
        row.operation.name,
        ", ".join(str(version.operation.number) for version in versions),
        row.becomes if row.has_rule else "**no rule**",
        ", ".join(f"[{name}](operators.md#{name.lower()})" for name in row.custom),
        ", ".join(_common_forms(row.custom)),
        str(sum(version.passed for version in versions)),
        _source(row.module),
        row.restrictions,
    )


def _source(module: str) -> str:
    """Return a module's name with a link to its file."""
    return f"[{module.rpartition('.')[2]}](../{module.replace('.', '/')}.py)" if module else ""


def _common_forms(names: Sequence[str]) -> list[str]:
    forms = [forms_of(find(name)) for name in names]
    return [form for form in (forms[0] if forms else []) if all(form in others for others in forms)]


def forms_of(operator: Operator) -> list[str]:
    """Return the forms of an operator in the project, independent of this installation."""
    written = re.findall(r"^const Op& (\w+)\(\);", _NATIVE.read_text(encoding="utf-8"), re.MULTILINE)
    module = operator.kernel.__module__.rpartition(".")[2]
    present = {"body": operator.emit_body is not None, "Python": True, "native": module in written}
    return [form for form, there in present.items() if there]


# -- departures.md ---------------------------------------------------------------------------------------------------------


def departures_page() -> Iterator[str]:
    """The page of departures of the CPU plugin from the specification."""
    stated = declared_departures()
    yield _DEPARTURES.format(count=len(EVERYWHERE) + len(stated))
    headings = ("where", "CPU plugin", "specification", "follows", "release")
    yield "## All operations"
    yield ""
    yield from table(headings, map(_departure_cells, EVERYWHERE))
    for module, rows in groupby(stated, key=lambda one: one.module):
        yield ""
        yield f"## {_source(module)}"
        yield ""
        cells = ((_versioned(row.versions), *_departure_cells(row.departure)) for row in rows)
        yield from table(("operations", *headings), cells)


def _departure_cells(departure: Departure) -> tuple[str, ...]:
    reference = f"*reference:* {departure.reference}" if departure.reference else ""
    other = "; ".join(filter(None, (departure.specification, reference)))
    return departure.where, departure.cpu, other, departure.follows.replace("cpu", "CPU plugin"), departure.release


def _versioned(versions: Mapping[str, Sequence[int]]) -> str:
    """Format operations with their versions: ``Gather-1, -7``."""
    return ", ".join(f"{name}{', '.join(f'-{number}' for number in numbers)}" for name, numbers in versions.items())


# -- operators.md ----------------------------------------------------------------------------------------------------------


def operators_page() -> Iterator[str]:
    """The page of the domain's operators."""
    yield _OPERATORS.format(runtimes=" and ".join(host["runtime"] for host in _hosts().values()))
    yield from table(("operator", "description", "forms", "JavaScript"), map(_operator_row, operators()))
    for operator in operators():
        yield ""
        yield from _operator_section(operator)
    yield ""
    yield _CONTRIB
    rows = ((operator.name, _first(operator), _measured(operator.name)) for operator in declared(CONTRIB_DOMAIN))
    yield from table(("operator", "description", "JavaScript"), rows)


def _operator_row(operator: Operator) -> tuple[str, ...]:
    name = f"[{operator.name}](#{operator.name.lower()})"
    return name, _first(operator), ", ".join(forms_of(operator)), _in_javascript(operator)


@functools.cache
def _hosts() -> dict[str, Any]:
    return json.loads(_HOSTS.read_text(encoding="utf-8"))


def _in_javascript(operator: Operator) -> str:
    return "no body" if operator.emit_body is None else _measured(operator.name)


def _measured(name: str) -> str:
    """Return the number of models in which an operator ran and agreed."""
    entries = [host["operators"].get(name) for host in _hosts().values()]
    cells = ["not measured" if entry is None else f"{entry['agree']} of {entry['models']}" for entry in entries]
    return ", ".join(dict.fromkeys(cells))


def _first(operator: Declaration) -> str:
    """Return the first paragraph of an operator's documentation."""
    return operator.doc.partition("\n\n")[0].replace("\n", " ")


def _operator_section(operator: Operator) -> Iterator[str]:
    yield f"## {operator.name}"
    yield ""
    yield from as_markdown(operator.doc)
    yield ""
    outputs = ", ".join(f"`{name}` ({type_})" for name, type_ in operator.outputs.items())
    yield f"Signature: {', '.join(_inputs(operator))} → {outputs}"
    if operator.attributes:
        yield ""
        yield from table(("attribute", "type", "default", "values"), map(_attribute_row, operator.attributes.values()))
    for product in operator.products:
        yield ""
        yield f"Combined: `{' * '.join(product.factors)}` is at most {product.most:,}."
    if operator.types:
        yield ""
        yield from table(("type", "element types"), ((name, ", ".join(types)) for name, types in operator.types.items()))
    example = _EXAMPLES / f"{operator.name}.txt"
    if example.is_file():
        yield ""
        yield "```pycon"
        yield example.read_text(encoding="utf-8").rstrip()
        yield "```"
    if operator.no_body:
        yield ""
        yield f"No body: {operator.no_body}."
    if operator.random_body:
        yield ""
        yield "The body draws different random numbers than the kernels, from the same distribution."


def _inputs(operator: Operator) -> Iterator[str]:
    for (name, type_), optional in zip(operator.inputs.items(), operator.optional, strict=True):
        yield f"`{name}` ({type_}{', optional' if optional else ''})"


def _attribute_row(attribute: Attribute) -> tuple[str, str, str, str]:
    kind = attribute.type.__name__ if isinstance(attribute.type, type) else str(attribute.type)
    default = "required" if attribute.required else f"`{attribute.default!r}`"
    return f"`{attribute.name}`", kind, default, _may_be(attribute)


def _may_be(attribute: Attribute) -> str:
    if attribute.choices:
        return ", ".join(f"`{choice!r}`" for choice in attribute.choices)
    if attribute.limits is None:
        return ""
    if attribute.limits.most is None:
        return f"{attribute.limits.least} or more"
    return f"{attribute.limits.least} to {attribute.limits.most:,}"


def as_markdown(doc: str) -> Iterator[str]:
    """Convert a docstring with indented lists (``name: what it is``) to Markdown lists."""
    previous = ""
    for line in doc.splitlines():
        entry = re.match(r" {4}(\w[\w, ]*?): (.*)", line)
        if entry:
            if previous and not previous.startswith("    "):
                yield ""
            yield f"- `{entry[1]}`: {entry[2]}"
        else:
            yield f"  {line.strip()}" if line.startswith(" ") else line
        previous = line


# -- parts of other files --------------------------------------------------------------------------------------------------

CONVERT = "converters/convert.py"
_WIDTH = 125


def signature() -> Iterator[str]:
    """The signature of `convert` with a keyword for each option, for editors."""
    yield "def convert("
    yield "    model: str | Path | openvino.Model,"
    yield "    onnx_path: str | Path | None = None,"
    yield "    *,"
    for one in options():
        default = json.dumps(one.default) if isinstance(one.default, str) else one.default
        yield f"    {one.name}: {one.annotation} = {default},"
    yield ") -> Conversion:"
    yield '    """Convert a model into an ONNX model that computes what the model\'s own runtime computes.'
    yield ""
    yield from _wrapped(_KEPT, 4, 4)
    yield ""
    yield "    Args:"
    yield from _wrapped("model: a file of a source format, as the .xml of an OpenVINO IR, or an ``openvino.Model``.", 8, 12)
    yield from _wrapped("onnx_path: where to write the model; ``None`` writes nothing.", 8, 12)
    for one in options():
        yield from _wrapped(f"{one.name}: {_as_phrase(in_docstring(one))}", 8, 12)
    yield ""
    yield "    Returns:"
    returns = "The model (with external weights as the file has them) and the `Report`; they unpack as a pair."
    yield from _wrapped(returns, 8, 8)
    yield ""
    yield "    Raises:"
    for name, text in _RAISED.items():
        yield from _wrapped(f"{name}: {text}", 8, 12)
    yield '    """'
    yield "    options = Options("
    for one in options():
        yield f"        {one.name}={one.name},"
    yield "    )"
    yield "    return convert_with(model, onnx_path, options)"


_KEPT = (
    "For an OpenVINO IR that is OpenVINO's CPU plugin in float32. Inputs and outputs keep their order, names, element types "
    "and dynamic dimensions, unless ``outputs`` and ``rename`` state others."
)
_RAISED = {
    "ConversionError": "with every problem of the model at once: file, line, layer and remedy.",
    "ValueError": "for options that contradict each other, or an output that is an input.",
    "OSError": "a file cannot be written; what was there before is still there.",
}


def _as_phrase(text: str) -> str:
    """Format a sentence for use after a colon."""
    first = text.split(maxsplit=1)[0]
    return text if any(letter.isupper() for letter in first[1:]) else text[:1].lower() + text[1:]


def _wrapped(text: str, first: int, others: int) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=" " * first,
        subsequent_indent=" " * others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def option_rows() -> Iterator[str]:
    """The rows of a conversion's options in the command's table."""
    yield ""
    yield from table(("option", "meaning"), (row for one in options() for row in _option_rows(one)))
    yield ""


def _option_rows(one: Option) -> Iterator[tuple[str, str]]:
    said = one.description
    if not said.in_command:
        return
    if said.flags:
        for flag, text in said.flags.values():
            yield f"`{flag}`", text
    elif one.choices:
        values = ", ".join(f"`{choice}`" for choice in one.choices)
        default = "" if one.default is None else f" `{one.default}` by default."
        yield f"`{one.flag}` {values}", in_markdown(one) + default
    else:
        spelled = f"`{one.flag} {said.metavar}".rstrip() + "`"
        yield f"{spelled}, `--no-{one.flag[2:]}`" if one.default is True else spelled, in_markdown(one)


def model_api_rows() -> Iterator[str]:
    """Networks with Model API's wrappers, and the comparison of their results."""
    results = json.loads((ROOT / "tests" / "converters" / "model_api" / "results.json").read_text(encoding="utf-8"))
    yield ""
    rows = []
    for name, found in sorted(results.items(), key=lambda item: (item[1]["model_type"].lower(), item[0])):
        runs = [found[runtime] for runtime in ("onnxruntime", "onnxruntime-web") if runtime in found]
        ious = [f"{run['iou']:.5f}" if run["iou"] is not None else "-" for run in runs]
        equal = ["yes" if run["labels"] else "no" for run in runs]
        apart = [
            ", ".join(f"`{one.split(': ')[0].partition('/')[2]}` by {one.split(': ')[1]}" for one in run["wrong"])
            for run in runs
        ]
        images = str(max(run["images"] for run in runs))
        rows.append((found["model_type"], f"`{name}`", images, *(_pair(cells) for cells in (ious, equal, apart))))
    yield from table(("`model_type`", "network", "images", "least IoU", "labels equal", "numbers that differ"), rows)
    yield ""


def _pair(cells: Sequence[str]) -> str:
    """Return one text if both runtimes have the same, else both."""
    return cells[0] if len(set(cells)) == 1 and len(cells) == 2 else " / ".join(cells)


_FRONTENDS = {
    "saved_model": ("TensorFlow", "SavedModel", "TensorFlow 2.21"),
    "frozen": ("TensorFlow", "frozen `.pb`", "TensorFlow 2.21"),
    "meta": ("TensorFlow", "`.meta` with a checkpoint", "TensorFlow 2.21"),
    "tflite": ("TensorFlow Lite", "`.tflite`", "TensorFlow 2.21"),
    "paddle": ("PaddlePaddle", "`.pdmodel`", "PaddlePaddle 2.6"),
    "pt2": ("PyTorch", "`.pt2`", "PyTorch 2.14"),
    "onnx": ("ONNX", "`.onnx`", "opset 21"),
}
"""Each format of tests/conformance/frontends: OpenVINO's frontend, the files, and what wrote them."""


def frontend_rows() -> Iterator[str]:
    """Formats of frameworks, and how many of their models agree with the framework."""
    results = json.loads((ROOT / "tests" / "conformance" / "frontends" / "results.json").read_text(encoding="utf-8"))
    yield ""
    rows = []
    for kind, models in results.items():
        agreeing = sum(outcome == "agrees" for outcome in models.values())
        names = ", ".join(
            f"`{name}`" if outcome == "agrees" else f"`{name}` ({outcome})" for name, outcome in models.items()
        )
        rows.append((*_FRONTENDS[kind], f"{agreeing} of {len(models)}", names))
    yield from table(("frontend", "files", "written by", "models that agree", "models"), rows)
    yield ""


PARTS = {
    CONVERT: signature,
    "docs/command.md": option_rows,
    "docs/convert.md": frontend_rows,
    "docs/model-api.md": model_api_rows,
}
"""Files with a generated part, between the lines that contain `_BEGIN` and `_END`."""

_BEGIN, _END = "made by docs/make.py from ", "to here"


def with_part(text: str, part: Callable[[], Iterator[str]]) -> str:
    """Return a file's text with its generated part replaced."""
    lines = text.splitlines()
    begin = next(place for place, line in enumerate(lines) if _BEGIN in line)
    end = next(place for place, line in enumerate(lines) if place > begin and f" {_END} " in line)
    space = ["", ""] if lines[begin].startswith("#") else []
    return "\n".join([*lines[: begin + 1], *space, *part(), *space, *lines[end:]]) + "\n"


def old_ir_page() -> Iterator[str]:
    """The page of the layer types of IR 2 to 7, with the number of cases that agree."""
    record = json.loads((ROOT / "converters" / "inference_engine" / "conformance.json").read_text(encoding="utf-8"))
    counts = {kind.lower(): count for kind, count in record.items()}
    rules = layer_rules()
    cases, agreeing = (sum(count[place] for count in counts.values()) for place in (0, 1))
    yield _OLD_IR.format(types=len(rules), cases=cases, agreeing=agreeing)
    names = {"readvalue": "Memory (reads)", "assign": "Memory (writes)"}
    rows = [(kind, f"{counts[kind.lower()][1]} of {counts[kind.lower()][0]}", "reader") for kind in ("Const", "Input")]
    for kind, found in rules.items():
        count = counts.get(kind.lower())
        module = found.function.__module__
        agree = "" if count is None else f"{count[1]} of {count[0]}"
        rows.append((names.get(kind.lower(), kind), agree, _source(module)))
    yield from table(("type", "cases that agree", "rule"), sorted(rows, key=lambda row: row[0].lower()))
    files = json.loads((ROOT / "tests" / "conformance" / "inference_engine" / "public.json").read_text(encoding="utf-8"))
    agree = sum(file["outcome"].startswith("agrees") for file in files)
    yield from [*_PUBLIC_FILES.format(files=len(files), agree=agree).splitlines(), ""]
    rows = [
        (
            f"[{file['repository']}](https://github.com/{file['repository']}), `{file['path']}`, {file['commit'][:7]}",
            str(file["version"]),
            str(file["layers"]),
            file["weights"],
            _short_outcome(file["outcome"]),
        )
        for file in files
    ]
    yield from table(("file", "version", "layers", "weights", "result"), rows)


def _short_outcome(outcome: str) -> str:
    text = outcome.partition(", for inputs")[0].partition("; check that")[0].replace("net.xml:", "line ")
    text = text.replace("|", "/").replace("<", "\\<").replace(">", "\\>")
    return text if len(text) < 160 else f"{text[:160]}..."


_PUBLIC_FILES = """
## Public files

{files} files of public repositories were compared with the Inference Engine. {agree} agree within 1e-4. Files whose .bin is
not in the repository have random weights. Results other than *agrees*:

- *without \\<statistics\\>*: the Inference Engine fails when it reads the statistics. It ran the file without them.
- *before DetectionOutput*: the scores of random weights are so similar that the last bit decides which boxes DetectionOutput
  keeps. Its inputs agree.
- *as the Inference Engine with itself*: a binary layer or the selected class depends on the last bit. The results of the
  Inference Engine change as much if its inputs change by 1e-6.
- *not converted*: a layer has fewer weights than its input needs. The Inference Engine reads the memory after them.

The files are not part of this repository. These commands clone the repositories, compare the files, and write the table:

```console
python -m tests.conformance.inference_engine.public --clone-commands | sh
SPECOPS_INFERENCE_ENGINE=ie/bin/python python -m tests.conformance.inference_engine.public .
```
"""


def targets_page() -> Iterator[str]:
    """The page of targets, with the results of consumers of ONNX for their files."""
    yield from [
        "# Targets",
        "",
        "`specops convert --target NAME` and `convert(target=)` convert for one of the programs below. Without a target,",
        "the file is for ONNX Runtime: standard ONNX, and operators with function bodies, without nodes that have no",
        "effect, that repeat another node, or that compute with small constants only.",
        "",
        "A file for another target contains only standard operators and no functions, in the oldest opset that",
        "represents the model. Constants are folded, 16-bit weights become float32, and nodes without effect are",
        "removed. If a target does not support a node, the conversion fails before anything is written, and the error",
        "names the layer, the reason and the remedy. Targets with static shapes need `--input-shape`. `specops inspect",
        "MODEL.xml --target NAME` counts the nodes that a target supports.",
        "",
        "With `--opset 23` or newer, RMS normalizations and rotary embeddings are single nodes (RMSNormalization,",
        "RotaryEmbedding), for `standard` and without a target. For `standard`, softmax attention is a single node, too",
        "(Attention). Swish is a node at opset 24: ONNX Runtime 1.32 has no kernel of it and expands it.",
        "",
    ]
    yield from table(
        ("target", "program", "opsets", "needs", "source of its limits", "next step"), map(_target_row, TARGETS.values())
    )
    yield from [
        "",
        "Files for ONNX Runtime's execution providers (`qnn`, `webgpu`, `coreml`, `directml`) may contain operators that",
        "the device lacks. ONNX Runtime computes them on the CPU. `inspect --target` counts them. `coreml`, `directml` and",
        "`tensorrt` follow published lists. `tflite`, `rknn` and `tinygrad` get the spellings that other engines need. None",
        "of these six has been measured.",
        "",
        "## Simplifiers",
        "",
        "On 117 networks of tests/conformance and of NNCF, onnxslim (0.1.98) changes 14,070 nodes to 14,062. 15 files",
        "have fewer nodes afterwards. onnxsim (0.8.1) was run on ten of them. `python -m",
        "tests.conformance.targets.simplifiers FOLDER FILE...` counts the nodes. They remove or replace the following:",
        "",
        "- Cast, Mul, Sub, Reshape and Transpose of weights that the model stores in 16 bits or fewer. The simplified file",
        "  contains the weights in float32, at least twice as large. ONNX Runtime computes these nodes once, when",
        "  it loads the file. A target other than `onnxruntime` gets the computed weights.",
        "- Nodes with constant inputs whose results have more than 4,096 elements, such as the mask of an image, or more",
        "  than 65,536, if they are larger than the inputs, such as an Expand of a number to an image.",
        "- MatMul and Add of tensors of three or more dimensions become Reshape, Gemm and Reshape, mostly more nodes than",
        "  before. ONNX Runtime does the same when it loads a file.",
        "- onnxsim: MatMuls of the same input become one MatMul and a Split, which copies the results.",
        "",
        "## Incorrect results",
        "",
        "These programs load the following forms of operators, but their results differ from ONNX's definition. Such a form",
        "is an error. `python -m tests.conformance.targets.operations FOLDER CONSUMER` found them. No target",
        "guarantees NaN, infinities, integers beyond 2^31, or integers that wrap in a narrower type.",
        "",
    ]
    yield from table(("target", "operator", "form"), _limits())
    yield from [
        "",
        "## Measured",
        "",
        "The networks are those of tests/conformance at static shapes: float, quantized and compressed networks, and",
        "networks that PyTorch also exports directly. A consumer agrees if each output is within 1e-2 of OpenVINO's, and",
        "QNN, which computes in float16, if it is within 2e-2. With QNN (its HTP, simulated on x86-64) and WebGPU (with its",
        "option `enableInt64`, on a Vulkan driver in software), the CPU computes nothing.",
        "`python -m tests.conformance.targets FOLDER --record` measures them, each consumer in a separate environment.",
        "Consumers with long compilation times ran only some of the networks. No pass was written for the held-out ones.",
        "",
    ]
    results = json.loads(_TARGET_RESULTS.read_text(encoding="utf-8"))
    versions = results.pop("versions", {})
    yield from table(
        (
            "consumer",
            "release",
            "agree",
            "held-out",
            "with a direct export",
            "direct export agrees",
            "only the direct export agrees",
        ),
        (_consumer_row(name, versions.get(name, ""), found) for name, found in sorted(results.items())),
    )
    yield ""
    yield "These networks do not agree:"
    yield ""
    yield from table(("consumer", "network", "reason"), _disagreements(results))


def _limits() -> Iterator[tuple[str, ...]]:
    for target in TARGETS.values():
        for limit in target.limits:
            yield f"`{target.name}`", ", ".join(sorted(limit.operators)), limit.reason


def _target_row(target: Target) -> tuple[str, ...]:
    needs = [*(["static shapes"] if target.static else []), *([] if target.control_flow else ["no control flow"])]
    opsets = "{} to {}".format(*target.opsets)
    return f"`{target.name}`", target.title, opsets, ", ".join([*needs, *target.spellings]), target.evidence, target.command


def _consumer_row(name: str, version: str, found: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    ours, direct = found.get("target", {}), found.get("direct", {})
    both = [network for network in direct if network in ours]
    held = [network for network in ours if network in _HELD_OUT]
    tuned = [network for network in ours if network not in _HELD_OUT]
    lost = [network for network in both if not direct[network] and ours[network]]
    return (
        name,
        version,
        f"{sum(not ours[network] for network in tuned)} of {len(tuned)}",
        f"{sum(not ours[network] for network in held)} of {len(held)}",
        f"{sum(not ours[network] for network in both)} of {len(both)}",
        f"{sum(not direct[network] for network in both)} of {len(both)}",
        ", ".join(lost) or "-",
    )


def _disagreements(results: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, found in sorted(results.items()):
        for network, reason in sorted(found.get("target", {}).items()):
            if reason:
                text = re.sub(r"/\S*/(?=\S)|\^{3,}|^raise [^|]*\||\S*(Error|error): ", "", reason)
                for old, new in (("|", "/"), ("`", "'"), ("<", "("), (">", ")"), ("*", "\\*"), ("_", "\\_")):
                    text = text.replace(old, new)
                yield name, network, " ".join(text.split())[:160]


PAGES = {
    "targets.md": targets_page,
    "old-ir.md": old_ir_page,
    "operations.md": operations_page,
    "departures.md": departures_page,
    "operators.md": operators_page,
}


def main(check: bool) -> int:
    """Write the pages; with ``check`` only report those that are out of date."""
    source = Path(converters.__file__).parents[1]
    if not check and source != ROOT:
        # An installed package may be older than this checkout.
        print(f"the pages would describe {source}: PYTHONPATH={ROOT} python docs/make.py", file=sys.stderr)
        return 1
    stale = 0
    texts = {f"docs/{name}": "\n".join(page()) + "\n" for name, page in PAGES.items()}
    texts |= {name: with_part((ROOT / name).read_text(encoding="utf-8"), part) for name, part in PARTS.items()}
    for name, text in texts.items():
        path = ROOT / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if check:
            print(f"{name} is out of date: python docs/make.py", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
            print(f"{name} written")
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
