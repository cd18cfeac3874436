"""Write domain.json: the signatures that the version of the domain promises (docs/versioning.md).

python -m tests.data.make_domain
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onnx_specops.domain import OPSET_VERSION, Operator, operators

PATH = Path(__file__).with_name("domain.json")


def promised(operator: Operator) -> dict[str, Any]:
    """Return an operator's signature as plain data."""
    attributes = {a.name: None if a.required else a.default for a in operator.attributes.values()}
    return {
        "inputs": list(operator.inputs.items()),
        "optional": list(operator.optional),
        "outputs": list(operator.outputs.items()),
        "attributes": attributes,
        "types": {name: sorted(types) for name, types in operator.types.items()},
    }


def domain() -> dict[str, Any]:
    """Return all operators of the domain, with its version."""
    entries = {operator.name: promised(operator) for operator in operators()}
    return json.loads(json.dumps({"version": OPSET_VERSION, "operators": entries}))


if __name__ == "__main__":
    PATH.write_text(json.dumps(domain(), indent=1) + "\n")
