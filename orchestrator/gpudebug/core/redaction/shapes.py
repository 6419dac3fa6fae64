"""The shapes of tokens, as services publish them for secret scanning, and what is beside a secret.

Every pattern has a bounded or once-only repetition, so that the time is linear in the text whatever it holds.
With each are words of which one is in any text that it matches: a pattern is compiled when a text holds
one. What may stand before a match is checked behind its first letters, so that the engine can skip to those.
"""

from __future__ import annotations

from gpudebug.core.words import word_set

Shapes = tuple[tuple[tuple[str, ...], str], ...]

WHOLE: Shapes = (
    (
        ("-----BEGIN ",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s\\:,]|-(?=[A-Za-z0-9]))*"
        r"(?:-----END [A-Z0-9 ]{0,40}-----)?",
    ),
    (("hf_",), r"hf_(?<![A-Za-z0-9]hf_)[A-Za-z0-9]{20,}"),
    (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        r"gh(?<![A-Za-z0-9]gh)[pousr]_[A-Za-z0-9]{20,}",
    ),
    (("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,}"),
    (("glpat-",), r"glpat-[A-Za-z0-9_-]{15,}"),
    (("sk-",), r"sk-(?<![A-Za-z0-9_-]sk-)(?!learn)(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{16,}"),
    (("k_live_", "k_test_"), r"[sr]k_(?<![A-Za-z0-9].k_)(?:live|test)_[A-Za-z0-9]{16,}"),
    (("whsec_",), r"whsec_[A-Za-z0-9+/=]{16,}"),
    (("AKIA",), r"AKIA(?<![A-Za-z0-9]AKIA)[A-Z0-9]{16}"),
    (("ASIA",), r"ASIA(?<![A-Za-z0-9]ASIA)[A-Z0-9]{16}"),
    (("xox",), r"xox[abeprs]-[A-Za-z0-9-]{10,}"),
    (("xapp-",), r"xapp-[A-Za-z0-9-]{16,}"),
    (("AIza",), r"AIza[A-Za-z0-9_-]{35}"),
    (("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,}"),
    (("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    (("nvapi-",), r"nvapi-[A-Za-z0-9_-]{30,}"),
    (("npm_",), r"npm_(?<![A-Za-z0-9]npm_)[A-Za-z0-9]{30,}"),
    (("pypi-",), r"pypi-(?<![A-Za-z0-9]pypi-)[A-Za-z0-9_-]{40,}"),
    (("wandb_v1_",), r"wandb_v1_[A-Za-z0-9_-]{16,}"),
    (("gsk_",), r"gsk_(?<![A-Za-z0-9]gsk_)[A-Za-z0-9]{20,}"),
    (("r8_",), r"r8_(?<![A-Za-z0-9_]r8_)[A-Za-z0-9]{30,}"),
    (("xai-",), r"xai-(?<![A-Za-z0-9]xai-)(?=[A-Za-z]{0,200}[0-9])[A-Za-z0-9]{20,}"),
    (("hvs.", "hvb.", "hvr."), r"hv(?<![A-Za-z0-9]hv)[sbr]\.[A-Za-z0-9_-]{20,}"),
    (("dckr_",), r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    (("_v1_",), r"do[opr]_v1_[a-f0-9]{32,}"),
    (("SG.",), r"SG\.(?<![A-Za-z0-9]SG\.)[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    (("api",), r"dapi(?<![A-Za-z0-9]dapi)[a-f0-9]{32}|lin_api_[A-Za-z0-9]{20,}|api_org_[A-Za-z0-9]{20,}"),
    (("gl",), r"gl(?:sa_[A-Za-z0-9_]{20,}|(?:ptt|dt)-[A-Za-z0-9_-]{15,})"),
    (
        ("sntry", "shp", "sq0"),
        r"s(?:ntry[su]_[A-Za-z0-9_+/=-]{20,}|hp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|q0(?:atp|csp)-[\w-]{20,})",
    ),
    (("AK-",), r"PMAK-[a-f0-9]{24}-[a-f0-9]{30,}|NRAK-[A-Z0-9]{20,}"),
    (("figd_", "ntn_"), r"figd_[A-Za-z0-9_-]{20,}|ntn_(?<![A-Za-z0-9_]ntn_)[A-Za-z0-9]{20,}"),
    (("ATATT3", "CFPAT-"), r"(?:ATATT3|CFPAT-)[A-Za-z0-9_=-]{20,}"),
    (
        ("key-", "pul-", "pplx-"),
        r"tskey-[a-z]{3,20}-[A-Za-z0-9-]{16,}|pul-(?<![A-Za-z0-9]pul-)[a-f0-9]{40}|pplx-[A-Za-z0-9]{20,}",
    ),
    (("tgp_v1_", "rpa_"), r"tgp_v1_[A-Za-z0-9_-]{20,}|rpa_(?<![A-Za-z0-9_]rpa_)[A-Z0-9]{20,}"),
    (("dp.st.",), r"dp\.st\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{20,}"),
    (("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-[A-Z0-9]{20,}"),
    (("eyJ",), r"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*"),
    ((":AA",), r":AA(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{30,}"),
    (
        (".",),
        r"\.(?:(?<=[MNO][A-Za-z0-9_-]{23}\.)|(?<=[MNO][A-Za-z0-9_-]{25}\.))[A-Za-z0-9_-]{6}"
        r"\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])",
    ),
)
"""Replaced as a whole."""

BESIDE: Shapes = (
    (("earer ",), r"(earer )(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{12,}"),
    (
        ("uthorization", "UTHORIZATION"),
        r"([Aa](?:uthorization|UTHORIZATION)\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?)"
        r"[A-Za-z][\w-]{2,24}[ \t]{1,4}(?=[A-Za-z_./+=-]{0,200}[0-9])[^\s\"'=]{8,2048}",
    ),
    (("wandb login",), r"(wandb login (?:--?[a-z-]{1,20} ){0,3})[A-Za-z0-9_-]{20,}"),
    (
        ("wandb:",),
        r"((?:wandb:|[Kk]ey[^\n:]{0,60}:) {0,2})[0-9a-f]{40}(?![0-9a-zA-Z])",
    ),
    (("sing key ", "API_KEY "), r"((?:[Uu]sing key|API_KEY) {1,4})[0-9a-f]{40}(?![0-9a-zA-Z])"),
    (
        ("pw", "Pw"),
        r"([Pp]w(?<![A-Za-z0-9_.-].w)d?[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?)"
        r"(?!\[redacted\]|[/~.$])[^\s\"',;]{5,256}",
    ),
    (("oog-Sig",), r"([Xx]-[Gg]oog-Signature=)(?!\[redacted\])[^\s&\"'<>]{8,2048}"),
    (("aws configure set ",), r"(aws configure set aws_[a-z_]{1,40} )(?!\[redacted\])[^\s\"'<>]{8,256}"),
    (("://",), r"(https?://)(?=[^\s@/:]{0,200}[0-9])[A-Za-z0-9_.~-]{16,200}(?=@)"),
    (
        ("login",),
        r"(login(?<![a-z]login)\s{1,8}\S{1,256}\s{1,8}password\s{1,8})(?!\[redacted\])\S{1,256}",
    ),
    (
        ("hooks.slack.com",),
        r"(hooks\.slack\.com/(?:services|workflows|triggers)/)(?!\[redacted\])[^\s\"'<>]{8,256}",
    ),
    (("/api/webhooks/",), r"(/api/webhooks/)(?!\[redacted\])[0-9]{1,24}/[A-Za-z0-9_-]{20,}"),
    (
        ("AccountKey=", "SharedAccessKey=", "SharedAccessSignature="),
        r"((?:AccountKey|SharedAccessKey|SharedAccessSignature)=)(?!\[redacted\])[^\s;\"'<>]{8,512}",
    ),
    (("sig=",), r"([?&]sig=)(?!\[redacted\])[^\s&\"'<>]{16,512}"),
    (
        ("X-Amz-", "x-amz-"),
        r"([Xx]-[Aa]mz-(?:Signature|Credential|Security-Token|signature|credential|security-token)=)"
        r"(?!\[redacted\])[^\s&\"'<>]{8,2048}",
    ),
    (("://",), r"(://)[0-9a-f]{16,64}(?::[0-9a-f]{16,64})?(?=@)"),
    (('"key', "'key"), r"([\"']key\\?[\"']\s{0,4}:\s{0,4}\\?[\"'])[0-9a-f]{32}(?=\\?[\"'])"),
    (
        ("curl",),
        r"(\s(?:-u|-U|--user|--proxy-user)[ =]{0,2}[\"']?[^\s:\"'/=-][^\s:\"'/]{0,64}:)"
        r"(?!\[redacted\])[^\s\"']{3,256}",
    ),
    (("sshpass",), r"(sshpass[ \t]{1,4}-p[ \t]{0,4}[\"']?)(?!\[redacted\])[^\s\"']{1,256}"),
    (
        (" login ",),
        r"( login (?:[^\s|;&<>]{1,128} ){0,6}(?:-p[ =]?|--password[ =])[\"']?)"
        r"(?!\[redacted\])[^\s\"'|;&]{3,256}",
    ),
    (
        ("mysql", "mariadb"),
        r"((?:mysql|mariadb)(?:dump|admin|import)? (?:[^\s|;&<>]{1,128} ){0,8}-p[\"']?)"
        r"(?!\[redacted\])[^\s\"'|;&]{3,256}",
    ),
    (
        (".login(",),
        r"((?i:smtp|imap|mail|ftp|server|session|client|conn)\w{0,20}\.login\([^\s(),]{1,128}, {0,4}[\"'])"
        r"(?!\[redacted\])[^\"'\n]{3,256}(?=[\"'])",
    ),
    (
        ("ass:", "ass=", 'ass"', "ass'", "ass :", "ass ="),
        r"([Pp][Aa][Ss][Ss](?<![A-Za-z0-9_.-]....)\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?)(?!\[redacted\])"
        r"(?=[^\s\"',;]{0,64}[0-9!@#$%^&*])(?![0-9.]+(?:[eE][+-]?[0-9]+)?%?(?:[/\s,;]|\Z))[^\s\"',;]{5,256}",
    ),
)
"""The first group stays, what follows it goes."""


_HARMLESS_KEYS = word_set(
    "image images text sort video label column dataset feature batch map cache primary foreign group "
    "target loss audio state action obs input observation output prompt answer question metric monitor "
    "score index data message messages template field frame camera reward query public mask checkpoint "
    "ckpt model rng prng random cond stage train val test task layer policy chosen rejected response tag "
    "dict params module embed head"
)
_HARMLESS_TOKENS = word_set(
    "pad eos bos unk sep cls mask image video audio stop add per num placeholder initializer instance "
    "class reward register registers concept latent max min begin end start new next last first prompt "
    "special extra system user tool assistant target action state query text input output"
)
_HARMLESS_PASSES = word_set(
    "forward backward first second third last one two multi single num by low high band all max min per "
    "test full each this next prev eval gate compile norm n fusion optimizer render inference train "
    "training warmup sampling data did can should and or no must"
)


def _after(word: str, *before: str) -> str:
    """`word` if one of `before` (fixed widths) is in front of it."""
    return "(?:" + "|".join(rf"(?<={front}{word})" for front in before) + ")"


def _separated(word: str, harmless: frozenset[str]) -> str:
    """`word` behind a separator, unless a harmless qualifier is before that."""
    widths = {len(front) for front in harmless}
    alike = ["|".join(front for front in sorted(harmless) if len(front) == width) for width in sorted(widths)]
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

OWNERS = word_set(
    "api auth aws azure gcp openai anthropic wandb hf hub huggingface kaggle comet neptune mlflow "
    "clearml secret secrets credential credentials login account s3 smtp db database redis server "
    "service access"
)
"""A plain `key` or `token` inside a mapping of such a name is one of these."""
