"""The warden: a small process that starts one command, watches it and ends its whole tree.

Standard library only, and nothing of gpudebug: it runs isolated, without site-packages, and starts in some
20 ms. Modules here import each other relatively: in the warden's process the package is `warden`, while
gpudebug itself uses the same containment when a warden is lost.
"""
