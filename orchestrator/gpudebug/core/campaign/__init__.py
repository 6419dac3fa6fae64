"""Where a campaign stands: what is next, what was gained, what is accepted."""
