"""What a tool is (S0: a function that callers call by name), and the registry that finds tools.

A browser action (S1) is registered here too, as a tool that only agents have.
"""
