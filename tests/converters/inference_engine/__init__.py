"""IR of versions 2 to 7."""
