"""A training that runs already: its processes in /proc, and its Python stacks through py-spy."""

from __future__ import annotations

from gpudebug.edges.attach.target import AttachError, TargetJob, target

__all__ = ["AttachError", "TargetJob", "target"]
