"""Converted models in other programs' hands: each test is skipped, with the reason, where the host is not installed."""
