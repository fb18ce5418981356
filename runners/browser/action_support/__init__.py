"""Code that several browser actions share: the task's tab, element index, input strategies."""
