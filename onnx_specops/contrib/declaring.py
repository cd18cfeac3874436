"""The decorator that declares an operator of ONNX Runtime by its body in standard ONNX::

    @contrib_operator(inputs={"X": "T", "bias": "T"}, outputs={"Y": "T"}, types={"T": ("float16", "float")})
    def BiasOperator(op, X, bias=None, *, epsilon: float = 1e-5):
        '''Docstring: what the operator computes.'''
        return op.Add(X, bias)

    @BiasOperator.infer_shapes
    def _(node):
        return [node.shape(0)]

The parameters after ``op`` are those of ONNX Runtime's operator: inputs and attributes with their names, and ``None`` as the
default of optional ones. Type variables have ONNX Runtime's names, because its kernel table uses them. Inputs, outputs,
attributes and types that converted models do not use may be omitted. A body contains only standard ONNX.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx_specops.domain import CONTRIB_DOMAIN, Declaration, Product, declare


class ContribOperator(Declaration):
    """An operator of ONNX Runtime, which has its own kernels."""

    domain = CONTRIB_DOMAIN

    def __init__(
        self,
        body: Callable[..., Any],
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
        types: Mapping[str, Sequence[str]],
        optional_outputs: int = 0,
        products: Sequence[Product] = (),
    ) -> None:
        _op, *parameters = inspect.signature(body).parameters.values()
        super().__init__(body, parameters, inputs, outputs, types, products)
        self.optional_outputs = optional_outputs
        self._body = body


def contrib_operator(
    *,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    types: Mapping[str, Sequence[str]] = {},
    optional_outputs: int = 0,
    products: Sequence[Product] = (),
) -> Callable[[Callable[..., Any]], ContribOperator]:
    """Declare an operator of ONNX Runtime by its body; see the module's docstring.

    Args:
        inputs: input name -> type variable or type, in order.
        outputs: output name -> type variable or type, in order; the body returns all of them.
        types: type variable -> the element types that it allows.
        optional_outputs: the number of outputs at the end that a node may omit.
        products: limits for products of attributes.

    Raises:
        TypeError: the body's parameters differ from the declared inputs.
        ValueError: another module declares an operator with the same name.
    """
    return lambda body: declare(ContribOperator(body, inputs, outputs, types, optional_outputs, products))
