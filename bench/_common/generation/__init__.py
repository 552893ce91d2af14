"""Servers of language models for the tools, with programmable delays and exact counts."""
