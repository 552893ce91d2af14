"""The job store in Redis, for workers on several machines."""
