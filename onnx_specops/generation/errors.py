"""Errors of text generation."""

from __future__ import annotations


class GenerationError(ValueError):
    """A folder cannot be used for generation, or the model does not support a prompt."""


class SettingWarning(UserWarning):
    """generation_config.json contains settings that transformers applies and this package ignores."""
