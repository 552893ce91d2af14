"""Traces: what is asked and what changes meanwhile, by a documented law and a seed."""
