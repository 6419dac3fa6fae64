"""Runs that are under way, read from their files."""
