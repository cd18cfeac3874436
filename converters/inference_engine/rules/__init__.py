"""Rules for the layers of IR 2 to 7, in modules by family. Importing this package registers them."""

from converters.inference_engine.rules import (  # noqa: F401
    activations,
    convolution,
    detection,
    detectron,
    elementwise,
    indexing,
    linear,
    normalization,
    pooling,
    quantization,
    recurrent,
    reductions,
    resampling,
    shape,
    sparse,
    state,
)
