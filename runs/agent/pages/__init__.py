"""Pages in an agent run: `page_state` reads them after calls, `observations` picks what the model
gets of them, and `pictures` takes screenshots for a model that can see.
"""
