"""The script language of the visual novel engine WebGAL: its parser, the checks of a script, and a
game's resources (S4 §2.1, §2.2).
"""
