"""What one run shows: built from its files, and whether records are sound."""
