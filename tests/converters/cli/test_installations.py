"""The errors of an installation without an extra name the ``pip install`` command."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.converters.cli import specops as runner

MODELS = Path(__file__).parents[3] / "models"
EXTRAS = ("onnxruntime_extensions", "openvino", "openvino_tokenizers", "tensorflow", "torch")
CONVERTER = ("lxml", "onnx_ir", "onnxscript", "rich", "typer")

BLOCK = """
import sys
sys.path[:] = {path!r}
sys.modules.update(dict.fromkeys({blocked!r}))
"""


def python(code: str, *blocked: str) -> subprocess.CompletedProcess[str]:
    """Run Python without the blocked modules."""
    script = BLOCK.format(path=sys.path, blocked=blocked) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)


def specops(*arguments: object, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run the command in a separate process."""
    argv = ["specops", *map(str, arguments)]
    code = f"sys.argv = {argv!r}\nfrom converters.cli import main\nmain()"
    return python(code, *without)


def test_imports_load_no_converter() -> None:
    done = python("import converters, onnx_specops, converters.openvino; print(onnx_specops.DOMAIN)", *EXTRAS, *CONVERTER)
    assert (done.returncode, done.stdout) == (0, "onnx_specops\n"), done.stderr


def converted(name: str, path: Path) -> Path:
    """Convert a model in this process."""
    assert runner.specops("convert", MODELS / name / "model.xml", "-o", path).exit_code == 0
    return path


def test_running_a_converted_model_needs_no_extra(tmp_path: Path) -> None:
    model = converted("recommender_int", tmp_path / "model.onnx")
    code = f"""
        import numpy as np, onnx_specops, warnings
        warnings.simplefilter("ignore")
        for kernels in ("auto", "none"):
            session = onnx_specops.InferenceSession({str(model)!r}, kernels=kernels)
            inputs = np.load({str(MODELS / "recommender_int" / "inputs.npz")!r})
            expected = np.load({str(MODELS / "recommender_int" / "expected.npz")!r})
            names = [output.name for output in session.get_outputs()]
            outputs = session.run(names, {{i.name: inputs[i.name] for i in session.get_inputs()}})
            for name, output in zip(names, outputs):
                np.testing.assert_allclose(output, expected[name], rtol=1e-4, atol=1e-5)
        print("equal")
    """
    done = python(code, *EXTRAS, *CONVERTER)
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stderr


def test_converting_needs_no_extra(tmp_path: Path) -> None:
    done = specops("convert", MODELS / "matmul" / "model.xml", "-o", tmp_path / "model.onnx", without=EXTRAS)
    assert (done.returncode, done.stderr) == (0, "")


def test_running_and_listing_do_not_load_the_converter(tmp_path: Path) -> None:
    model, inputs = converted("recommender_int", tmp_path / "model.onnx"), MODELS / "recommender_int" / "inputs.npz"
    for arguments in (("run", model, "--inputs", inputs), ("ops",)):
        done = specops(*arguments, without=("converters.openvino", "lxml"))
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("module", ["openvino", "openvino_tokenizers"])
def test_validating_without_openvino(module: str, tmp_path: Path) -> None:
    """The other runtimes are compared with each other, and the missing one is reported."""
    stub = tmp_path / module
    stub.mkdir()
    (stub / "__init__.py").write_text(f"raise ModuleNotFoundError('not there', name={module!r})")
    model = MODELS / "vocabulary_table" / "model.xml"
    code = f"""
        sys.path.insert(0, {str(tmp_path)!r})
        sys.argv = ["specops", "validate", {str(model)!r}]
        from converters.cli import main
        main()
    """
    done = python(code)
    name = module.replace("_", "-")
    assert f'OpenVINO, CPU: not run: {name} is not installed: pip install "onnx-specops[openvino]"' in done.stdout, (
        done.stderr
    )
    last = done.stdout.splitlines()[-1]
    assert last.startswith("agree: ONNX Runtime"), done.stdout
    assert done.returncode == 0


def test_checking_needs_openvino(tmp_path: Path) -> None:
    target = tmp_path / "model.onnx"
    done = specops("convert", MODELS / "matmul" / "model.xml", "-o", target, "--check", without=("openvino",))
    assert done.returncode == 2
    assert done.stderr == 'error: --check needs openvino, which is not installed: pip install "onnx-specops[openvino]"\n'
    assert not target.exists()


def test_python_kernels_without_the_extra(tmp_path: Path) -> None:
    target = converted("embedding_bag_offsets_sum", tmp_path / "model.onnx")
    done = specops("run", target, "--kernels", "python", without=("onnxruntime_extensions",))
    assert done.returncode == 2
    assert 'pip install "onnx-specops[python-kernels]"' in done.stderr
    assert "Traceback" not in done.stderr
    listed = specops("ops", without=("onnxruntime_extensions",))
    assert listed.returncode == 0
    assert 'no Python kernel of any operator: pip install "onnx-specops[python-kernels]"' in listed.stdout


def test_no_progress_without_a_terminal() -> None:
    done = specops("inspect", MODELS / "matmul" / "model.xml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
