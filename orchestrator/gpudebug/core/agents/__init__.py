"""What coding agents read: their instructions and the page of one session."""
