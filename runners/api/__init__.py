"""REST views of targets and paired browsers."""
