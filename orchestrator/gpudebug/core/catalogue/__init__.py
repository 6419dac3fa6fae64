"""The root causes that gpudebug knows: their schema, reading, and what they say of evidence."""
