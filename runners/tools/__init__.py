"""The definition of a tool, and the registry where tools are found."""
