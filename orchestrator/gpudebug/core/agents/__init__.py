"""What coding agents are told: their instructions and the page of one session."""
