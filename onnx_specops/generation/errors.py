"""Errors of text generation."""

from __future__ import annotations


class GenerationError(ValueError):
    """A folder cannot be used for generation, or a prompt does not suit the model."""
