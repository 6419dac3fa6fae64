"""gpudebug finds why a GPU sits idle in training, one measured hypothesis at a time."""

__version__ = "0.1.0"
