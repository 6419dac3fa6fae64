"""Runs that are compared: baselines, trials, and how they are judged."""
