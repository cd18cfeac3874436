"""The vision encoder of Mistral 3 as one graph.

optimum-intel exports the encoder without the projector, and merges patches into tokens in Python. Here, both steps are part
of the graph, for one image.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from converters.folders.inserting import inserted
from converters.folders.path_errors import path_error
from converters.source import Emitted
from onnx_specops.building import Builder
from onnx_specops.replacing import replace_value


@dataclass(frozen=True)
class MistralVision:
    """Completes the graph of ``openvino_vision_embeddings_model.xml``.

    Attributes:
        projector: the IR that computes the features of tokens.
        patch: the height and width of a patch.
        merge: the number of patches in a row and a column that become one token.
    """

    projector: Path
    patch: int
    merge: int

    def complete(self, emitted: Emitted, encoder: Path) -> None:
        """Compute features ``[tokens, width]`` instead of patches.

        Args:
            emitted: the emitted model; changed in place.
            encoder: its IR, which errors name.

        Raises:
            ConversionError: its inputs or outputs differ from those that optimum-intel exports.
        """
        graph = emitted.model.graph
        shapes = [value.shape for value in (*graph.inputs, *graph.outputs)]
        if len(graph.inputs) != 1 or len(graph.outputs) != 1 or [shape and len(shape) for shape in shapes] != [4, 2]:
            message = "it does not compute the patches [patches, width] of images [images, channels, height, width] only"
            raise path_error(encoder, message, "convert it without --genai")
        (pixels,), (patches,) = graph.inputs, graph.outputs
        op = Builder.of_existing(graph)
        op.scope = "merge"
        factor = np.array([self.patch * self.merge] * 2)
        rows, columns = op.Split(op.Div(op.Shape(pixels, start=2), factor), axis=0, num_outputs=2, outputs=2)
        blocks = op.Reshape(patches, op.Concat(rows, [self.merge], columns, [self.merge, -1], axis=0))
        tokens = op.Reshape(op.Transpose(blocks, perm=[0, 2, 4, 1, 3]), op.Concat(op.Mul(rows, columns), [-1], axis=0))
        given, features = inserted(graph, self.projector, "projector")
        width, merged = (None if shape is None else shape[-1] for shape in (patches.shape, given.shape))
        if isinstance(width, int) and isinstance(merged, int) and width * self.merge**2 != merged:
            message = f"a token has {merged} numbers, not those of {self.merge} x {self.merge} patches of {width}"
            raise path_error(self.projector, message, "use the config.json of the model")
        replace_value(given, tokens)
        graph.outputs[0] = features
