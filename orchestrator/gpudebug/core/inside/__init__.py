"""What goes on inside the training: probe, sections, stacks and the torch profiler."""
