"""A training command: its words, the program that it starts, its batch, loader and packages."""
