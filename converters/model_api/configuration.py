"""The parameters of Model API's wrappers in ``model_info``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from converters.errors import Malformed

_PREFIX = "model_info "


@dataclass(frozen=True)
class Configuration:
    """The parameters of a model's wrapper.

    Attributes:
        stated: the texts of ``model_info``, by parameter.
        defaults: the defaults of parameters that differ from those of Model API's ``ImageModel``.
    """

    stated: Mapping[str, str]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, information: Mapping[str, str]) -> Configuration:
        """Return the ``model_info`` of run-time information, whose nested names are joined by a blank."""
        return cls({k.removeprefix(_PREFIX): v for k, v in information.items() if k.startswith(_PREFIX)})

    def with_defaults(self, **defaults: Any) -> Configuration:
        """Return a copy with the defaults of a wrapper."""
        return Configuration(self.stated, {**self.defaults, **defaults})

    def stating(self, **stated: str) -> Configuration:
        """Return a copy with other texts of some parameters."""
        return Configuration({**self.stated, **stated}, self.defaults)

    def _text(self, name: str) -> str | None:
        text = self.stated.get(name)
        return None if text in (None, "None") else text

    def text(self, name: str, default: str = "", choices: Sequence[str] = ()) -> str:
        """Return a text, which must be one of ``choices`` if there are any."""
        value = self._text(name) or self.defaults.get(name, default)
        if choices and value not in choices:
            raise Malformed(f"model_info/{name} is {value!r}; expected one of {', '.join(choices)}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a boolean: ``True`` or ``YES`` is true, any other text false, as in Model API."""
        text = self._text(name)
        return bool(self.defaults.get(name, default)) if text is None else text in ("YES", "True")

    def number(self, name: str, default: float | None = None) -> Any:
        """Return a number or the default."""
        text = self._text(name)
        if not text:
            return self.defaults.get(name, default)
        try:
            return float(text)
        except ValueError:
            raise Malformed(f"model_info/{name} is {text!r}; expected a number") from None

    def whole(self, name: str, default: int | None = None) -> Any:
        """Return an integer or the default."""
        value = self.number(name, default)
        if value is None:
            return None
        if int(value) != value:
            raise Malformed(f"model_info/{name} is {self.stated.get(name)!r}; expected an integer")
        return int(value)

    def numbers(self, name: str) -> list[float]:
        """Return a list of numbers, separated by blanks."""
        text = self._text(name)
        if text is None:
            return list(self.defaults.get(name, ()))
        try:
            return [float(item) for item in text.split()]
        except ValueError:
            raise Malformed(f"model_info/{name} is {text!r}; expected numbers") from None

    @property
    def labels(self) -> list[str]:
        """The names of the classes; empty if the model has none."""
        return (self._text("labels") or "").split()
