"""Conversations made of labelled questions, and what each way to search their follow-ups finds."""
