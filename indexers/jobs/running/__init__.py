"""Carries out runs: scan, read, write, verify, delete what is gone, report."""
