"""REST views of the Continuity API and the audit log; decisions/rest_base has their base class."""
