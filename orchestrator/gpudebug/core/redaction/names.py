"""The names whose values are secrets: of flags, variables and keys, judged by their last part, so that
`--max_tokens`, `TOKENIZERS_PARALLELISM` and `image_key` stay readable."""

from __future__ import annotations

from collections.abc import Sequence

_HARMLESS_KEYS = (
    *("image", "images", "text", "sort", "video", "label", "column", "dataset", "feature", "batch", "map"),
    *("cache", "primary", "foreign", "group", "target", "loss", "audio", "state", "action", "obs", "input"),
    *("observation", "output", "prompt", "answer", "question", "metric", "monitor", "score", "index", "data"),
    *("message", "messages", "template", "field", "frame", "camera", "reward", "query", "public", "mask"),
    *(
        "checkpoint",
        "ckpt",
        "model",
        "rng",
        "prng",
        "random",
        "cond",
        "stage",
        "train",
        "val",
        "test",
        "task",
    ),
    *(
        "layer",
        "policy",
        "chosen",
        "rejected",
        "response",
        "tag",
        "dict",
        "params",
        "module",
        "embed",
        "head",
    ),
)
_HARMLESS_TOKENS = (
    *(
        "pad",
        "eos",
        "bos",
        "unk",
        "sep",
        "cls",
        "mask",
        "image",
        "video",
        "audio",
        "stop",
        "add",
        "per",
        "num",
    ),
    *(
        "placeholder",
        "initializer",
        "instance",
        "class",
        "reward",
        "register",
        "registers",
        "concept",
        "latent",
    ),
    *("max", "min", "begin", "end", "start", "new", "next", "last", "first", "prompt", "special", "extra"),
    *("system", "user", "tool", "assistant", "target", "action", "state", "query", "text", "input", "output"),
)
_HARMLESS_PASSES = (
    *(
        "forward",
        "backward",
        "first",
        "second",
        "third",
        "last",
        "one",
        "two",
        "multi",
        "single",
        "num",
        "by",
    ),
    *(
        "low",
        "high",
        "band",
        "all",
        "max",
        "min",
        "per",
        "test",
        "full",
        "each",
        "this",
        "next",
        "prev",
        "eval",
    ),
    *("gate", "compile", "norm", "n", "fusion", "optimizer", "render", "inference"),
    *("train", "training", "warmup", "sampling", "data", "did", "can", "should", "and", "or", "no", "must"),
)


def _after(word: str, *before: str) -> str:
    """`word` if one of `before` (fixed widths) is in front of it."""
    return "(?:" + "|".join(rf"(?<={front}{word})" for front in before) + ")"


def _separated(word: str, harmless: Sequence[str]) -> str:
    """`word` behind a separator, unless a harmless qualifier is before that."""
    widths = {len(front) for front in harmless}
    alike = ["|".join(front for front in harmless if len(front) == width) for width in sorted(widths)]
    return rf"(?<=[_.\-]{word})" + "".join(rf"(?<!(?:{fronts})[_.\-]{word})" for fronts in alike)


def _plural(word: str, *fronts: str) -> str:
    """`word` behind one of `fronts`, with a separator or without."""
    return "(?:" + "|".join(rf"(?<={front}[_.\-]{word})|(?<={front}{word})" for front in fronts) + ")"


# The end of a sensitive name, in lower case. What may stand before the word is looked up behind it, so that
# every alternative begins with a letter that the engine can skip to.
_KEY = _separated("key", _HARMLESS_KEYS)
_TOKEN = _separated("token", _HARMLESS_TOKENS) + r"|(?<![a-z0-9_.\-]token)|(?<=--token)"
_PASS = (
    _separated("pass", _HARMLESS_PASSES)
    + "|"
    + _after("pass", "ssh", "ldap", "smtp", "ftp", "db", "pg", "mysql", "root", "admin", "user")
)
NAME = (
    r"(?:"
    rf"key(?:{_KEY}|{_after('key', 'api', 'access', 'secret', 'private', 'auth', '[?&]')}|"
    rf"{_after('key', 'api ', 'access ', 'secret ', 'private ')}(?: provided)?)|"
    rf"keys{_plural('keys', 'api', 'access', 'secret', 'private', 'auth', 'signing', 'encryption', 'ssh')}|"
    r"access[_-]?key[_-]?id|secret[_-]key[_-]base|"
    r"token(?<=[a-z0-9]_user_token)|"
    rf"token(?:{_TOKEN}|{_after('token', 'auth', 'access', 'refresh', 'session', 'hf', 'hub', 'api')})|"
    rf"tokens{_plural('tokens', 'auth', 'access', 'refresh', 'session', 'hf', 'hub', 'api', 'bot')}|"
    r"secrets?|passwords?|passwd|passphrase|passcode|"
    rf"pass(?:{_PASS})|"
    r"auth(?:(?<![a-z0-9]auth)|(?<=oauth))(?:orization|entication)?|"
    r"credentials?|cookies?(?<![a-z0-9]cookie)(?<![a-z0-9]cookies)|bearer(?<![a-z0-9]bearer)|"
    r"pwd(?<=[_.\-]pwd)|pat(?<=[_.\-]pat)|jwt(?<![a-z0-9]jwt)|netrc(?<![a-z0-9]netrc)|"
    r"dsn(?<![a-z0-9]dsn)|connection[_-]?string|conn[_-]?str(?<![a-z0-9]connstr)|webhook(?:[_-]?ur[li])?"
    r")(?:[_-]?[0-9]{1,3})?"
)
END_OF_NAME = rf"(?:{NAME}|(?<![a-z0-9_.\-])key|(?<![a-z0-9_.\-])pass)\Z"

WORDS = (
    *("key", "token", "secret", "pass", "auth", "credential", "cookie", "bearer", "pwd", "jwt", "netrc"),
    *("_pat", ".pat", "-pat", "dsn", "connection", "conn", "webhook"),
)
"""Every sensitive name holds one of these."""

SECRET_WORDS = ("SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL")
PLACES = ("_FILE", "_PATH", "_DIR", "_NAME", "_ARN", "_SOCK", "_TYPE", "_LENGTH", "_URL")
"""The ends of names of variables that say where a secret is, or what it is like."""

OWNERS = frozenset(
    {
        *("api", "auth", "aws", "azure", "gcp", "openai", "anthropic", "wandb", "hf", "hub", "huggingface"),
        *(
            "kaggle",
            "comet",
            "neptune",
            "mlflow",
            "clearml",
            "secret",
            "secrets",
            "credential",
            "credentials",
        ),
        *("login", "account", "s3", "smtp", "db", "database", "redis", "server", "service", "access"),
    }
)
"""A plain `key` or `token` inside a mapping of such a name is one of these."""
