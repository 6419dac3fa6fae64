"""Means, intervals, contrasts and the numbers that are shown of them."""
