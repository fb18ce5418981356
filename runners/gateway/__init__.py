"""Calls of tools on somebody's docker-runner, over HTTP (S3): what is sent, and what is made of
the answer.
"""
