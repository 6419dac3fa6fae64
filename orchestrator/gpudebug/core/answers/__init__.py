"""What each command answers: `--json` is its dump, texts are rendered from it, schemas are its types."""
