"""OpenVINO as a runtime: in a process of its own, for results, layers and times to compare with."""
