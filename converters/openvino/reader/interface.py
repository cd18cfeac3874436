"""Selection of a model's outputs, and new names for its inputs and outputs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from converters.errors import ConversionError, Fault, Problem
from converters.openvino.reader.graph import InputPort, Layer, Model, OutputPort
from converters.openvino.reader.tensor_names import friendly_name, input_aliases, set_names
from converters.suggestions import did_you_mean


def choose(model: Model, outputs: Sequence[str] = (), names: Mapping[str, str] | None = None) -> None:
    """Select the outputs of a model, and rename its inputs and outputs.

    Layers and inputs that no selected output needs are removed. A variable that an output needs keeps its assignments.

    Args:
        model: the model; changed in place.
        outputs: the values that become the model's outputs, in this order: outputs by any of their names, or values of
            layers by tensor name or friendly name. The friendly name is followed by ".0", ".1", ... (or ":0", ":1", ...) if
            the layer has several outputs. A text that is not a name may contain several, separated by commas. An empty
            sequence keeps the model's outputs.
        names: old name -> new name of inputs and of the resulting outputs.

    Raises:
        ConversionError: a name is unknown, ambiguous or already used.
    """
    problems: list[Problem] = []
    if outputs:
        known = _values(model)
        ports = [_find(model, name, known, problems) for text in outputs for name in _split(text, known)]
        if not problems:
            _set_outputs(model, [port for port in ports if port is not None])
    for old, new in (names or {}).items():
        _rename(model, old, new, problems)
    if not problems:
        set_names(model)
        if names:
            _check_names(model, set(names.values()), problems)
    if problems:
        raise ConversionError.of(problems)


def described(model: Model) -> str:
    """Return the effect of `choose` on a model as a text for `restore`."""
    inputs = [[layer.id, model.renamed.get(layer, "")] for layer in model.parameters]
    outputs = [
        [port.layer.id, port.index, model.renamed.get(layer, "")]
        for layer, port in ((layer, layer.inputs[0].source) for layer in model.results)
    ]
    return json.dumps({"inputs": inputs, "outputs": outputs})


def restore(model: Model, text: str) -> None:
    """Repeat the selection that `described` returned.

    Raises:
        ValueError: the text does not fit the model.
    """
    try:
        told = json.loads(text)
        layers = {layer.id: layer for layer in model.layers}
        _set_outputs(model, [layers[id_].outputs[index] for id_, index, _ in told["outputs"]])
        model.renamed = {layers[id_]: name for id_, name in told["inputs"] if name}
        for result, (_, _, name) in zip(model.results, told["outputs"], strict=True):
            if name:
                model.renamed[result] = name
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"the model's information on its outputs does not match {model.path}: {text[:200]}") from error
    set_names(model)


def _values(model: Model) -> dict[str, list[OutputPort]]:
    """Return the values by all their names. Names of outputs come before those of other values."""
    by_name: dict[str, list[OutputPort]] = {}
    for layer, names in zip(model.results, model.output_names, strict=True):
        for name in names:
            by_name.setdefault(name, [layer.inputs[0].source])
    inner: dict[str, list[OutputPort]] = {}
    for layer in model.layers:
        for port in layer.outputs:
            indexed = [f"{layer.name}.{port.index}", f"{layer.name}:{port.index}"]
            for name in dict.fromkeys([*port.names, friendly_name(port), *indexed]):
                inner.setdefault(name, []).append(port)
    return inner | by_name


def _split(text: str, known: Mapping[str, object]) -> list[str]:
    return [text] if text in known or "," not in text else [name.strip() for name in text.split(",")]


def _find(model: Model, name: str, known: Mapping[str, list[OutputPort]], problems: list[Problem]) -> OutputPort | None:
    found = known.get(name, [])
    if len(found) == 1:
        return found[0]
    if not found:
        parts = [part for part in known if part.startswith(f"{name}.") and part.removeprefix(f"{name}.").isdecimal()]
        remedy = (
            did_you_mean(name, known) or "to list the outputs, run specops inspect --json; to see the layers, use Netron"
        )
        if parts:
            remedy = f"it has several outputs: {', '.join(parts[:5])}"
        problems.append(Problem(f"there is no output or layer named {name}", str(model.path), remedy=remedy))
        return None
    lines = ", ".join(str(port.layer.line) for port in found[:5])
    message = f"{len(found)} layers have the name {name} (lines {lines}): specify the tensor name of one"
    problems.append(Problem(message, str(model.path), fault=Fault.MALFORMED))
    return None


def _set_outputs(model: Model, ports: Sequence[OutputPort]) -> None:
    free = list(model.results)
    next_id = max(layer.id for layer in model.layers) + 1
    results = []
    for port in ports:
        result = next((layer for layer in free if layer.inputs[0].source is port), None)
        if result is None:
            result = Layer(
                next_id, f"{friendly_name(port)}/sink_port_0", "Result", "opset1", {}, [], [], {}, port.layer.line
            )
            taken = InputPort(result, 0, 0, port)
            result.inputs.append(taken)
            port.consumers.append(taken)
            next_id += 1
        else:
            free.remove(result)
        results.append(result)
    needed = _needed(model, results)
    for layer in (layer for layer in model.layers if layer not in needed):
        for taken in layer.inputs:
            taken.source.consumers.remove(taken)
    model.layers = [*(layer for layer in model.layers if layer in needed and layer.type != "Result"), *results]
    model.parameters = [layer for layer in model.parameters if layer in needed]
    model.results = results


def _needed(model: Model, results: Iterable[Layer]) -> set[Layer]:
    """Return the layers that the results, and the assignments of the variables that they read, depend on."""
    needed: set[Layer] = set()
    pending = list(results)
    assignments: dict[str, list[Layer]] = {}
    for layer in model.layers:
        if layer.type == "Assign":
            assignments.setdefault(layer.attributes.get("variable_id", ""), []).append(layer)
    while pending:
        layer = pending.pop()
        if layer in needed:
            continue
        needed.add(layer)
        pending += [port.source.layer for port in layer.inputs]
        if layer.type == "ReadValue":
            pending += assignments.get(layer.attributes.get("variable_id", ""), [])
    return needed


def _rename(model: Model, old: str, new: str, problems: list[Problem]) -> None:
    """Record the new name of the input or output that is called ``old``."""
    set_names(model)
    found = [layer for layer in model.parameters if old in input_aliases(layer)]
    for layer, names in zip(model.results, model.output_names, strict=True):
        source = layer.inputs[0].source
        if old in (*names, *source.names, friendly_name(source)):
            found.append(layer)
    if len(found) == 1:
        model.renamed[found[0]] = new
        return
    known = [name for names in (*model.input_names, *model.output_names) for name in names]
    message = f"{'several inputs and outputs are' if found else 'no input or output is'} called {old}"
    problems.append(Problem(message, str(model.path), remedy=did_you_mean(old, known) if not found else ""))


def _check_names(model: Model, new: set[str], problems: list[Problem]) -> None:
    firsts = [names[0] for names in (*model.input_names, *model.output_names)]
    for name in sorted(new):
        if not name:
            problems.append(Problem("a new name is empty", str(model.path)))
        elif firsts.count(name) > 1:
            problems.append(Problem(f"several inputs and outputs would be named {name}", str(model.path)))
