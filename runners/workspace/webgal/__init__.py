"""The script language of WebGAL, a visual novel engine: its grammar, what is wrong with a script, and
the resources of a game (S4 §2.1, §2.2).
"""
