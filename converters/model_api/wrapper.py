"""The inputs and outputs of all wrappers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from converters.model_api.configuration import Configuration
from converters.model_api.image import Image
from onnx_specops.building import Builder, Value

Results = dict[str, "Value | None"]
"""The outputs of a model with its wrapper, by name; ``None`` for an output that this model does not have."""


@dataclass(frozen=True)
class Wrapped:
    """A network with a preprocessed image input.

    Attributes:
        op: the builder, which appends to the network's graph.
        outputs: the network's outputs, by their first name.
        image: the image.
        config: the model's parameters.
    """

    op: Builder
    outputs: Mapping[str, Value]
    image: Image
    config: Configuration

    def only(self) -> Value:
        """Return the only output. Raise ``KeyError`` if there are several."""
        (value,) = self.outputs.values()
        return value
