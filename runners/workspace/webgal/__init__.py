"""The script language of the visual novel engine WebGAL: its grammar, what is wrong with a script,
and the resources of a game (S4 §2.1, §2.2).
"""
