"""The table's rows by the libraries that the networks come from."""
