"""Deep files: layers that are repeated 700 times, values with 2^40 paths to them, nested bodies, and enormous sizes.

A recursive search fails on the layers, and a search that visits values more than once fails on the paths. `net` writes the
files, `repeated` repeats layers, and the other modules define the layers. `target` runs them with all options.
"""
