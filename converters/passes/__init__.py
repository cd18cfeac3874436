"""Steps over the finished graph, one job each."""
