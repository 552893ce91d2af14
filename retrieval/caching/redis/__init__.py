"""The shared tier on Redis: the only owner of the client library `redis`."""
