"""One YAML document read with the line of everything in it, and what is wrong there."""
