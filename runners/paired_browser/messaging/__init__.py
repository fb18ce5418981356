"""Redis between the web processes that have the sockets and the processes that call browsers."""
