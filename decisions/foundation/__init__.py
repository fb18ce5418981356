"""What every part uses and none owns: ids, clock, threads, database errors, keys, masking, limits
of JSON, schemas, formatting, errors. It imports nothing else of the project.
"""
