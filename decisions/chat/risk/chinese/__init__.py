"""Risky actions in Chinese; `grammar` distinguishes requests from other mentions."""
