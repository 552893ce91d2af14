"""A collection moves to another embedding model while it serves: who asks for it, what is measured before."""
