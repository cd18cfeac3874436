"""The comparison of a random model, in every form, with OpenVINO's CPU plugin and reference kernels."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import onnxruntime as ort

import onnx_specops
from converters.errors import ConversionError, InternalError
from converters.openvino.runtime.inference import EXACT, infer
from converters.openvino.runtime.process import OpenVINOTimeout
from converters.passes.finish import Quantized
from converters.validation.compare import Tolerance, compare
from converters.validation.ort_values import run_session
from onnx_specops.runtime.library import has_library
from tests.conformance.changed import infer_changed
from tests.conformance.oracle import Oracle, OracleError, Outputs
from tests.conformance.random.options import CLOSE, DEFAULT, Options
from tests.conformance.random.recipe import Layer, Recipe, build
from tests.conformance.random.targeted import converted

Kind = Literal["agrees", "reference", "refused", "unjudged", "parts", "lacks", "fails", "breaks"]

FINDINGS = ("parts", "lacks", "fails", "breaks")
SECONDS = 4.0
"""The time limit of OpenVINO; the models are tiny."""

# Operators whose bodies draw different numbers than the kernels.
_DRAWN = ("RandomUniform", "Multinomial")


@dataclass(frozen=True)
class Verdict:
    """The result of a model.

    Attributes:
        kind: ``"agrees"``: with the CPU plugin, or with the reference kernels if that rejects the model; ``"reference"``:
            with the reference kernels only; ``"parts"``: differs from both; ``"refused"``: by all; ``"unjudged"``: only we
            have a result; ``"lacks"``: the conversion rejects a model that OpenVINO runs; ``"fails"``: the converted model
            fails; ``"breaks"``: an internal error of the converter.
        text: details.
        unseconded: whether only one of OpenVINO's implementations has a result.
        apart: the outputs that differ from the CPU plugin's; ``None`` if it or we have no result.
    """

    kind: Kind
    text: str = ""
    unseconded: bool = False
    apart: frozenset[int] | None = None

    @property
    def found(self) -> bool:
        """Whether it is certainly a mistake."""
        return self.kind in FINDINGS

    @property
    def suspect(self) -> bool:
        """Whether there is a difference to explain."""
        return self.found or self.kind == "reference"


# Without low-precision transformations, whose integers differ from the numbers of FakeQuantize. With two threads: more cost
# more than such a model, and with one the plugin hides the failure of a layer and returns uninitialized memory.
SETTINGS = {**EXACT, "INFERENCE_NUM_THREADS": "2"}


def save(recipe: Recipe, path: str) -> None:
    """Write the recipe's model as IR."""
    import openvino as ov

    ov.save_model(build(recipe), path, compress_to_fp16=False)


def save_and_infer(recipe: Recipe, path: str) -> Outputs:
    """Write the recipe's model as IR; return the CPU plugin's result."""
    save(recipe, path)
    return infer(path, [recipe.arrays()], settings=SETTINGS).outputs


def is_drawn(recipe: Recipe) -> bool:
    """Return whether a layer draws random numbers that differ between its body and its kernel."""
    return bool(drawn(recipe))


def drawn(recipe: Recipe) -> frozenset[int]:
    """Return the results that depend on random numbers that differ between bodies and kernels."""
    places = {
        k for k, n in enumerate(recipe.nodes) if isinstance(n, Layer) and any(d.operation in _DRAWN for d in n.layers())
    }
    after = recipe.needing(places)
    return frozenset(k for k, (place, _) in enumerate(recipe.results) if place in after)


class Judge:
    """Judges a model and its reductions, with one process for OpenVINO.

    Args:
        oracle: the process.
        options: the conversion options.
    """

    def __init__(self, oracle: Oracle, options: Options = DEFAULT) -> None:
        self.oracle, self.options = oracle, options
        self._silent: dict[str, OracleError] = {}
        self._folder = tempfile.TemporaryDirectory()
        self._last: tuple[Recipe, Answers] | None = None

    def answers(self, recipe: Recipe) -> Answers:
        """Return OpenVINO's results for a recipe's model, whose file exists until the next call.

        Raises:
            OracleError: OpenVINO cannot build it.
        """
        if self._last is None or self._last[0] is not recipe:
            path = Path(self._folder.name) / "model.xml"
            path.unlink(missing_ok=True)
            self._last = recipe, Answers(self, path, recipe.arrays())
            self._last[1].build(recipe)
        return self._last[1]

    def answer(self, name: str, path: Path, arrays: Sequence[np.ndarray]) -> Outputs | OracleError:
        """Return the result of the CPU plugin (``"cpu"``) or the reference kernels (``"evaluate"``), as in `Oracle.run`.

        After a timeout that implementation is not used again, because smaller models would time out, too. After a crash it
        runs once more in a new process, because kernels that write out of bounds corrupt the memory of later requests.
        """
        if name in self._silent:
            return self._silent[name]
        answer = self._asked(name, path, arrays)
        return self.decoded(name, self._asked(name, path, arrays) if crashed(answer) else answer)

    def _asked(self, name: str, path: Path, arrays: Sequence[np.ndarray]) -> Outputs | OracleError:
        return self.oracle.run(path, [list(arrays)], names=(name,), settings=SETTINGS)[name]

    def decoded(self, name: str, answer: Outputs | OracleError) -> Outputs | OracleError:
        """Return the result unchanged; after a timeout, no further ones are requested."""
        if isinstance(answer, OpenVINOTimeout):
            self._silent[name] = answer
        return answer

    def is_silent(self, name: str) -> bool:
        """Return whether that implementation is not used any more."""
        return name in self._silent

    def judge(self, recipe: Recipe, *, python: bool = False) -> Verdict:
        """Return the verdict on a recipe's model; ``python``: whether to run its Python kernels, too."""
        try:
            answers = self.answers(recipe)
        except OracleError as error:
            return Verdict("refused", f"OpenVINO cannot build it: {error}")
        verdict = _judged(answers, self.options, python=python, drawn=drawn(recipe))
        if verdict.kind == "lacks" and "rank" in verdict.text and str(recipe.ranked()) != str(recipe):
            # OpenVINO's plugin does not support unknown ranks either; it received the values' shapes.
            return self.judge(recipe.ranked(), python=python)
        return verdict

    def judge_file(self, path: Path, arrays: Sequence[np.ndarray], *, python: bool = False) -> Verdict:
        """Return the verdict on an IR without bodies that draw random numbers."""
        return _judged(Answers(self, path, arrays), self.options, python=python)

    def openvinos(self, recipe: Recipe, name: str = "cpu") -> list[np.ndarray] | OracleError:
        """Return OpenVINO's result for a recipe's model, as in `answer`."""
        try:
            answer = self.answers(recipe)[name]
        except OracleError as error:
            return error
        return answer if isinstance(answer, OracleError) else answer[0]

    def ours(self, recipe: Recipe, quantized: Quantized | None = None) -> list[list[np.ndarray]]:
        """Return our results for a model that runs, in every form."""
        path = self.answers(recipe).path
        target = path.with_suffix(".onnx")
        chosen = self.options.arguments | ({} if quantized is None else {"quantized": quantized})
        report = converted(path, target, recipe.arrays(), chosen)
        forms = _forms(bool(report.custom_operators), bool(report.without_body), python=False)
        return [_run(target, recipe.arrays(), form) for form in forms]

    def runnable(self, recipe: Recipe) -> Recipe | None:
        """Return the recipe, or the part of it that OpenVINO runs; ``None`` if there is none."""
        for _ in range(_MENDED):
            try:
                answers = self.answers(recipe)
                if not isinstance(answers["cpu"], OracleError) or not isinstance(answers["evaluate"], OracleError):
                    return recipe
                said = str(answers["cpu"])
            except OracleError as error:
                said = str(error)
            recipe = _mended(recipe, said)
            if not recipe.results:
                return None
        return None


def crashed(answer: Outputs | list[np.ndarray] | OracleError) -> bool:
    """Return whether OpenVINO's process ended without a result."""
    return isinstance(answer, OracleError) and "crashed" in str(answer)


def _judged(answers: Answers, options: Options, *, python: bool, drawn: Collection[int] = ()) -> Verdict:
    """Return the verdict on the IR of the results; ``drawn``: the outputs that depend on random numbers of bodies."""
    target = answers.path.with_suffix(".onnx")
    try:
        report = converted(answers.path, target, answers.arrays, options.arguments)
    except InternalError as error:
        return Verdict("breaks", str(error))
    except ConversionError as error:
        lacking = "opset|does not support" if "target" in options.arguments else "opset"
        if options.may_lack and all(re.search(lacking, problem.message) for problem in error.problems):
            return Verdict("refused", f"{options.name}: {error}")
        return answers.without("lacks", str(error))
    except Exception as error:
        return Verdict("breaks", f"{type(error).__name__}: {error}")
    if report.verified is not None and report.verified.differences:
        return Verdict("parts", "\n".join(map(str, report.verified.differences)))
    verdicts = []
    for form in _forms(bool(report.custom_operators), bool(report.without_body), python):
        try:
            got = _run(target, answers.arrays, form)
        except Exception as error:
            verdicts.append(answers.without("fails", f"kernels={form!r}: {type(error).__name__}: {error}"))
        else:
            verdicts.append(answers.verdict(got, form, unseen=drawn if form == "none" else ()))
    gravest = min(verdicts, key=lambda verdict: _GRAVEST.index(verdict.kind))
    apart = [verdict.apart for verdict in verdicts if verdict.apart is not None]
    return replace(gravest, apart=frozenset().union(*apart) if len(apart) == len(verdicts) else None)


_GRAVEST: tuple[Kind, ...] = ("breaks", "parts", "lacks", "fails", "reference", "unjudged", "refused", "agrees")
# The names in OpenVINO's messages for layers without a name.
_MEANT = {"_f32_u1 of type Convert": "BinaryConvolution"}
# The maximum number of reductions until OpenVINO runs a model.
_MENDED = 8


def _mended(recipe: Recipe, said: str) -> Recipe:
    """Return a model that OpenVINO may run: with known ranks and shapes, without the layer in its message, or the first
    half.
    """
    places = [int(name) for name in re.findall(r"\bv(\d+)\b", said)]
    named = next((k for k in places if k < len(recipe.nodes) and isinstance(recipe.nodes[k], Layer)), None)
    for words, operation in _MEANT.items():
        if words in said:
            named = next((k for k, n in enumerate(recipe.nodes) if isinstance(n, Layer) and n.operation == operation), named)
    if named is None or "dynamic" in said or "unsupported" in said:
        for known in (recipe.ranked(), recipe.static()):
            if str(known) != str(recipe):
                return known
    if named is not None:
        return recipe.without(named)
    return recipe.first(sum(isinstance(node, Layer) for node in recipe.nodes) // 2)


class Answers:
    """OpenVINO's results for a model, computed on first use.

    Args:
        judge: the judge.
        path: the model.
        arrays: its inputs.
    """

    def __init__(self, judge: Judge, path: Path, arrays: Sequence[np.ndarray]) -> None:
        self._judge, self.path, self.arrays = judge, path, arrays
        self._known: dict[str, Outputs | OracleError] = {}

    def build(self, recipe: Recipe) -> None:
        """Write the recipe's model and infer it in one request; raise `OracleError` if it cannot be built."""
        if self._judge.is_silent("cpu"):
            self._judge.oracle.ask(save, recipe, str(self.path))
            return
        try:
            self._known["cpu"] = self._judge.oracle.ask(save_and_infer, recipe, str(self.path))
        except OracleError as error:
            if not self.path.exists():
                raise
            self._known["cpu"] = (
                self._judge.answer("cpu", self.path, self.arrays) if crashed(error) else self._judge.decoded("cpu", error)
            )

    def __getitem__(self, name: str) -> Outputs | OracleError:
        if name not in self._known:
            self._known[name] = self._judge.answer(name, self.path, self.arrays)
        return self._known[name]

    def without(self, kind: Kind, text: str) -> Verdict:
        """Return the verdict if we have no result: of the given kind if OpenVINO has one."""
        refusals = [f"{name}: {a}" for name in ("cpu", "evaluate") if isinstance(a := self[name], OracleError)]
        if len(refusals) < 2:
            return Verdict(kind, text, unseconded=len(refusals) == 1)
        return Verdict("refused", "\n".join([text, *refusals]))

    def verdict(self, got: Sequence[np.ndarray], form: str, *, unseen: Collection[int]) -> Verdict:
        """Return the verdict on our result, except the outputs ``unseen``."""
        said = [f"kernels={form!r}"]
        refused, apart = 0, None
        for name in ("cpu", "evaluate"):
            answer = self[name]
            if isinstance(answer, OracleError):
                refused += 1
                said.append(f"{name}: {answer}")
                continue
            given = got
            if self._judge.options.arguments.get("precision") == "float16":
                given = [_in_range(ours, wanted) for ours, wanted in zip(got, answer[0], strict=True)]
            found = differences(given, answer[0], unseen=unseen, tolerance=self._judge.options.tolerance)
            if found and self._judge.options.rounding and not self._amplifies(name, got, answer[0], found):
                found = {}
            if name == "cpu":
                apart = frozenset(found)
            if not found:
                kind: Kind = "agrees" if name == "cpu" or refused else "reference"
                text = "\n".join(said) if kind == "reference" else ""
                return Verdict(kind, text, unseconded=refused == 1, apart=apart)
            said.append(f"{name}: {next(iter(found.values()))}")
        return Verdict("unjudged" if refused == 2 else "parts", "\n".join(said), unseconded=refused == 1, apart=apart)

    def _amplifies(self, name: str, got: Outputs, expected: Outputs, found: Collection[int]) -> bool:
        """Return whether we differ from OpenVINO by several times more than its results change for rounded inputs.

        For float16 constants are rounded, too, because a FakeQuantize may remove an input's rounding.
        """
        rounding = self._judge.options.rounding
        allowed = [0.0] * len(expected)
        rng = np.random.default_rng(0)
        answers = (
            self._judge.answer(name, self.path, [_rounded(array, rounding, rng) for array in self.arrays])
            for _ in range(_ROUNDED)
        )
        for answer in answers:
            if isinstance(answer, OracleError):
                return True
            allowed = [max(a, distance(*pair)) for a, *pair in zip(allowed, answer[0], expected, strict=True)]
        if name == "cpu" and "precision" in self._judge.options.arguments:
            for seed in range(_ROUNDED):
                try:
                    moved = self._judge.oracle.ask(infer_changed, str(self.path), self.arrays, rounding, seed, SETTINGS)
                except OracleError:
                    break
                allowed = [max(a, distance(*pair)) for a, *pair in zip(allowed, moved, expected, strict=True)]
        # A result is rounded itself.
        rounded = [rounding * float(np.abs(_finite(array)).max(initial=0.0)) for array in expected]
        return any(distance(got[k], expected[k]) > _TIMES * allowed[k] + rounded[k] for k in found)


_ROUNDED, _TIMES = 4, 12.0


def _in_range(ours: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return our float16 result with the expected values where float16 overflows.

    At the ends of its range, or infinite, they are as documented.
    """
    if ours.dtype.kind != "f" or ours.shape != wanted.shape:
        return ours
    largest = float(np.finfo(np.float16).max)
    beyond = (np.abs(wanted) > largest) & (np.abs(ours) >= largest) & (np.sign(ours) == np.sign(wanted))
    return np.where(beyond, wanted, ours)


def _rounded(array: np.ndarray, relative: float, rng: np.random.Generator) -> np.ndarray:
    if array.dtype.kind not in "fV":
        return array
    return (array.astype(np.float64) * (1 + relative * rng.choice([-1, 1], array.shape))).astype(array.dtype)


def _finite(array: np.ndarray) -> np.ndarray:
    """Return the finite numbers of an array."""
    numbers = array.astype(np.float64)
    return numbers[np.isfinite(numbers)]


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference; infinite for different shapes, or if only one is finite."""
    if one.shape != other.shape:
        return np.inf
    a, b = one.astype(np.float64), other.astype(np.float64)
    if (np.isfinite(a) != np.isfinite(b)).any():
        return np.inf
    return float(np.abs(np.where(np.isfinite(a), a - b, 0)).max(initial=0.0))


def _forms(custom: bool, without_body: bool, python: bool) -> list[str]:
    if not custom:
        return ["none"]
    found = ["native"] if has_library() else []
    found += [] if without_body else ["none"]
    return found + (["python"] if python or without_body else [])


def _run(path: Path, arrays: Sequence[np.ndarray], kernels: str) -> list[np.ndarray]:
    """Return our result; with one thread, because several processes share the cores."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnx_specops.InferenceSession(str(path), options, kernels=kernels)
    return run_session(session, {port.name: array for port, array in zip(session.get_inputs(), arrays, strict=True)})


def differing(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: Tolerance = CLOSE) -> str:
    """Return the differences of the outputs; "" if they agree."""
    return next(iter(differences(got, expected, tolerance=tolerance).values()), "")


def differences(
    got: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    *,
    unseen: Collection[int] = (),
    tolerance: Tolerance = CLOSE,
) -> dict[int, str]:
    """Return the outputs that differ, and how, except those ``unseen``."""
    if len(got) != len(expected):
        return dict.fromkeys(range(len(expected)), f"{len(got)} outputs instead of {len(expected)}")
    found = {}
    for index, (one, other) in enumerate(zip(got, expected, strict=True)):
        compared = compare(one, other, tolerance)
        if index not in unseen and not compared.agrees:
            found[index] = f"output {index}: {_shown(one)} instead of {_shown(other)}; {compared}"
    return found


def _shown(array: np.ndarray) -> str:
    return " ".join(np.array2string(array, threshold=20, separator=", ").split()) + f" {list(array.shape)}"
