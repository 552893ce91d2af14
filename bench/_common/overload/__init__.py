"""Overload: what comes of answers when more are asked for than a model server can give."""
