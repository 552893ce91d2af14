"""Killing the parts of an indexing service in the middle of its work."""
