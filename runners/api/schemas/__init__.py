"""JSON Schemas of targets and paired browsers."""
