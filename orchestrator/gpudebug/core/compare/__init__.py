"""Two or more commands against each other: which is faster, and what to look at."""
