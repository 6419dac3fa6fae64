"""The answers of the engine as text for people: plain, aligned, within 80 columns if possible."""
