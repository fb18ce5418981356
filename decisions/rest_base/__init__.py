"""What the REST views of all parts are made of: base class, authentication, arguments, OpenAPI."""
