"""A campaign's state: its files, settings, claims, worktrees and acceptances."""
