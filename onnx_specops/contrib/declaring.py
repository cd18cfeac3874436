"""The decorator that declares an operator of ONNX Runtime's own by its body in standard ONNX::

    @contrib_operator(inputs={"X": "T", "bias": "T"}, outputs={"Y": "T"}, types={"T": ("float16", "float")})
    def BiasOperator(op, X, bias=None, *, epsilon: float = 1e-5):
        '''Docstring: what the operator computes.'''
        return op.Add(X, bias)

    @BiasOperator.infer_shapes
    def _(node):
        return [node.shape(0)]

The signature behind ``op`` is the operator's, as ONNX Runtime has it: inputs and attributes with their names, optional ones
with ``None``; type variables bear ONNX Runtime's names, for its kernel table says by those which types it computes in.
Inputs, outputs, attributes and types may be left out that no converted model has. A body consists of standard ONNX alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx_specops.domain import CONTRIB_DOMAIN, Declaration, Product, declare


class ContribOperator(Declaration):
    """An operator of ONNX Runtime's own, whose kernels it has itself."""

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
    """Declare an operator of ONNX Runtime's own by its body; see the module's docstring.

    Args:
        inputs: input name -> type variable or type, in order.
        outputs: output name -> type variable or type, in order; the body gives them all.
        types: type variable -> the element types that it admits.
        optional_outputs: how many of the last outputs a node may leave out.
        products: limits of what several attributes ask for together.

    Raises:
        TypeError: where the body's parameters are not the declared inputs.
        ValueError: where another module declares an operator of that name.
    """
    return lambda body: declare(ContribOperator(body, inputs, outputs, types, optional_outputs, products))
