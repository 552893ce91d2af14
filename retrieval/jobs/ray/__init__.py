"""Runs of jobs over a Ray cluster; needs the extra `ray`."""
