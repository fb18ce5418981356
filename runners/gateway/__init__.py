"""The HTTP client of docker-runners (S3): requests, connections and parsing of responses."""
