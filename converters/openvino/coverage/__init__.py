"""What there is to convert in OpenVINO's opsets, and what this converter makes of it."""
