"""The user's own patterns, which beat everything that is read without them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpudebug.core.errors import ConfigError
from gpudebug.core.text.expressions import Expression, Unbounded, bounded

GROUP = "value"
SIMPLER = r"write it with fewer repeats, as in loss[=:]\s*(?P<value>\S+)"


def compile_patterns(patterns: Mapping[str, str] | None) -> dict[str, Expression]:
    """`log:` of the configuration compiled; ConfigError for one that is no expression, lacks the group, or
    could take for ever on some line."""
    compiled: dict[str, Expression] = {}
    for name, pattern in (patterns or {}).items():
        try:
            compiled[name] = bounded(pattern)
        except Unbounded as error:
            raise ConfigError(f"log.{name}: {pattern!r} {error}", next=SIMPLER) from None
        except (re.error, RecursionError, OverflowError) as error:
            raise ConfigError(
                f"log.{name}: not a regular expression: {error}", next=f"mend the pattern {pattern!r}"
            ) from error
        if GROUP not in compiled[name].pattern.groupindex:
            raise ConfigError(
                f"log.{name}: the pattern {pattern!r} has no group named `{GROUP}`",
                next=f"put (?P<{GROUP}>...) around the number",
            )
    return compiled
