"""Workspace tools: read, change, check and preview the files of a project folder (S4).

Nothing here imports Django or an app of this project.
"""
