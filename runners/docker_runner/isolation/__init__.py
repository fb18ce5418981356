"""How a command line is kept away from the rest of the machine: one way a file."""
