"""What people see of calls: the context of a decision, and the calls that rules can be about."""
