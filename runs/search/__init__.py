"""How runs are found: their labels, the terms written with each, and the query of terms."""
