"""Late interaction in many shapes: how good each is, what a passage costs in bytes, and how long scoring takes."""
