"""The only join of core and edges. `cycle.py` is the contents page: one `gpudebug next` on one screen."""
