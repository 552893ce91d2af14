"""Requests to backends: who waits and how long, which server is asked, and what happens when it fails."""
