"""docs/convert.md: formats of frameworks."""

from __future__ import annotations

from collections.abc import Iterator

from docs.parts.markdown import recorded, table

_FRONTENDS = {
    "saved_model": ("TensorFlow", "SavedModel", "TensorFlow 2.21"),
    "frozen": ("TensorFlow", "frozen `.pb`", "TensorFlow 2.21"),
    "meta": ("TensorFlow", "`.meta` with a checkpoint", "TensorFlow 2.21"),
    "tflite": ("TensorFlow Lite", "`.tflite`", "TensorFlow 2.21"),
    "paddle": ("PaddlePaddle", "`.pdmodel`", "PaddlePaddle 2.6"),
    "pt2": ("PyTorch", "`.pt2`", "PyTorch 2.14"),
    "onnx": ("ONNX", "`.onnx`", "opset 21"),
}
"""Each format of tests/conformance/frontends: OpenVINO's frontend, the files, and the library that wrote them."""


def rows() -> Iterator[str]:
    """Formats of frameworks, and how many of their models agree with the framework."""
    results = recorded("tests/conformance/frontends/results.json")
    rows = []
    for kind, models in results.items():
        agreeing = sum(outcome == "agrees" for outcome in models.values())
        names = ", ".join(
            f"`{name}`" if outcome == "agrees" else f"`{name}` ({outcome})" for name, outcome in models.items()
        )
        rows.append((*_FRONTENDS[kind], f"{agreeing} of {len(models)}", names))
    yield from table(("frontend", "files", "written by", "models that agree", "models"), rows)
