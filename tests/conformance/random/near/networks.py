"""The repository's networks as data: each layer in the form of a recipe, and its values."""

from __future__ import annotations

import functools
import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from converters.openvino.runtime.inference import infer
from tests.conformance.operation_models import TYPES
from tests.conformance.random.judge import SETTINGS, save
from tests.conformance.random.near.reading import constant_of, dims_of, layer_of, source
from tests.conformance.random.recipe import Dims, Layer, Leaf, Recipe, Ref

_TESTS = Path(__file__).parents[3]
_FOLDERS = ("conformance/models/files", "conformance/quantized/files", "conformance/compressed", "language")

_WITH_BODIES = ("Greedy_scripted",)
# The sizes of unknown dimensions.
_BATCH, _TOKENS, _PAST, _KERNEL = 2, 5, 3, 4
# Except the batch of float inputs: samples and pixels.
_LATER = {2: 400, 4: 32}


@dataclass(frozen=True)
class Network:
    """A network.

    Attributes:
        name: the name of its file.
        recipe: its layers. Variables are Parameters.
        values: the outputs of each layer in one run of OpenVINO.
        dims: their dimensions, as far as OpenVINO knows them. Types that NumPy lacks have neither.
    """

    name: str
    recipe: Recipe
    values: Mapping[Ref, np.ndarray]
    dims: Mapping[Ref, Dims]


FOLDER = "NEAR_NETWORKS"
"""The environment variable with a folder of further IR files and archives. An .npz with the same name has the inputs."""


@functools.cache
def names() -> tuple[tuple[Path, str], ...]:
    """Return each IR: the archive and the .xml in it, or the .xml and "".

    Raises:
        ValueError: the folder in `FOLDER` has no IR, or an archive cannot be read.
    """
    if not (folder := os.environ.get(FOLDER)):
        archives = sorted(path for name in _FOLDERS for path in (_TESTS / name).rglob("*.zip"))
        return tuple(member for path in archives if path.stem not in _WITH_BODIES for member in _members(path))
    paths = sorted(path for path in Path(folder).rglob("*") if path.suffix in (".xml", ".zip"))
    found = [member for path in paths for member in (_members(path) if path.suffix == ".zip" else [(path, "")])]
    if not found:
        raise ValueError(f"{folder} has no .xml and no .zip with an .xml")
    return tuple(found)


def _members(archive: Path) -> list[tuple[Path, str]]:
    try:
        with zipfile.ZipFile(archive) as file:
            members = sorted(file.namelist())
    except zipfile.BadZipFile as error:
        raise ValueError(f"{archive} cannot be read: {error}") from error
    return [(archive, name) for name in members if name.endswith(".xml") and "tokenizer" not in name]


def check(number: int) -> str:
    """Return why OpenVINO does not read or run the network with that number, or ""; runs in OpenVINO's process."""
    try:
        network(number)
    except Exception as error:  # any exception of OpenVINO
        path, name = names()[number % len(names())]
        return f"{path / name if name else path}: {' '.join(str(error).split())[:300]}"
    return ""


@functools.lru_cache(maxsize=4)
def network(number: int) -> Network:
    """Return the network with that number; runs in OpenVINO's process."""
    import openvino as ov

    path, name = names()[number % len(names())]
    with tempfile.TemporaryDirectory() as folder:
        source = _extracted(path, name, Path(folder)) if name else path
        model = ov.Core().read_model(str(source))
        stated = _stated(model, source)
        past = _PAST if any(op.get_type_name() == "ReadValue" for op in model.get_ordered_ops()) else 0
        try:
            recipe, dims, values = _run(model, stated, past, past, number, Path(folder))
        except RuntimeError:
            if past == 0:
                raise
            # The attention mask of a state space has the length of a run, and its positions are those of its convolution.
            recipe, dims, values = _run(model, stated, past, 0, number, Path(folder))
    leaves = ((place, node) for place, node in enumerate(recipe.nodes) if isinstance(node, Leaf))
    values |= {(place, 0): node.array for place, node in leaves if node.array is not None and (place, 0) in dims}
    return Network(f"{path.stem}/{name}", recipe, values, dims)


def _extracted(path: Path, name: str, folder: Path) -> Path:
    with zipfile.ZipFile(path) as file:
        members = {name.removesuffix(".xml") + suffix for suffix in (".xml", ".bin", ".npz")}
        for member in members.intersection(file.namelist()):
            file.extract(member, folder)
    return folder / name


def _stated(model: Any, path: Path) -> Mapping[str, np.ndarray]:
    """Return the inputs in the .npz of an .xml by the friendly names of its Parameters: its first arrays, in order."""
    beside = path.with_suffix(".npz")
    if not beside.exists():
        return {}
    with np.load(beside) as arrays:
        parameters = model.get_parameters()
        if len(arrays.files) < len(parameters):
            raise ValueError(f"{beside.name} has {len(arrays.files)} arrays for {len(parameters)} inputs")
        return {p.get_friendly_name(): arrays[key] for p, key in zip(parameters, arrays.files, strict=False)}


def _run(
    model: Any, stated: Mapping[str, np.ndarray], past: int, masked: int, number: int, folder: Path
) -> tuple[Recipe, dict[Ref, Dims], dict[Ref, np.ndarray]]:
    """Return the network's layers, and the dimensions and values of their outputs.

    Args:
        past: the tokens in its variables.
        masked: those of them for which the attention mask has numbers.
    """
    recipe, dims = _taken(model, stated, past, masked, np.random.default_rng(number))
    everything = replace(recipe, results=tuple(ref for ref in dims if isinstance(recipe.nodes[ref[0]], Layer)))
    target = folder / "everything.xml"
    save(everything, str(target))
    (outputs,) = infer(str(target), [recipe.arrays()], settings=SETTINGS).outputs
    return recipe, dims, dict(zip(everything.results, outputs, strict=True))


def _taken(
    model: Any, stated: Mapping[str, np.ndarray], past: int, masked: int, rng: np.random.Generator
) -> tuple[Recipe, dict[Ref, Dims]]:
    nodes: list[Leaf | Layer] = []
    refs: dict[tuple[str, int], Ref] = {}
    dims: dict[Ref, Dims] = {}
    for op in model.get_ordered_ops():
        name, kind = op.get_name(), op.get_type_name()
        if kind in ("Result", "Assign"):
            continue
        if kind == "Constant":
            node: Leaf | Layer = constant_of(op)
        elif kind in ("Parameter", "ReadValue"):
            node = _parameter(op, past, masked, stated, rng)
        else:
            node = layer_of(op, refs)
        for index, output in enumerate(op.outputs()):
            refs[name, index] = (len(nodes), index)
            if output.get_element_type().get_type_name() in TYPES:
                dims[len(nodes), index] = dims_of(output.get_partial_shape())
        nodes.append(node)
    results = (source(op.input(0)) for op in model.get_results())
    return Recipe(tuple(nodes), tuple(refs[result] for result in results)), dims


def _parameter(op: Any, past: int, masked: int, stated: Mapping[str, np.ndarray], rng: np.random.Generator) -> Leaf:
    """Return a Parameter with the given value, or a value that suits its name.

    Its first unknown dimension is the batch.
    """
    output = op.output(0)
    name = next(iter(sorted(output.get_names())), op.get_friendly_name()).lower()
    type_, dims = output.get_element_type().get_type_name(), dims_of(output.get_partial_shape())
    dims = (-1,) if dims is None else dims
    if (known := stated.get(op.get_friendly_name())) is not None:
        return Leaf(type_, known.astype(TYPES[type_]), dims)
    is_float = np.dtype(TYPES[type_]).kind not in "biu"
    unknown = iter((_BATCH,))
    later = past if op.get_type_name() == "ReadValue" else _LATER.get(len(dims), _TOKENS) if is_float else _TOKENS
    if "attention_mask" in name and not is_float:
        later += masked
    shape = tuple(next(unknown, later) if d == -1 else d for d in dims)
    if "cache_position" in name and masked < past:
        shape = (_KERNEL,)
    if "mask" in name:
        array = np.ones(shape)
        array[0, ..., :1] = 0
    elif "position" in name:
        array = np.broadcast_to(np.arange(past, past + shape[-1]), shape)
    elif "beam" in name:
        array = np.arange(shape[0])
    elif is_float:
        array = rng.standard_normal(shape)
    else:
        array = rng.integers(0, 2 if "type" in name or type_ == "boolean" else 8, shape)
    return Leaf(type_, array.astype(TYPES[type_]), dims)
