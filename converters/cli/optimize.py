"""``specops optimize``: replace operators of an ONNX model by faster ones, for sessions of other programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from converters.cli.console import out, print_json
from converters.cli.failures import failures
from converters.cli.options import Debug, Json

if TYPE_CHECKING:
    from onnx import NodeProto


def optimize(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL.onnx", help="The ONNX model. It does not have to be a converted one.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT.onnx", help="The file to write.")],
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Replace operators of an ONNX model by custom ones with faster native kernels, for sessions of other programs."""
    with failures(as_json, debug):
        import onnx_specops
        from converters.outputs import Outputs, reject_inputs
        from converters.validation.onnx_model import OnnxModel, all_nodes, check_is_onnx, files_of

        check_is_onnx(model)
        files = files_of(model)
        reject_inputs([output], files)
        if len(files) > 1 and output.parent.resolve() != model.parent.resolve():
            raise ValueError(f"{model} reads its weights from {files[1]}; write the output to the folder of the model")
        before = OnnxModel.load(model).proto
        after = onnx_specops.optimize(before)
        replaced = _operators(all_nodes(after.graph)) - _operators(all_nodes(before.graph))
        if replaced:
            after = onnx_specops.add_bodies(after)
        with Outputs(files) as outputs, outputs.open(output) as file:
            file.write(after.SerializeToString())
        if as_json:
            print_json({"model": str(model), "output": str(output), "replaced": dict(replaced)})
            return
        out.print(f"{output}", highlight=False, soft_wrap=True, markup=False)
        for operator, count in replaced.most_common():
            out.print(f"  {count} {operator}", highlight=False)
        if not replaced:
            out.print("  no operator has a faster kernel; the file is a copy", highlight=False)


def _operators(nodes: Iterable[NodeProto]) -> Counter[str]:
    """Count the custom operators."""
    from onnx_specops import DOMAIN

    return Counter(node.op_type for node in nodes if node.domain == DOMAIN)
