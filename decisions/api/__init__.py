"""Base classes of all REST views: authentication, throttling, arguments, error bodies, OpenAPI."""
