"""Answers that may be used again: which question equals which, on what evidence, at what risk."""
