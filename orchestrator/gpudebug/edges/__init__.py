"""One outside thing each; edges never import each other."""
