"""One run: prepared, launched under the sampler, read back."""
