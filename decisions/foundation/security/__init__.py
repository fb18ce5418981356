"""Secret keys, masking of secret values, redaction of logs."""
