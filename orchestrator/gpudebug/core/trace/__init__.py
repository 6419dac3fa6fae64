"""Kineto and Chrome traces: where the device idles, what the host did meanwhile, what ran."""
