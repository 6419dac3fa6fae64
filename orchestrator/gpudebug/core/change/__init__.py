"""A change to the training: flags, variables, sweeps and patches."""
