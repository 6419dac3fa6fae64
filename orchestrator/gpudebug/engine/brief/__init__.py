"""The page that a session of an agent begins with."""
