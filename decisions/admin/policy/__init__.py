"""Admin pages of policy rules: the list, a rule, the form and its review, the test of a call."""
