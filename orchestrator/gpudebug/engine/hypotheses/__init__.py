"""What a person or an agent does with a hypothesis: propose, reopen, accept, export."""
