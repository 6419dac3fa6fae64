"""What the sampler wrote of the devices: rows, tables, windows and conditions."""
