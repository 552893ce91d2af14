"""A collection moves to another model: what every store's migration offers, and how an embedded one does it."""
