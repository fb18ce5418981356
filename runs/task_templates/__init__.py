"""Templates, one a file; `registry` finds them."""
