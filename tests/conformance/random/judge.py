"""What becomes of a random model: converted and run in every form, against OpenVINO's CPU and its reference kernels."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from converters.errors import ConversionError, InternalError
from converters.openvino import convert
from converters.validation.compare import Tolerance, compare
from onnx_specops.runtime.library import has_library
from tests.conformance.check import run_model
from tests.conformance.oracle import Oracle, OracleError, Outputs
from tests.conformance.random.recipe import Recipe, build

Kind = Literal["agrees", "reference", "refused", "unjudged", "parts", "lacks", "fails", "breaks"]

FINDINGS = ("parts", "lacks", "fails", "breaks")
TOLERANCE = Tolerance(1e-3, 1e-4)
SECONDS = 60.0
"""How long OpenVINO may take for an answer."""

# Whose bodies draw other numbers than the kernels.
_DRAWN = ("RandomUniform", "Multinomial")


@dataclass(frozen=True)
class Verdict:
    """What became of a model.

    Attributes:
        kind: ``"agrees"`` with the CPU plugin; with the ``"reference"`` kernels alone; ``"refused"`` by all; ``"unjudged"``,
            for only we answer; ``"parts"`` from both; ``"lacks"``: the conversion refuses what OpenVINO runs; ``"fails"`` when
            it runs; ``"breaks"``: the converter's own mistake.
        text: more of it.
    """

    kind: Kind
    text: str = ""

    @property
    def found(self) -> bool:
        """Whether something is to be mended."""
        return self.kind in FINDINGS


def save(recipe: Recipe, path: str) -> None:
    """Write the recipe's model as IR."""
    import openvino as ov

    ov.save_model(build(recipe), path, compress_to_fp16=False)


def judge(recipe: Recipe, oracle: Oracle, *, python: bool = False) -> Verdict:
    """The verdict on a recipe's model; ``python``: whether its Python kernels are to be run, too."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        try:
            oracle.ask(save, recipe, str(path))
        except OracleError as error:
            return Verdict("refused", f"OpenVINO cannot build it: {error}")
        drawn = any(layer.operation in _DRAWN for layer in recipe.layers())
        return judge_file(path, recipe.arrays(), oracle, python=python, drawn=drawn)


def judge_file(
    path: Path, arrays: Sequence[np.ndarray], oracle: Oracle, *, python: bool = False, drawn: bool = False
) -> Verdict:
    """The verdict on an IR; ``drawn``: whether its bodies draw other random numbers."""
    answers = oracle.run(path, [list(arrays)])
    cpu, reference = answers["cpu"], answers["evaluate"]
    answered = not (isinstance(cpu, OracleError) and isinstance(reference, OracleError))
    said = "" if answered else f"CPU: {cpu}\nreference: {reference}"
    target = path.with_suffix(".onnx")
    try:
        _, report = convert(path, target)
    except InternalError as error:
        return Verdict("breaks", str(error))
    except ConversionError as error:
        return Verdict("lacks", str(error)) if answered else Verdict("refused", f"{error}\n{said}")
    except Exception as error:
        return Verdict("breaks", f"{type(error).__name__}: {error}")
    kinds = []
    for form in _forms(bool(report.custom_operators), bool(report.without_body), python):
        try:
            got = run_model(target, [list(arrays)], form)
        except Exception as error:
            text = f"kernels={form!r}: {type(error).__name__}: {error}"
            kinds.append(Verdict("fails", text) if answered else Verdict("refused", f"{text}\n{said}"))
            continue
        kinds.append(_verdict(got, cpu, reference, form, values=not (drawn and form == "none")))
    for kind in (*FINDINGS, "reference", "unjudged", "refused"):
        for verdict in kinds:
            if verdict.kind == kind:
                return verdict
    return kinds[0]


def _forms(custom: bool, without_body: bool, python: bool) -> list[str]:
    if not custom:
        return ["none"]
    found = ["native"] if has_library() else []
    found += [] if without_body else ["none"]
    return found + (["python"] if python or without_body else [])


def _verdict(
    got: Outputs, cpu: Outputs | OracleError, reference: Outputs | OracleError, form: str, *, values: bool
) -> Verdict:
    parted = []
    for name, answer in (("agrees", cpu), ("reference", reference)):
        if isinstance(answer, OracleError):
            parted.append(f"{name}: {answer}")
            continue
        difference = differing(got[0], answer[0], values=values)
        if not difference:
            return Verdict("agrees" if name == "agrees" else "reference", "\n".join(parted))
        parted.append(f"{'CPU' if name == 'agrees' else 'reference'}: {difference}")
    text = f"kernels={form!r}\n" + "\n".join(parted)
    both = isinstance(cpu, OracleError) and isinstance(reference, OracleError)
    return Verdict("unjudged" if both else "parts", text)


def differing(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], *, values: bool = True) -> str:
    """How the outputs differ; "" if they agree."""
    if len(got) != len(expected):
        return f"{len(got)} outputs instead of {len(expected)}"
    for index, (one, other) in enumerate(zip(got, expected, strict=True)):
        found = compare(one, other, TOLERANCE, random=not values)
        if not found.agrees:
            return f"output {index}: {_shown(one)} instead of {_shown(other)}; {found}"
    return ""


def _shown(array: np.ndarray) -> str:
    return " ".join(np.array2string(array, threshold=20, separator=", ").split()) + f" {list(array.shape)}"
