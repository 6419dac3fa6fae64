"""What `status` and `watch` tell."""
