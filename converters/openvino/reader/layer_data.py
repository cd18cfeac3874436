"""Layers whose ``<data>`` determines types and shapes that their ports repeat: Parameter, Const and Convert."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from converters.errors import Problems, Remarks, short
from converters.openvino.reader.constants import Constant, check_strings
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import Dims, Layer
from converters.openvino.reader.shapes import PartialShape
from converters.openvino.reader.xml import integer

_MAX_RANK = 32  # NumPy's limit before version 2
_MAX_BYTES = 1 << 60
_EMPTY = memoryview(b"")


class LayerData:
    """Completes layers from their data.

    Args:
        problems: collects problems.
        remarks: collects the ignored content.
        weights: the bytes of the .bin file.
        weights_path: the .bin file; ``None`` if there is none.
        without_weights: whether constants may lack their values. All constants then have empty bytes.
    """

    def __init__(
        self,
        problems: Problems,
        remarks: Remarks,
        weights: memoryview,
        weights_path: Path | None,
        *,
        without_weights: bool = False,
    ) -> None:
        self._problems, self._remarks = problems, remarks
        self._weights = weights
        self._without_weights = without_weights
        self._weights_path = weights_path
        self._without_file: list[Layer] = []
        self._beyond_file: list[tuple[int, Layer]] = []
        self._checked_strings: dict[tuple[int, int, int], str | None] = {}
        self._completions: dict[str, Callable[[Layer], None]] = {
            "Const": self._constant,
            "Convert": self._convert,
            "Parameter": self._parameter,
            "Result": self._result,
        }

    def complete(self, layer: Layer) -> None:
        """Set the constant, element type and dimensions of such a layer. Leave others unchanged."""
        completion = self._completions.get(layer.type)
        if completion is not None:
            completion(layer)

    def finish(self) -> None:
        """Report the problems of the .bin file, once for all layers."""
        if self._without_file:
            remedy = "put the .bin file next to the .xml, or specify its path with --bin"
            what = _count(len(self._without_file), "constant has its value", "constants have their values")
            self._problems.add(f"{what} in the .bin file, which is missing", remedy, layer=self._without_file[0])
        if self._beyond_file:
            end = max(end for end, _ in self._beyond_file)
            what = _count(len(self._beyond_file), "constant reaches", "constants reach")
            self._problems.add(
                f"the .bin file has {len(self._weights)} bytes, but {what} byte {end}",
                "check that the .bin is complete and belongs to the .xml",
                layer=self._beyond_file[0][1],
            )

    def _parameter(self, layer: Layer) -> None:
        if self._has_ports(layer, 0, 1):
            element_type = self._element_type(layer, "element_type")
            if element_type is not None:
                layer.outputs[0].element_type = element_type
            self._set_dims(layer, self._shape(layer))

    def _convert(self, layer: Layer) -> None:
        if self._has_ports(layer, 1, 1):
            element_type = self._element_type(layer, "destination_type")
            if element_type is not None:
                # With compressed weights, the port may state FP16 although the layer returns f32.
                layer.outputs[0].element_type = element_type

    def _result(self, layer: Layer) -> None:
        del layer.outputs[:]  # OpenVINO 2025 and later write unused outputs
        self._has_ports(layer, 1, 0)

    def _constant(self, layer: Layer) -> None:
        if not self._has_ports(layer, 0, 1):
            return
        element_type, dims = self._element_type(layer, "element_type"), self._shape(layer)
        offset, size = (integer(layer.attributes.get(key)) for key in ("offset", "size"))
        if offset is None or size is None or offset < 0 or size < 0:
            self._problems.add("offset and size must be integers", layer=layer)
        elif element_type is ElementType.DYNAMIC:
            self._problems.add("a constant cannot be of dynamic type", layer=layer)
        elif dims is None or None in dims:
            self._problems.add("the shape of a constant must be known", layer=layer)
        elif element_type is not None:
            shape = tuple(dim for dim in dims if dim is not None)
            wrong = self._misfit(element_type, shape, size)
            if wrong:
                self._problems.add(wrong, layer=layer)
                return
            if element_type is not ElementType.STRING and size > max(element_type.byte_size(math.prod(shape)), 1):
                self._remarks.add("bytes of a constant beyond those that its shape needs", layer=layer)
            size = size if element_type is ElementType.STRING else element_type.byte_size(math.prod(shape))
            raw = self._bytes(layer, offset, size)
            if raw is not None and element_type is ElementType.STRING and not self._without_weights:
                wrong = self._wrong_strings(raw, math.prod(shape), offset)
            if wrong:
                self._problems.add(wrong, layer=layer)
            elif raw is not None:
                layer.constant = Constant(element_type, shape, offset, size, raw)
                layer.outputs[0].element_type = element_type
                self._set_dims(layer, shape)

    def _misfit(self, element_type: ElementType, shape: tuple[int, ...], size: int) -> str | None:
        """Return the problem of a constant with this type, shape and `size` in bytes."""
        if len(shape) > _MAX_RANK:
            return f"a constant has {len(shape)} dimensions; the maximum is {_MAX_RANK}"
        if math.prod(dim for dim in shape if dim) * 8 > _MAX_BYTES:
            return f"the shape {list(shape)} is too large"
        if element_type is ElementType.STRING:
            return "a string constant requires at least 4 bytes" if size < 4 else None
        need = element_type.byte_size(math.prod(shape))
        if size < need:
            return f"{element_type} of shape {list(shape)} takes {need} bytes, but size is {size}"
        return None

    def _wrong_strings(self, raw: memoryview, count: int, offset: int) -> str | None:
        """Call `check_strings` once for all layers that share the same bytes."""
        key = (offset, len(raw), count)
        if key not in self._checked_strings:
            self._checked_strings[key] = check_strings(raw, count)
        return self._checked_strings[key]

    def _bytes(self, layer: Layer, offset: int, size: int) -> memoryview | None:
        """Return the constant's bytes in the .bin; ``None`` (and a problem) if they are missing."""
        if size == 0 or self._without_weights:
            return _EMPTY
        if self._weights_path is None:
            self._without_file.append(layer)
            return None
        if offset + size > len(self._weights):
            self._beyond_file.append((offset + size, layer))
            return None
        return self._weights[offset : offset + size]

    def _has_ports(self, layer: Layer, inputs: int, outputs: int) -> bool:
        if len(layer.inputs) == inputs and len(layer.outputs) == outputs:
            return True
        found = f"{len(layer.inputs)} inputs and {len(layer.outputs)} outputs"
        self._problems.add(f"it has {found}; expected {inputs} and {outputs}", layer=layer)
        return False

    def _element_type(self, layer: Layer, attribute: str) -> ElementType | None:
        name = layer.attributes.get(attribute)
        element_type = None if name is None else ElementType.from_name(name)
        if name is None:
            self._problems.add(f"the attribute {attribute} is missing", layer=layer)
        elif element_type is None:
            self._problems.add(f'{attribute} "{short(name)}" is not a known element type', layer=layer)
        return element_type

    def _shape(self, layer: Layer) -> Dims | None:
        text = layer.attributes.get("shape")
        if text is None:
            self._problems.add("the attribute shape is missing", layer=layer)
            return ()
        try:
            return PartialShape.parse(text).dims
        except ValueError as error:
            self._problems.add(f"the attribute shape: {error}", layer=layer)
            return ()

    def _set_dims(self, layer: Layer, dims: Dims | None) -> None:
        """Use the dimensions in the data, which distinguish an unknown rank from a scalar. Ports cannot."""
        port = layer.outputs[0]
        if port.dims and port.dims != dims:
            self._remarks.add(f"the dimensions of a {layer.type}'s port that differ from its shape", layer=layer)
        port.dims = dims


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
