"""How a trial is judged: the protocol of its runs, the gates, and what they come to."""
