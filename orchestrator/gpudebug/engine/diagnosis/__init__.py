"""Why the device waits: the case, its causes and what is offered to test."""
