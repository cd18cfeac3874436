"""Classification: the most likely classes, multiple labels, or a hierarchy of labels.

Source: Model API, ``models/classification.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.model_api.boxes import names_of, where
from converters.model_api.wrapper import Results, Wrapped
from onnx_specops.building import Builder, Value

_FLOAT, _INT64, _STRING = ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.STRING
_XAI = ("saliency_map", "feature_vector")


def classification(model: Wrapped) -> Results:
    """Emit ``labels`` int64 and ``scores`` float32 of the best classes (``topk``) or of all above ``confidence_threshold``.

    ``label_names`` are present if the model has names, and ``raw_scores`` with ``output_raw_scores``. ``feature_vector`` and
    ``saliency_map`` are unchanged. For a hierarchy, ``saliency_map`` is in the order of ``labels``.
    """
    op, config = model.op, model.config
    scored = [name for name in model.outputs if name not in _XAI]
    if not scored:
        raise Malformed("it has no output of scores")
    logits = op.Cast(model.outputs[scored[0]], to=_FLOAT)
    shape = model.outputs[scored[0]].dims or [None]
    if len(model.outputs) == 1 and config.labels and len(shape) in (2, 4) and shape[1] == len(config.labels) + 1:
        config = config.stating(labels=" ".join(["other", *config.labels]))
        model = replace(model, config=config)
    results: Results = {name: model.outputs[name] for name in _XAI if name in model.outputs}
    if config.flag("multilabel"):
        scores = op.Sigmoid(op.Reshape(logits, [-1]))
        chosen = where(op, op.Greater(scores, np.float32(config.number("confidence_threshold", 0.5))))
        results |= {"labels": chosen, "scores": op.Gather(scores, chosen, axis=0), "label_names": _names(model, chosen)}
        raw = scores
    elif config.flag("hierarchical"):
        raw = _hierarchy(model, op.Reshape(logits, [-1]), results)
    else:
        raw = _probabilities(op, op.Reshape(logits, [-1]))
        most = op.Min(op.Shape(raw), [config.whole("topk", 1)])
        scores, labels = op.TopK(raw, most, axis=0, outputs=2)
        results |= {"labels": labels, "scores": scores, "label_names": _names(model, labels)}
    if config.flag("output_raw_scores"):
        results["raw_scores"] = raw
    return results


def _names(model: Wrapped, labels: Value) -> Value | None:
    return names_of(model.op, labels, model.config)


def _probabilities(op: Builder, logits: Value) -> Value:
    """Return the softmax of a vector, or the vector itself if its elements are from 0 to 1 with the sum 1."""
    lowest, greatest = op.ReduceMin(logits, keepdims=0), op.ReduceMax(logits, keepdims=0)
    inside = op.And(op.GreaterOrEqual(lowest, np.float32(0)), op.LessOrEqual(greatest, np.float32(1)))
    distance = op.Abs(op.Sub(op.ReduceSum(logits, keepdims=0), np.float32(1)))
    ready = op.And(inside, op.LessOrEqual(distance, np.float32(2e-5)))  # numpy.allclose(sum, 1, atol=1e-5): rtol is 1e-5
    return op.Where(ready, logits, op.Softmax(logits, axis=0))


def _hierarchy(model: Wrapped, logits: Value, results: Results) -> Value:
    """Return the labels whose ancestors in the tree are also selected, with the best of each group, ordered by name."""
    op, config = model.op, model.config
    config.text("hierarchical_postproc", "greedy", ("greedy", "probabilistic"))  # both select the same labels
    try:
        stated = json.loads(config.text("hierarchical_config"))
        heads = stated["cls_heads_info"]
        numbers: Mapping[str, int] = heads["label_to_idx"]
        groups: list[list[str]] = heads["all_groups"]
        multiclass, multilabel = int(heads["num_multiclass_heads"]), int(heads["num_multilabel_classes"])
        ranges = [heads["head_idx_to_logits_range"][str(head)] for head in range(multiclass)]
        single = int(heads["num_single_label_classes"])
        parents = dict(stated["label_tree_edges"])
        order = sorted(numbers)
        ancestors = _ancestors(order, parents)
        places = {name: place for place, name in enumerate(order)}
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed(f"its hierarchical_config does not have Model API's form: {error!r}") from error
    probabilities, chosen, scores = [], [], []
    for group, (begin, end) in zip(groups, ranges, strict=False):
        part = op.Softmax(op.Slice(logits, [int(begin)], [int(end)]), axis=0)
        probabilities.append(part)
        best = op.Equal(op.Range(0, len(group), 1), op.ArgMax(part, axis=0, keepdims=0))
        chosen.append(_spread(op, best, [places[name] for name in group], len(order)))
        scores.append(_spread(op, op.Where(best, part, np.float32(0)), [places[name] for name in group], len(order)))
    if multilabel:
        part = op.Sigmoid(op.Slice(logits, [single], [2**31 - 1]))
        probabilities.append(part)
        names = [group[0] for group in groups[multiclass:]]
        above = op.Greater(part, np.float32(config.number("confidence_threshold", 0.5)))
        chosen.append(_spread(op, above, [places[name] for name in names], len(order)))
        scores.append(_spread(op, op.Where(above, part, np.float32(0)), [places[name] for name in names], len(order)))
    candidates = op.Cast(op.Max(*(op.Cast(value, to=_FLOAT) for value in chosen)), to=_FLOAT)
    # A label is selected if no ancestor is missing.
    missing = op.MatMul(ancestors.astype(np.float32), op.Sub(np.float32(1), candidates))
    kept = where(op, op.And(op.Greater(candidates, np.float32(0)), op.Equal(missing, np.float32(0))))
    if (maps := results.get("saliency_map")) is not None:
        own = {name: place for place, name in enumerate(heads.get("class_to_group_idx") or ())}
        if missed := [name for name in config.labels if name not in own]:
            raise Malformed(
                f"its hierarchical_config has no class_to_group_idx of {missed[0]}, which its saliency map requires"
            )
        results["saliency_map"] = op.Gather(maps, np.array([own[name] for name in config.labels], np.int64), axis=1)
    table = np.array([numbers[name] for name in order], np.int64)
    results |= {
        "labels": op.Gather(table, kept, axis=0),
        "scores": op.Gather(op.Max(*scores), kept, axis=0),
        "label_names": op.Gather(op.const(np.array(order, object)), kept, axis=0),
    }
    return op.Concat(*probabilities, axis=0)


def _ancestors(order: list[str], parents: Mapping[str, str]) -> np.ndarray:
    """Return which labels (columns) are ancestors of which (rows)."""
    places = {name: place for place, name in enumerate(order)}
    table = np.zeros((len(order), len(order)), bool)
    for name in order:
        seen, parent = {name}, parents.get(name)
        while parent is not None:
            if parent in seen:
                raise ValueError(f"{parent} is its own predecessor")
            seen.add(parent)
            table[places[name], places[parent]] = True
            parent = parents.get(parent)
    return table


def _spread(op: Builder, values: Value, places: list[int], size: int) -> Value:
    """Return a vector of ``size`` numbers with the values at the positions, and 0 elsewhere."""
    zeros: Any = np.zeros(size, np.float32)
    return op.ScatterElements(zeros, op.const(np.array(places, np.int64)), op.Cast(values, to=_FLOAT), axis=0)
