"""Deep files: layers that are repeated 700 times, values with 2^40 paths to them, nested bodies, and enormous sizes.

A search that recurs along a graph fails on the first, one without a memory on the second. `net` writes the files, `repeated`
has the forms, and the other modules have the contents. `target` runs them with all options.
"""
