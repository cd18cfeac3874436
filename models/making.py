"""Shared code of the scripts that create the example models: building and saving a model, and computing its outputs.

Each script calls `make` with a model, its inputs and, if available, the outputs of a second oracle. With the same OpenVINO
release, the files are identical byte by byte: names depend on the graph only, and no paths are stored.
"""

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops

Arrays = dict[str, np.ndarray]

# On CPUs with bfloat16 instructions OpenVINO's default precision is not float32.
ORACLE_CONFIG = {"INFERENCE_PRECISION_HINT": "f32"}

# A path of a Unix or Windows machine, as it would be in an attribute or rt_info.
MACHINE_PATH = re.compile(r"""["'>\s](/[\w.-]+/|[A-Za-z]:[\\/]|\\\\|~/)""")


def parameter(name: str, element_type: ov.Type, shape: Iterable[int]) -> ov.Node:
    """Return a model input with the name `name`. In `shape`, -1 is a dynamic dimension."""
    node = ops.parameter(ov.PartialShape(list(shape)), element_type, name=name)
    node.output(0).set_names({name})
    return node


def model(name: str, parameters: Iterable[ov.Node], outputs: Mapping[str, ov.Node | ov.Output]) -> ov.Model:
    """Return the model with these inputs and named outputs, in this order."""
    results = []
    for output_name, value in outputs.items():
        source = value.output(0) if isinstance(value, ov.Node) else value
        source.add_names({output_name})
        result = ops.result(source)
        result.set_friendly_name(output_name)
        results.append(result)
    return ov.Model(results, list(parameters), name)


def run(loaded: ov.Model, inputs: Arrays) -> Arrays:
    """Return all outputs of the model by name, computed by OpenVINO's CPU plugin in float32."""
    compiled = ov.Core().compile_model(loaded, "CPU", ORACLE_CONFIG)
    values = compiled({port.any_name: inputs[port.any_name] for port in compiled.inputs})
    return {port.any_name: np.array(values[port]) for port in compiled.outputs}


def layer_types(path: Path) -> Counter[tuple[str, str]]:
    """Return the number of layers of each (type, version) in an IR file."""
    layers = re.findall(r'<layer [^>]*type="(\w+)" version="(\w+)"', path.read_text(encoding="utf-8"))
    return Counter(layers)


def _rename(graph: ov.Model, name: str) -> None:
    """Name the model and the nodes without a name. The names do not depend on the process or the machine."""
    graph.set_friendly_name(name)
    count: Counter[str] = Counter()
    for node in graph.get_ordered_ops():
        kind = node.get_type_name()
        # OpenVINO's and its frontends' own names end in a counter of the process.
        if re.fullmatch(r".*_\d+", node.get_friendly_name()) and kind not in ("Parameter", "Result"):
            node.set_friendly_name(f"{kind}_{count[kind]}")
            count[kind] += 1
    if graph.has_rt_info(["conversion_parameters", "input_model"]):
        graph.set_rt_info(name, ["conversion_parameters", "input_model"])


def _write(folder: Path, name: str, graph: ov.Model, inputs: Arrays, expected: Arrays | None) -> Arrays:
    _rename(graph, name)
    ov.save_model(graph, folder / "model.xml", compress_to_fp16=False)
    found = MACHINE_PATH.search((folder / "model.xml").read_text(encoding="utf-8"))
    if found:
        raise ValueError(f"{name}: model.xml names a place on this machine: {found.group()!r}")
    # The outputs come from the saved files, not from the graph in memory.
    outputs = run(ov.Core().read_model(folder / "model.xml"), inputs)
    for key, want in (expected or {}).items():
        np.testing.assert_allclose(outputs[key], want, rtol=1e-5, atol=1e-5, err_msg=f"{name}: {key}")
        if outputs[key].dtype != want.dtype:
            raise ValueError(f"{name}: {key} is {outputs[key].dtype}, the second opinion {want.dtype}")
    np.savez_compressed(folder / "inputs.npz", allow_pickle=False, **inputs)
    np.savez_compressed(folder / "expected.npz", allow_pickle=False, **outputs)
    return outputs


def make(
    script: str,
    graph: ov.Model,
    inputs: Arrays,
    second_opinion: Arrays | None = None,
    check: Callable[[Arrays], None] | None = None,
) -> None:
    """Write model.xml, model.bin, inputs.npz and expected.npz next to `script`.

    `second_opinion` contains the outputs of another oracle. OpenVINO's outputs must be equal to them (tolerance 1e-5, same
    type). `check` is called with the outputs, and raises an exception if they are not suitable for an example. With the
    option `--check`, nothing is written: the new files are compared with the existing ones.
    """
    arguments = argparse.ArgumentParser(description="Remake this folder's model, inputs and expected outputs.")
    arguments.add_argument("--check", action="store_true", help="write nothing; compare with what is there")
    only_check = arguments.parse_args().check
    folder = Path(script).resolve().parent
    files = ("model.xml", "model.bin", "inputs.npz", "expected.npz")
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch)
        outputs = _write(target, folder.name, graph, inputs, second_opinion)
        if check:
            check(outputs)
        for (kind, version), times in sorted(layer_types(target / "model.xml").items()):
            print(f"{times:4} {kind} {version}")
        made = {file: (target / file).read_bytes() for file in files}
    print(f"{folder.name}: {len(inputs)} inputs, {len(outputs)} outputs, {sum(map(len, made.values())):,} bytes")
    if only_check:
        changed = [file for file, content in made.items() if content != (folder / file).read_bytes()]
        if changed:
            sys.exit(f"{folder.name}: not as made here: {', '.join(changed)}")
    else:
        for file, content in made.items():
            (folder / file).write_bytes(content)


def sampler(
    num_samples: int,
    convert_type: str,
    with_replacement: bool,
    log_probs: bool,
    global_seed: int,
    op_seed: int,
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that samples with OpenVINO's Multinomial from probabilities [batch, classes] or their logarithms."""
    probabilities = parameter("probabilities", ov.Type.f32, [-1, -1])
    node = ops.multinomial(
        probabilities, np.int32(num_samples), convert_type, with_replacement, log_probs, global_seed, op_seed
    )
    compiled = ov.Core().compile_model(ov.Model([node], [probabilities]), "CPU", ORACLE_CONFIG)

    def sample(values: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.array(compiled([np.log(values) if log_probs else values])[0])

    return sample


def assert_draws_are_stable(
    sample: Callable[[np.ndarray], np.ndarray], probabilities: np.ndarray, margin: float = 1e-4
) -> None:
    """Raise an exception if small changes of the probabilities change the samples.

    If a sample is within `margin` of a boundary of the cumulative distribution, float32 rounding can change it. A comparison
    would then test the order of summation instead of the sampling. This function moves all boundaries up and down by
    `margin`, and then changes each probability at random by up to ten times `margin`, relative to its value.
    """
    wanted = sample(probabilities)
    exact = probabilities.astype(np.float64)
    exact /= exact.sum(axis=1, keepdims=True)
    boundaries = np.cumsum(exact, axis=1)[:, :-1]
    trials = []
    for shift in (-margin, margin):
        moved = np.clip(boundaries + shift, 0.0, 1.0)
        trials.append(np.diff(moved, axis=1, prepend=0.0, append=1.0))
    rng = np.random.default_rng(0)
    trials += [exact * (1.0 + rng.uniform(-10 * margin, 10 * margin, exact.shape)) for _ in range(32)]
    for trial in trials:
        if not np.array_equal(sample(trial.astype(probabilities.dtype)), wanted):
            raise ValueError("a sample is too near a boundary; choose other probabilities or seeds")
