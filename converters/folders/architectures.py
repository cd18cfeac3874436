"""The parameters of an architecture in transformers: their names, shapes and uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from converters.folders.path_errors import path_error

_USES = {"gate": "gate_proj|w1", "up": "up_proj|w3", "down": "down_proj|w2"}
_RENAMED = ((".mlp.router.", ".block_sparse_moe.gate."), (".mlp.", ".block_sparse_moe."))
"""Modules of Mixtral and Phi MoE: their names in transformers 5, and in files of weights."""


def _stored_form(model: Any, name: str, value: Any) -> dict[str, Any]:
    """Return the tensors of a parameter in a file of weights. transformers 5 merges the experts' when it loads them."""
    try:
        from transformers.core_model_loading import revert_weight_conversion
    except ImportError:
        return {name: value}
    stored: dict[str, Any] = revert_weight_conversion(model, {name: value})
    return stored


MODULE_OF_LAYER = re.compile(r"__module\.(?P<path>[^/]+)/")
"""The beginning of the name of an exported layer, with the path of its module."""


class Architecture:
    """A language model of transformers without its weights.

    Args:
        path: config.json, for errors.
        config: its content.

    Attributes:
        name: its class.
        shapes: the shape of each parameter in a file of weights. Tied parameters have one name.

    Raises:
        ConversionError: transformers or torch is missing, or does not support the architecture.
    """

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        try:
            import torch
            import transformers
        except ImportError as error:
            remedy = "pip install 'onnx-specops[weights]'"
            raise path_error(
                path, f"the packages transformers and torch define the names of its architecture: {error}", remedy
            ) from None
        kind = str(config.get("model_type"))
        remedy = "install a release of transformers that supports it"
        try:
            known = transformers.AutoConfig.for_model(**config) if kind in transformers.CONFIG_MAPPING else None
        except Exception as error:  # a configuration can contain anything
            raise path_error(path, f"transformers rejects it: {error}", "get a new copy of the file") from error
        if known is None:
            raise path_error(path, f"transformers {transformers.__version__} has no architecture {kind!r}", remedy)
        if type(known) not in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
            raise path_error(
                path, f"{kind!r} is not a language model of transformers", "specify the folder of a language model"
            )
        try:
            with torch.device("meta"):
                self._model = transformers.AutoModelForCausalLM.from_config(known)
        except Exception as error:
            raise path_error(path, f"transformers rejects it: {error}", "get a new copy of the file") from error
        self._model.tie_weights()
        self.name = type(self._model).__name__
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._renamed: dict[str, str] = {}
        for name, value in self._model.named_parameters():
            stored = _stored_form(self._model, name, value)
            self.shapes |= {one: tuple(part.shape) for one, part in stored.items()}
            if len(stored) == 1:
                self._renamed[name] = next(iter(stored))
        self._renamed |= self._of_shared_modules()
        self._modules: dict[str, Any] = dict(self._model.named_modules())

    def _of_shared_modules(self) -> dict[str, str]:
        """Return the other names of parameters of modules that several layers share, as in Zamba 2."""
        first = {id(value): name for name, value in self._model.named_parameters()}
        found: dict[str, str] = {}
        own: dict[int, str] = {}
        for module, part in self._model.named_modules(remove_duplicate=False):
            if own.setdefault(id(part), module) == module:
                continue
            for role, value in part.named_parameters(recurse=False):
                if (name := first[id(value)]) in self._renamed:
                    found[f"{module}.{role}"] = self._renamed[name]
        return found

    def known(self, name: str) -> str | None:
        """Return the parameter with a name, which may have the prefix of an outer module, or be that of another release of
        transformers.
        """
        for one in (name, name.removeprefix("model.")):
            for other in (one, self._renamed.get(one), *(one.replace(new, old) for new, old in _RENAMED)):
                if other in self.shapes:
                    return other
        return None

    def experts(self, module: str, use: str) -> list[str]:
        """Return the parameters of a mixture's experts in the order of the experts, for a module that contains them all.

        Args:
            module: ``model.layers.0.mlp.experts``; the name of the mixture itself depends on the release of transformers.
            use: ``"gate"``, ``"up"`` or ``"down"``.
        """
        outer = module.rsplit(".", 2)[0]
        for one in (outer, outer.removeprefix("model.")):
            wanted = re.compile(rf"{re.escape(one)}\.[^.]+\.experts\.(\d+)\.(?:{_USES[use]})\.weight")
            found = {int(match[1]): name for name in self.shapes if (match := wanted.fullmatch(name))}
            if found:
                return [found[number] for number in sorted(found)]
        return []

    def convolution_in(self, module: str) -> str | None:
        """Return the weight of the only convolution in a module; ``None`` if there are none or several. In the graph, a
        convolution may have the name of the outer module, or of a module in it that the exporter adds.
        """
        for outer in (module, module.removeprefix("model.")):
            for _ in range(2):
                outer = outer if outer in self._modules else outer.rpartition(".")[0]
            if self._kind(outer) == "Conv1d":
                return self.known(f"{outer}.weight")
            found = [name for name in self._modules if name.startswith(f"{outer}.") and self._kind(name) == "Conv1d"]
            if outer in self._modules and len(found) == 1:
                return self.known(f"{found[0]}.weight")
        return None

    @cached_property
    def linear(self) -> list[str]:
        """The linear layers."""
        return [name for name in self._modules if self.is_linear(name)]

    def is_linear(self, module: str) -> bool:
        """Return whether a module is a linear layer inside the model, not the one for the logits."""
        return self._kind(module) == "Linear" and self._modules[module] is not self._model.get_output_embeddings()

    def is_product(self, module: str) -> bool:
        """Return whether a module multiplies by its weight."""
        return self._kind(module) in ("Linear", "Conv1D") or ".experts." in module

    def takes_inputs_first(self, module: str) -> bool:
        """Return whether a module's weight is ``[inputs, outputs]``."""
        return self._kind(module) == "Conv1D"

    def neutral(self, name: str) -> float | None:
        """Return the value of a normalization's parameter that has no effect, so that an IR may lack it; ``None`` for other
        parameters.
        """
        module, _, role = name.rpartition(".")
        if "Norm" not in self._kind(module):
            return None
        return 0.0 if role == "bias" or self._adds_one(module) else 1.0

    def as_stored(self, name: str, value: np.ndarray) -> np.ndarray:
        """Return the stored form of a parameter whose value in the graph is ``value``. A normalization may add 1 to its
        weight.
        """
        module, _, role = name.rpartition(".")
        if role == "weight" and self._adds_one(module):
            return value.astype(np.float32) - 1
        return value

    def _kind(self, module: str) -> str:
        return type(self._modules[module]).__name__ if module in self._modules else ""

    def _adds_one(self, module: str) -> bool:
        """Return whether a normalization's result is nonzero for a weight of 0 and zero for -1."""
        if "Norm" not in self._kind(module) or "weight" not in self._modules[module]._parameters:
            return False
        import copy

        import torch

        norm = copy.deepcopy(self._modules[module]).to_empty(device="cpu")
        given = torch.linspace(-1, 2, norm.weight.shape[-1]).reshape(1, 1, -1)
        inputs = [given]
        with torch.no_grad():
            for parameter in norm.parameters():
                parameter.zero_()
            try:
                some = norm(*inputs)
            except (AttributeError, TypeError):  # it requires a gate
                inputs.append(torch.ones_like(given))
                some = norm(*inputs)
            norm.weight.fill_(-1)
            none = norm(*inputs)
        return bool(some.abs().max() > 0) and bool(none.abs().max() == 0)
