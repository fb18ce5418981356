"""Secret keys, masking of secrets, log redaction."""
