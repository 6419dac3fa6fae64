"""Values in, values out: opens no file, reads no clock, starts no process."""
