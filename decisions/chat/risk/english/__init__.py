"""Risky actions in English, one class per module; `grammar` tells requests from mentions."""
