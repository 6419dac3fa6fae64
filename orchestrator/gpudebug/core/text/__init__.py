"""Texts of others: units, words, Markdown, JSON, expressions."""
