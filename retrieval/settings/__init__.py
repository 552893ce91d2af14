"""Every setting, in one frozen tree; how it is loaded, reloaded, shown and documented."""

from retrieval.settings.tree import Settings

__all__ = ["Settings"]
