"""A training program's output, read without configuration: losses, steps, work, rewards, rates, failure."""
