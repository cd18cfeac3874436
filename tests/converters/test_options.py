"""Each option is defined once: the signature of `convert`, the command and its page agree."""

from __future__ import annotations

import inspect
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from converters.cli.derived import parameters, parsed
from converters.openvino import convert
from converters.options import OPSET, Option, OptionError, Options, in_command, in_docstring, options, plain
from onnx_specops import building
from tests.converters.cli.specops import specops

ROOT = Path(__file__).parents[2]


def test_the_signature_of_convert() -> None:
    keywords = [one for one in inspect.signature(convert).parameters.values() if one.kind is one.KEYWORD_ONLY]
    assert [(one.name, one.annotation, one.default) for one in keywords] == [
        (one.name, one.annotation, one.default) for one in options()
    ]


@pytest.mark.parametrize("one", options(), ids=lambda one: one.name)
def test_every_option_has_a_description(one: Option) -> None:
    said = one.description
    assert said.help.endswith(".") and said.help[0].isupper()
    assert convert.__doc__ is not None
    words = " ".join(convert.__doc__.split())
    assert in_docstring(one)[1:] in words
    if not said.in_command:
        return
    page = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
    for flag in [flag for flag, _ in said.flags.values()] or [one.flag]:
        assert f"| `{flag}" in page, flag


def test_the_command_has_every_option() -> None:
    text = "".join(specops("convert", "--help").stdout.split())
    for one in options():
        for flag in [flag for flag, _ in one.description.flags.values()] or [one.flag]:
            assert (flag in text) == one.description.in_command, flag


def test_the_defaults_are_the_same() -> None:
    """The command without options converts like `convert`."""
    assert parsed({one.name: one.default for one in parameters()}) == Options(input_shapes={}, rename={})
    assert OPSET == building.OPSET


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"fp16": True, "weights": "copy"}, {"precision": "float16", "weights": "copy"}),
        ({"fp32": True, "contrib": False}, {"precision": "float32", "contrib": False}),
        ({"genai": True, "kv_cache": "uint8"}, {"form": "genai", "kv_cache": "uint8"}),
        ({"input_shapes": ["x=1x?"], "rename": ["a=b"]}, {"input_shapes": {"x": [1, -1]}, "rename": {"a": "b"}}),
        ({"outputs": ["a,b"], "opset": 13, "verify": True}, {"outputs": ["a,b"], "opset": 13, "verify": True}),
    ],
)
def test_command_line_values(given: dict[str, Any], told: dict[str, Any]) -> None:
    assert parsed({one.name: one.default for one in parameters()} | given) == Options(
        **{"input_shapes": {}, "rename": {}, **told}
    )


@pytest.mark.parametrize(
    ("given", "in_python", "typed"),
    [
        (
            {"weights": "zip"},
            "weights must be 'auto', 'embed', 'copy' or 'reference', not 'zip'",
            "--weights must be 'auto'",
        ),
        ({"kv_cache": "uint8"}, "kv_cache requires form='genai': in OpenVINO's form", "--kv-cache requires --genai: "),
        ({"logits": "all"}, "logits requires form='genai': in OpenVINO's form", "--logits requires --genai: "),
        (
            {"outputs": ["y"], "form": "genai"},
            "outputs cannot be combined with form='genai'",
            "--outputs cannot be combined with --genai",
        ),
        ({"precision": "float16", "weights": "reference"}, "weights that are converted to float16", "converted to float16"),
        (
            {"target": "cuda", "form": "genai", "kv_cache": "uint8"},
            "kv_cache='uint8' cannot be combined with target='cuda': CUDA's GroupQueryAttention",
            "--kv-cache uint8 cannot be combined with --target cuda",
        ),
        (
            {"target": "cuda", "activations": "int8"},
            "activations='int8' cannot be combined with target='cuda': CUDA's matrix multiplication",
            "--activations int8 cannot be combined with --target cuda",
        ),
        ({"opset": 10}, "opset must be 11 or more, not 10", "--opset must be 11 or more"),
        ({"positions": 0}, "positions must be 1 or more, not 0", "--positions must be 1 or more"),
    ],
)
def test_invalid_combinations(given: dict[str, Any], in_python: str, typed: str) -> None:
    with pytest.raises(OptionError) as caught:
        Options(**given)
    assert in_python in str(caught.value)
    assert typed in plain(caught.value.template, in_command)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"kv_cache": "uint8", "form": "genai"},
        {"target": "cuda", "form": "genai", "kv_cache": "float16"},
        {"precision": "float16", "weights": "copy"},
        {"weights": "reference"},
    ],
)
def test_valid_combinations(given: dict[str, Any]) -> None:
    """The near misses of invalid combinations."""
    options = Options(**given)
    assert pickle.loads(pickle.dumps(options)) == replace(options)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--kv-cache", "uint8"), "Invalid value for --kv-cache: it requires --genai"),
        (("--fp16", "--weights", "reference"), "--weights must be"),
        (("--fp16", "--fp32"), "it cannot be combined with --fp32"),
        (("--outputs", "y", "--genai"), "it cannot be combined with --genai"),
    ],
)
def test_the_command_rejects_invalid_combinations(arguments: tuple[str, ...], told: str) -> None:
    result = specops("convert", "a.xml", *arguments)
    assert result.exit_code == 2
    assert told in re.sub(r"[\s│]+", " ", result.stderr)
