"""The commands that agents and their supervisors use."""
