"""What a tool is, whatever it works on, and the registry where tools are found; browser actions are
registered here too, as tools that only agents have.
"""
