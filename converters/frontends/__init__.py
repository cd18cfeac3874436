"""Models of other frameworks that OpenVINO's frontends read."""
