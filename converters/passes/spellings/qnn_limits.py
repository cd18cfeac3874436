"""Numbers and dimensions that Qualcomm's HTP supports."""

from __future__ import annotations

LOWEST = -60000.0
"""A number near the lowest of float16. Its Sigmoid and Gelu are 0, and its Tanh is -1."""

MOST_DIMENSIONS = 4
"""The most dimensions of elementwise operators, Pad and TopK."""
