"""Simplification of the Loops that TensorFlow writes for recurrent layers: trip counts instead of counters, no guards, no
lists.

OpenVINO's frontend writes a Loop without a trip count. Its condition compares counters with limits. Each iteration gathers a
step of a tensor, with a guard against an index that is out of range, and writes its result to a list.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx_ir.passes import InPlacePass

from converters.passes.while_loops.cells import FuseCells, RepeatRows
from converters.passes.while_loops.counting import CountIterations
from converters.passes.while_loops.guards import DropGuards
from converters.passes.while_loops.lists import JoinSteps

__all__ = ["CountIterations", "DropGuards", "FuseCells", "JoinSteps", "RepeatRows", "while_loops"]


def while_loops() -> Sequence[InPlacePass]:
    """Return the passes in order."""
    return [CountIterations(), DropGuards(), RepeatRows(), JoinSteps(), FuseCells()]
