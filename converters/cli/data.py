"""Results as plain data, for ``--json``. docs/command.md describes all fields."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

import onnx_specops
from converters.errors import Problem, Remark
from onnx_specops.runtime.library import description, has_library

if TYPE_CHECKING:
    from converters.inspection import Inspection
    from converters.passes.verification import Verifier
    from converters.report import Report
    from converters.source import CoveredOperation
    from converters.targeting import TargetSupport
    from converters.validation.compare import Comparison
    from converters.validation.distributions import Distribution
    from converters.validation.times.measure import Times
    from converters.validation.validate import LayerDifference, RuntimeResult, Validation
    from onnx_specops.forms import Forms


def conversion(report: Report) -> dict[str, Any]:
    """Return a conversion's report."""
    return {
        "model": str(report.path),
        "layers": report.layers,
        "nodes": report.nodes,
        "custom_operators": report.custom_operators,
        "without_body": report.without_body,
        "contrib_operators": report.contrib_operators,
        "opset": report.opset,
        "inlined": report.inlined,
        "clamped": report.clamped,
        "assumptions": report.assumptions,
        "without_kernel": report.without_kernel,
        "unranked": report.unranked,
        "weights": report.weights,
        "weights_bytes": report.weights_bytes,
        "seconds": report.seconds,
        "passed_over": [remark(found) for found in report.passed_over],
        "verified": None if report.verified is None else verified(report.verified),
    }


def verified(verifier: Verifier) -> dict[str, Any]:
    """Return the result of the evaluation of rewrites."""
    return {
        "verified": dict(verifier.verified),
        "differences": [asdict(difference) for difference in verifier.differences],
        "skipped": dict(verifier.skipped),
    }


def remark(found: Remark) -> dict[str, Any]:
    """Return a remark about something that is ignored."""
    first = found.first
    return {
        "message": found.message,
        "count": found.count,
        "line": first.line,
        "layer_name": first.layer_name,
        "layer_type": first.layer_type,
        "layer_id": first.layer_id,
    }


def problem(found: Problem) -> dict[str, Any]:
    """Return a problem."""
    return {
        "message": found.message,
        "fault": found.fault.value,
        "file": found.file,
        "line": found.line,
        "layer_name": found.layer_name,
        "layer_type": found.layer_type,
        "layer_id": found.layer_id,
        "remedy": found.remedy,
    }


def inspection(inspection: Inspection) -> dict[str, Any]:
    """Return an inspection, with the content of the model."""
    return {
        "model": str(inspection.path),
        "layers": [
            {"type": r.type, "version": r.version, "count": r.count, "becomes": r.becomes, "convertible": r.convertible}
            for r in inspection.rows
        ],
        "problems": [problem(found) for found in inspection.problems],
        "passed_over": [remark(found) for found in inspection.passed_over],
        "contents": inspection.contents.as_data(),
        "weights_missing": inspection.weights_missing,
    }


def taken(taken: TargetSupport) -> dict[str, Any]:
    """Return the nodes of a model that a target supports."""
    return {
        "target": taken.target.name,
        "opset": taken.opset,
        "taken": dict(taken.taken),
        "untaken": dict(taken.untaken),
        "problems": [problem(found) for found in taken.problems],
        "assumptions": dict(taken.assumptions),
    }


def coverage(covered: Sequence[CoveredOperation], release: str) -> dict[str, Any]:
    """Return OpenVINO's operations and how the converter supports them."""
    return {
        "operations": [
            {
                "name": c.operation.name,
                "number": c.operation.number,
                "version": c.operation.version,
                "rule": c.has_rule,
                "becomes": c.becomes,
                "custom_operators": list(c.custom),
                "cases": c.cases,
                "passed": c.passed,
                "restrictions": c.restrictions,
            }
            for c in covered
        ],
        "total": len(covered),
        "with_rule": sum(c.has_rule for c in covered),
        "passing": sum(c.passes for c in covered),
        "compared_with": release,
    }


def validation(validation: Validation) -> dict[str, Any]:
    """Return a validation."""
    return {
        "model": str(validation.path),
        "baseline": validation.baseline,
        "agrees": validation.agrees,
        "runtimes": [_runtime(result) for result in validation.results],
        "first_differences": [{**_layer(d), **comparison(d.comparison)} for d in validation.first_differences],
        "layers_compared": validation.layers_compared,
        "layers": [{**_layer(d), **comparison(d.comparison)} for d in validation.layers],
        "worst": [{**_layer(found.of), **distribution(found)} for found in validation.worst],
        "times": None if validation.times is None else times(validation.times),
        "guessed": validation.guessed,
        "notes": validation.notes,
        "openvino_in_low_precision": None if (low := validation.shipped) is None else _runtime(low),
        "samples": validation.samples,
        "sample": validation.sample or None,
        "samples_apart": validation.samples_apart,
    }


def _runtime(result: RuntimeResult) -> dict[str, Any]:
    return {
        "runtime": result.runtime,
        "agrees": result.agrees,
        "skipped": result.skipped or None,
        "error": result.error or None,
        "seconds": result.seconds,
        "outputs": {name: comparison(c) for name, c in result.outputs.items()},
    }


def _layer(found: LayerDifference) -> dict[str, Any]:
    return {
        "runtime": found.runtime,
        "layer_id": found.layer_id,
        "layer_name": found.layer_name,
        "layer_type": found.layer_type,
        "line": found.line,
        "output": found.output,
    }


def distribution(found: Distribution[Any]) -> dict[str, Any]:
    """Return the histograms of a tensor."""
    return {
        "edges": found.edges,
        "expected": found.expected,
        "got": found.got,
        "error_edges": found.error_edges,
        "errors": found.errors,
        "left_out": found.left_out,
    }


def times(found: Times) -> dict[str, Any]:
    """Return the times of a model's layers.

    The keys of the baseline begin with its name. The keys of other releases, which begin with "openvino", are aliases.
    """
    keys = dict.fromkeys((found.runtime, "openvino"))
    return {
        "kernels": found.kernels,
        **dict.fromkeys(keys, found.baseline),
        "onnxruntime": found.onnxruntime,
        **{f"{key}_other": found.baseline_other for key in keys},
        "onnxruntime_other": found.onnxruntime_other,
        "problem": found.problem,
        "layers": [
            {
                "layers": [
                    {"layer_id": layer.id, "layer_name": layer.name, "layer_type": layer.type} for layer in row.layers
                ],
                **dict.fromkeys(keys, row.baseline),
                "onnxruntime": row.onnxruntime,
                **{f"{key}_types": row.baseline_types for key in keys},
                "onnxruntime_types": row.onnxruntime_types,
            }
            for row in found.layers
        ],
    }


def comparison(found: Comparison) -> dict[str, Any]:
    """Return a comparison of two arrays."""
    return {
        "shape": list(found.shape),
        "type": found.element_type,
        "max_absolute_error": _number(found.max_absolute),
        "max_relative_error": _number(found.max_relative),
        "relative_l2": _number(found.relative_l2),
        "exact": found.exact,
        "beyond": found.beyond,
        "agrees": found.agrees,
        "note": found.note,
    }


def operators(table: Sequence[Forms]) -> dict[str, Any]:
    """Return the domain's operators."""
    return {
        "domain": onnx_specops.DOMAIN,
        "version": onnx_specops.OPSET_VERSION,
        "library": _library(),
        "operators": [asdict(forms) for forms in table],
    }


def _library() -> dict[str, Any] | None:
    """Return the build options of the native library and its choices for this processor; ``None`` without a library."""
    if not has_library():
        return None
    said = description()
    return {key: said.get(key) for key in ("vectors", "clones", "products", "convolutions", "regular_expressions")}


def array(values: np.ndarray) -> dict[str, Any]:
    """Return an array with its elements in one list, in row-major order."""
    if values.dtype.kind in "OUS":
        return {"shape": list(values.shape), "type": "string", "values": [str(v) for v in values.reshape(-1).tolist()]}
    plain = values.astype(np.float64) if values.dtype.kind == "V" else values
    return {
        "shape": list(values.shape),
        "type": str(values.dtype),
        "values": [_number(v) for v in plain.reshape(-1).tolist()],
    }


def _number(value: Any) -> Any:
    """Return a number, or the text "nan", "inf" or "-inf" if JSON cannot represent it."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
