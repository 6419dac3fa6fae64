"""Secrets taken out of texts and records."""
