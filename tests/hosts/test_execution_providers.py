"""Sessions with other execution providers of the installed onnxruntime before the CPU provider.

pytest tests/hosts/test_execution_providers.py
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

import onnx_specops
from converters.openvino import convert
from onnx_specops.domain import DOMAIN
from onnx_specops.runtime.library import has_library

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "models" / "recommender_int"
CPU = "CPUExecutionProvider"
# The CPU provider is last. The plain wheel has Azure's before it, onnxruntime-gpu, -directml, ... have others. TensorRT's
# needs a library that no wheel contains.
AVAILABLE = [name for name in ort.get_available_providers() if name != "TensorrtExecutionProvider"]
ASSIGNMENTS = "session.record_ep_graph_assignment_info"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("providers") / "model.onnx"
    convert(MODEL / "model.xml", path)
    return path


def session_of(model: Path, providers: list[str], kernels: Any) -> onnx_specops.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry(ASSIGNMENTS, "1")
    return onnx_specops.InferenceSession(model, options, providers, kernels=kernels)


def assigned(session: ort.InferenceSession) -> Counter[tuple[str, str]]:
    """Return the number of nodes of each domain and provider."""
    if not hasattr(session, "get_provider_graph_assignment_info"):
        pytest.skip("this release of ONNX Runtime does not report the provider of each node")
    parts = session.get_provider_graph_assignment_info()
    return Counter((part.ep_name, node.domain) for part in parts for node in part.get_nodes())


@pytest.mark.parametrize("kernels", ["native", "none"])
@pytest.mark.parametrize("providers", [AVAILABLE, AVAILABLE[::-1], [CPU]], ids=["theirs first", "CPU first", "CPU"])
def test_providers_have_the_requested_order(model: Path, providers: list[str], kernels: str) -> None:
    if kernels == "native" and not has_library():
        pytest.skip("the native kernels are not built")
    session = session_of(model, providers, kernels)
    assert session.get_providers() == providers
    inputs, expected = np.load(MODEL / "inputs.npz"), np.load(MODEL / "expected.npz")
    names = ["user_ids", "scores", "best_items", "best_probabilities"]
    for name, got in zip(names, session.run(names, dict(inputs)), strict=True):
        np.testing.assert_allclose(got, expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_the_domain_s_nodes_stay_on_the_cpu_with_kernels(model: Path) -> None:
    if not has_library():
        pytest.skip("the native kernels are not built")
    found = assigned(session_of(model, AVAILABLE, "native"))
    assert {provider for provider, domain in found if domain == DOMAIN} == {CPU}


def test_bodies_run_on_all_providers(model: Path) -> None:
    """The remaining nodes are standard ONNX and ONNX Runtime's own, and each provider runs those that it supports."""
    found = assigned(session_of(model, AVAILABLE, "none"))
    assert sum(found.values()) and not [domain for _, domain in found if domain == DOMAIN]


def test_a_missing_provider_is_reported(model: Path) -> None:
    absent = next(name for name in ("CUDAExecutionProvider", "DmlExecutionProvider") if name not in AVAILABLE)
    with pytest.warns(UserWarning, match=absent):
        session = session_of(model, [absent, CPU], "none")
    assert session.get_providers() == [CPU]
