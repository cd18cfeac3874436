"""IR of versions 2 to 7 against the Inference Engine of 2020."""
