"""The only join of core and edges. `cycle/next.py` is one `gpudebug next` on one screen."""
