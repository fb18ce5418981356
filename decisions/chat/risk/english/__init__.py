"""Risky actions in English, a class a file; `grammar` tells doing from talking."""
