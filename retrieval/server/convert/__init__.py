"""Protobuf messages to values and back: pure functions, one module a subject."""
