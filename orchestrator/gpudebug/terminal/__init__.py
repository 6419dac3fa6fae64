"""The answers of the engine as text for people: plain, aligned, within 80 columns where it can be."""
