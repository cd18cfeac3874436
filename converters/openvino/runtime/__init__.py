"""OpenVINO as a runtime in a separate process, for the comparison of results, layers and times."""
