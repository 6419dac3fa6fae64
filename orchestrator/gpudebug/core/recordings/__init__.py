"""Recordings that other programs made: what they are, and their rows in the columns of ours."""
