"""Chat templates: conversations as the text that a model expects, rendered with Jinja as in transformers."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.settings import read_json, read_optional_json

Message = Mapping[str, str]
"""``{"role": "user", "content": "..."}``; other roles are ``system`` and ``assistant``."""

_OLD_TOKENS = "special_tokens_map.json"
"""A file of older folders, whose tokenizer_config.json lacks ``added_tokens_decoder``."""

_FILE, _OLD_FILE, _TOKENIZER = "chat_template.jinja", "chat_template.json", "tokenizer_config.json"


class ChatTemplate:
    """A folder's chat template: ``chat_template.jinja``, or the one in ``chat_template.json`` or ``tokenizer_config.json``.

    Args:
        folder: a model's folder.

    Raises:
        GenerationError: the folder has no template, the template is invalid, or the package ``jinja2`` is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._place, text, self._tokens = _found(folder)
        try:
            import jinja2
            from jinja2.ext import Extension
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError:
            raise GenerationError("a chat template requires the package jinja2: pip install 'onnx-specops[chat]'") from None

        class Generation(Extension):
            """``{% generation %}``, which marks the assistant's text and does not change it."""

            tags = {"generation"}  # noqa: RUF012 (as jinja2 has it)

            def parse(self, parser: Any) -> Any:
                next(parser.stream)
                return parser.parse_statements(("name:endgeneration",), drop_needle=True)

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
        )
        environment.filters["tojson"] = _as_json
        environment.globals |= {"raise_exception": _reject, "strftime_now": _now}
        self._error = jinja2.TemplateError
        try:
            self._template = environment.from_string(text)
        except jinja2.TemplateError as error:
            raise GenerationError(f"{self._place} is not a valid chat template: {error}") from error

    def render(self, messages: Sequence[Message]) -> str:
        """Return the text of a conversation that the assistant continues.

        Raises:
            GenerationError: the template rejects these messages.
        """
        try:
            told = {"messages": list(messages), "add_generation_prompt": True, "tools": None, "documents": None}
            return self._template.render(**self._tokens, **told)
        except (
            self._error, ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError
        ) as error:  # fmt: skip
            raise GenerationError(f"{self._place} rejects this conversation: {error}") from error


def _found(folder: Path) -> tuple[Path, str, dict[str, str]]:
    """Return the template's file, its text, and the special tokens that it may use."""
    path = folder / _TOKENIZER
    settings = read_optional_json(path)
    older = {} if "added_tokens_decoder" in settings else read_optional_json(folder / _OLD_TOKENS)
    stated = {**settings, **older}
    tokens = {name: text for name, value in stated.items() if name.endswith("_token") and (text := _text(value)) is not None}
    if (folder / _FILE).is_file():
        try:
            return folder / _FILE, (folder / _FILE).read_text(encoding="utf-8"), tokens
        except (OSError, ValueError) as error:
            raise GenerationError(f"{folder / _FILE} cannot be read: {error}") from error
    old = folder / _OLD_FILE
    template = read_json(old).get("chat_template") if old.is_file() else settings.get("chat_template")
    if isinstance(template, list):  # several templates, by name
        named = {one.get("name"): one.get("template") for one in template if isinstance(one, dict)}
        template = named.get("default")
    if not isinstance(template, str):
        raise GenerationError(f"{folder} has no chat template, neither in {_FILE} nor in {_TOKENIZER}")
    return (old if old.is_file() else path), template, tokens


def _text(token: Any) -> str | None:
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def _as_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **more: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)


def _reject(message: str) -> NoReturn:
    raise ValueError(message)


def _now(form: str) -> str:
    return datetime.datetime.now().strftime(form)
