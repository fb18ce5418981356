"""The connection to the database: what its errors mean, when a connection is replaced, how long a
statement waits for a lock. Models and queries are elsewhere.
"""
