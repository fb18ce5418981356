"""Risky actions in Chinese; `grammar` tells doing from talking."""
