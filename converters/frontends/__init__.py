"""Models of other frameworks, which OpenVINO's frontends read."""
