"""Commands that stand alone: init, doctor, demo, compare, analyze, clean."""
