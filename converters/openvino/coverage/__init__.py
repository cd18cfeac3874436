"""OpenVINO's operations, and how the converter supports them."""
