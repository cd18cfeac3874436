"""The table's rows by library."""
