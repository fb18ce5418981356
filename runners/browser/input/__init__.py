"""Input into a page: find an element, press and type, and check which element received it.

Tools and actions share it; which tab gets the input is decided in `tabs`.
"""
