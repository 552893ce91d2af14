"""Answers from a context: the protocol of a backend, and the two that there are."""
