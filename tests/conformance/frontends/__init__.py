"""Models of other frameworks: what OpenVINO's frontends make of them, compared with the frameworks themselves."""
