"""REST views of the Continuity API and the audit log, and the confirmation page."""
