"""What `doctor --gpu` makes a GPU do, and whether what was sampled of it agrees."""
