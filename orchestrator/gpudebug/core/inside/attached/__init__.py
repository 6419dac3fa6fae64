"""What is seen of a training from outside: stacks that py-spy read, and what /proc says of its processes."""
