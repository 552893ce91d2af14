"""The job store in one SQLite file."""
