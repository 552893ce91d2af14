"""Backups of collections: made while they are served, checked before anything is replaced."""
