"""A campaign as it stands: its files, settings, claims, worktrees and acceptances."""
