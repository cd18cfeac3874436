"""Folders of models as optimum-intel writes them: one or several IRs, and the files that belong to them."""
