"""The time of the product's operations with millions of rows, beside an empty database."""
