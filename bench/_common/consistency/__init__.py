"""A simulation of servers that share caches: whatever happens to them, no answer is old or another tenant's."""
