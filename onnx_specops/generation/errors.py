"""What makes it impossible to generate text."""

from __future__ import annotations


class GenerationError(ValueError):
    """A folder that no text can be made with, or a prompt that does not fit the model."""
