"""The cost of importing, and the errors of an installation without extras."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib import resources

BLOCK = """
    import sys
    class Block:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in BLOCKED:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Block())
"""


def python(code: str, blocked: tuple[str, ...] = ()) -> str:
    script = f"BLOCKED = {blocked!r}\n" + textwrap.dedent(BLOCK) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_needs_no_extra() -> None:
    extras = ("onnxruntime_extensions", "openvino", "openvino_tokenizers", "torch", "tensorflow", "onnx_ir", "lxml", "rich")
    assert python("import onnx_specops; print(onnx_specops.DOMAIN)", extras) == "onnx_specops"


def test_importing_loads_three_packages_only() -> None:
    code = """
        import sys
        import numpy, onnx, onnxruntime
        before = set(sys.modules)
        import onnx_specops
        new = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(sorted(new - set(sys.stdlib_module_names)))
    """
    assert python(code) == "['onnx', 'onnx_specops']"


def test_importing_does_not_load_the_heavy_modules() -> None:
    code = "import onnx_specops; print({'onnxruntime', 'onnx_ir', 'onnxruntime_extensions'} & set(sys.modules))"
    assert python(code) == "set()"


def test_python_kernels_without_the_extra() -> None:
    code = """
        import onnx_specops, onnxruntime
        for call in (
            lambda: onnx_specops.register(onnxruntime.SessionOptions(), "python"),
            lambda: onnx_specops.InferenceSession(b"", kernels="python"),
        ):
            try:
                call()
            except ImportError as error:
                print(error)
    """
    lines = python(code, ("onnxruntime_extensions",)).splitlines()
    assert len(lines) == 2
    assert all('pip install "onnx-specops[python-kernels]"' in line for line in lines)


def test_auto_without_the_extra() -> None:
    code = """
        import onnx_specops, onnxruntime, warnings
        warnings.simplefilter("ignore")
        options = onnxruntime.SessionOptions()
        onnx_specops.register(options)
        print("registered")
    """
    assert python(code, ("onnxruntime_extensions",)) == "registered"


def test_the_public_names() -> None:
    code = """
        import onnx_specops
        print({*onnx_specops.__all__, "ops", "__version__"} <= {*dir(onnx_specops)})
        print(all(hasattr(onnx_specops, name) for name in onnx_specops.__all__))
        try:
            onnx_specops.nothing
        except AttributeError as error:
            print(error)
    """
    assert python(code).splitlines() == ["True", "True", "module 'onnx_specops' has no attribute 'nothing'"]


def test_the_packages_have_a_py_typed_file() -> None:
    for package in ("onnx_specops", "converters"):
        assert (resources.files(package) / "py.typed").is_file()
