"""Coding agents: their instructions, one session of one, and the loop over many."""
