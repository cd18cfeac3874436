"""Folders of models as optimum-intel writes them: IRs and their companion files."""
