"""PyTorch networks with random weights in their real dimensions, for files that benchmarks measure."""
