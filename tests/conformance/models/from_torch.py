"""Networks in PyTorch, built small from their configurations with random weights, and imported by OpenVINO."""

from __future__ import annotations

import contextlib
import importlib
import logging
import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]

# Nothing here accesses a model hub. OpenVINO's telemetry would fork the process, with all its memory, for each import.
os.environ["HF_HUB_OFFLINE"] = "1"
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@dataclass(frozen=True)
class Imported:
    """Builds the ``openvino.Model`` of a module; see `imported`."""

    make: Callable[[], Any]
    positional: bool = True
    scripted: bool = False

    def __call__(self, arrays: Arrays) -> Any:
        import openvino as ov
        import torch

        module, tensors = self.prepared(arrays)
        with torch.no_grad(), quiet():
            if self.scripted:
                pairs = zip(tensors, arrays.values(), strict=True)
                return ov.convert_model(module, input=[(list(t.shape), ov.Type(a.dtype)) for t, a in pairs])
            return ov.convert_model(module, example_input=tensors)

    def prepared(self, arrays: Arrays) -> tuple[Any, tuple[Any, ...]]:
        """Return the module, which returns a tuple of tensors unless it is scripted, and its arguments."""
        import torch

        torch.set_num_threads(1)  # many networks are built in parallel
        torch.manual_seed(0)
        module = self.make().eval().float()
        if not self.scripted:
            randomize(module)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        names = () if self.positional else tuple(tensors)
        return module if self.scripted else _flat(module, names), tuple(tensors.values())


def imported(make: Callable[[], Any], *, positional: bool = True, scripted: bool = False) -> Imported:
    """Return a function that builds the ``openvino.Model`` of a module.

    Args:
        make: creates the module, with random numbers from a fixed seed.
        positional: whether the inputs are positional arguments; otherwise keyword arguments.
        scripted: whether it is a scripted module, which OpenVINO imports directly; others are traced.
    """
    return Imported(make, positional, scripted)


def randomize(module: Any) -> None:
    """Set weights for which every layer affects the outputs.

    Libraries initialize biases with zeros, scales with ones, statistics with defaults, and matrices with numbers so small
    that a short network's outputs hardly depend on its inputs.
    """
    import torch

    for parameter in module.parameters():
        data = parameter.data
        if not data.is_floating_point() or data.numel() < 2:
            continue
        if bool((data == data.reshape(-1)[0]).all()):
            parameter.data = data + 0.1 * torch.randn(data.shape)
        elif data.dim() > 1:
            usual = (data.shape[0] / data.numel()) ** 0.5  # 1 / sqrt(number of summed elements)
            parameter.data = data * max(1.0, usual / float(data.std()))
    for name, buffer in module.named_buffers():
        if name.endswith("running_mean"):
            buffer.data = 0.1 * torch.randn(buffer.shape)
        elif name.endswith("running_var"):
            buffer.data = 0.5 + torch.rand(buffer.shape)


def _flat(module: Any, names: tuple[str, ...]) -> Any:
    """Wrap a module to return a tuple of tensors, whatever structure it returns."""
    import torch

    class Flat(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *inputs):
            result = self.module(**dict(zip(names, inputs, strict=True))) if names else self.module(*inputs)
            return tuple(_tensors(result))

    return Flat()


def _tensors(result: Any) -> Iterator[Any]:
    import torch

    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, Mapping):
        for value in result.values():
            yield from _tensors(value)
    elif isinstance(result, (tuple, list)):
        for value in result:
            yield from _tensors(value)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the warnings of tracing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        level = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(level)


# -- libraries -------------------------------------------------------------------------------------------------------------


def transformer(name: str, config: Mapping[str, Any], part: str | None = None) -> Callable[[], Any]:
    """Return a maker of a class of transformers, from its configuration class.

    Args:
        name: the model's class.
        config: the configuration's fields; a mapping is the configuration of a part.
        part: the attribute with the part of the model to convert; by default the whole model.
    """

    def make() -> Any:
        from tests.conformance.models import torchvision_ops

        torchvision_ops.load()
        import transformers

        transformers.logging.set_verbosity_error()
        cls = getattr(transformers, name)
        fields = cls.config_class(**{key: value for key, value in config.items() if value is not None})
        # Traceable implementations of attention and mixtures of experts.
        ways = {"attn_implementation": "eager"}
        if int(transformers.__version__.partition(".")[0]) >= 5:
            ways["experts_implementation"] = "batched_mm"
        model = cls._from_config(fields, **ways)
        return operator.attrgetter(part)(model) if part else model

    return make


def timm_model(name: str, options: Mapping[str, Any]) -> Callable[[], Any]:
    """Return a maker of a timm variant, without pretrained weights."""

    def make() -> Any:
        from tests.conformance.models import torchvision_ops

        torchvision_ops.load()
        import timm

        return timm.create_model(name, pretrained=False, **options)

    return make


def torchvision_model(name: str, options: Mapping[str, Any]) -> Callable[[], Any]:
    """Return a maker of a torchvision model, ``"detection.ssd300_vgg16"``; detectors take one image and have no losses."""

    def make() -> Any:
        from tests.conformance.models import torchvision_ops

        torchvision_ops.load()
        import torchvision

        model = operator.attrgetter(name)(torchvision.models)(weights=None, **options)
        return OnePicture(model) if name.startswith("detection.") else model

    return make


def diffuser(name: str, options: Mapping[str, Any], method: str | None = None) -> Callable[[], Any]:
    """Return a maker of a part of diffusers."""

    def make() -> Any:
        from tests.conformance.models import torchvision_ops

        torchvision_ops.load()
        import diffusers

        return getattr(diffusers, name)(**options)

    return make


def own(name: str, *args: Any, **options: Any) -> Callable[[], Any]:
    """Return a maker of a class or function of `tests.conformance.models.modules`."""

    def make() -> Any:
        from tests.conformance.models import torchvision_ops

        torchvision_ops.load()
        return getattr(importlib.import_module("tests.conformance.models.modules"), name)(*args, **options)

    return make


def OnePicture(model: Any) -> Any:
    import torch

    class OnePicture(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, image):
            return self.model([image])[0]

    return OnePicture()
