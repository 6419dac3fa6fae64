"""Evidence -> ranked root causes -> the hypotheses that would prove them."""
