"""Results as self-contained HTML pages, with a light and a dark theme."""
