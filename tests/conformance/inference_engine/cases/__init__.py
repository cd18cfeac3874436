"""Cases of layers, in modules by family."""
