"""Models of other frameworks through OpenVINO's frontends, compared with the frameworks."""
