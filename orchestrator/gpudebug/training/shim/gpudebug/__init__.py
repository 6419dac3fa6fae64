"""gpudebug for a training's Python that has none installed: the same package, from where the launcher is.

Only its training side can be used there: the rest needs packages, and a newer Python.
"""

import os

__path__ = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))]
__file__ = os.path.join(__path__[0], "__init__.py")

# One list of names and one way to load them: those of the package itself.
with open(__file__, encoding="utf-8") as _file:
    exec(compile(_file.read(), __file__, "exec"))
