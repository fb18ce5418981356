"""A fleet on a real container engine, started by the documented commands: `make fleet-trial`."""
