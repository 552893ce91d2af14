"""Reads files that nobody vouches for: guards for archives and XML, and child processes that parse under limits."""
