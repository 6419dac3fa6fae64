"""What a sample is read from."""
