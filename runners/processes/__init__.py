"""Programs that end with all the processes that they started, even if this process is killed."""
