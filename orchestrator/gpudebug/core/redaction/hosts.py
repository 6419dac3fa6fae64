"""Names and addresses of hosts taken out of texts: those that schedulers and launchers name, others by
shape."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address

from gpudebug.core.lazy import regex

NAME, ADDRESS = "(a name)", "(an address)"

# Variables by which schedulers, launchers and shells name hosts, clusters and their users.
_OF_HOSTS = regex(
    r"(?:MASTER|RDZV|PET_RDZV|NODE|HOST|WORKER|COORDINATOR|HEAD|SERVER)\w*_(?:ADDR(?:ESS)?|ENDPOINT|IP|HOST)$"
    r"|^MASTER_ADDR$|NODELIST$|NODENAME$|HOSTNAME$|HOSTS?$|HOSTFILE$|NODE_ALIASES$|IPADDR$|_TOPOLOGY_ADDR$"
    r"|^SLURM_(?:CLUSTER_NAME|JOB_USER|JOB_ACCOUNT|SRUN_COMM_HOST)$|^SSH_(?:CLIENT|CONNECTION)$"
    r"|^(?:USER|LOGNAME|USERNAME)$|^LSB_MCPU_HOSTS$|^PBS_O_HOST$|_SERVICE_HOST$",
    re.I,
)
_MOST_NAMES = 4096
_FEWEST = 2
"""Letters of a name, or of the front of a numbered one: fewer are found in any text."""
# Words that a variable of hosts may hold and that name none.
_COMMON = frozenset(
    {
        *("localhost", "localdomain", "local", "none", "null", "true", "false", "static", "c10d", "etcd"),
        *("gpu", "gpus", "cuda", "cpu", "node", "host", "main", "head", "master", "worker"),
    }
)
_RANGE = regex(r"([^\s,\[\]]*)\[([\d,\-]+)\]([^\s,\[\]]*)")
_WORD = regex(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")
_NUMBERED = regex(r"(.*[A-Za-z_-])\d+$")

_IPV4 = regex(r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w]|\.\d)")
_COLONS = regex(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:%\w+)?(?![\w:])")
_MAC = regex(r"(?<![\w:])[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}(?![\w:])")
_LABEL = r"[^\W_](?:[^\W_-]|-(?=[\w-])){0,62}"
_TOP = (
    "arpa|cloud|cluster|com|corp|edu|eu|example|gov|home|hpc|int|internal|intra|intranet|io|invalid|lan|local|"
    "localdomain|mil|net|org|priv|private|svc|test"
)
# Of countries those that are no ending of a file and no word of code.
_COUNTRIES = (
    "ar|au|br|ca|ch|cl|cn|cz|de|dk|es|fi|fr|gr|hu|ie|il|it|jp|kr|mx|nl|nz|pt|ro|ru|se|sg|tr|tw|ua|uk|us|za"
)
_DNS = regex(
    rf"(?<![\w.@/-])(?:{_LABEL}\.)+(?:{_TOP})\.?(?![\w-]|\.\w)|(?<![\w.@/-])(?:{_LABEL}\.){{2,}}(?:{_COUNTRIES})(?![\w.-])"
)
# `user@host`, `//host/`, `host:29500`: whatever the host is called.
_PLACED = regex(rf"(?<=[\w.+-]@)(?:{_LABEL}\.)*{_LABEL}|(?<=://)(?:{_LABEL}\.)*{_LABEL}(?=[:/\s]|$)")
_WITH_PORT = regex(
    rf"(?<![\w.@/:-])(?=[\w.-]*[A-Za-z])(?=[A-Za-z]*[\d.-])(?:{_LABEL}\.)*{_LABEL}(?=:\d{{4,5}}(?![\w:.]))"
)
_OF_A_CLOUD = regex(r"(?<![\w-])ip-\d+-\d+-\d+-\d+(?!\w)")
_FILE = regex(r".*\.(?:c|cc|cpp|cu|cuh|go|h|java|js|json|log|py|pyx|rs|sh|so|txt|ya?ml)$", re.I)
_PUBLIC = regex(r"(?:[\w-]+\.)*(?:nvidia\.com|pytorch\.org|python\.org|github\.com)$", re.I)


def host_names(env: Mapping[str, str], own: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of hosts, clusters and users in variables of schedulers and launchers, and `own`, each
    whole and without its domain; ranges such as `gpu[001-003,7]` in full."""
    found: dict[str, None] = {}
    for variable, value in env.items():
        if _OF_HOSTS.search(variable):
            found.update(dict.fromkeys(_named(value)))
    ours = [part for name in own for part in (name, *_parts(name)) if part and part.lower() not in _COMMON]
    others = [part for name in found for part in (name, *_parts(name)) if _is_name(part)]
    return tuple(dict.fromkeys((*ours, *others)))[:_MOST_NAMES]


def without_hosts(text: str, names: Iterable[str] = ()) -> str:
    """The text without `names` and others that differ from one by its number alone, addresses of IP and of
    cards, and what looks like the name of a host on the network. What is public documentation stays."""
    for shape in (_MAC, _IPV4):
        text = shape.sub(ADDRESS, text)
    text = _COLONS.sub(_address, text)
    for shape in (_PLACED, _DNS, _WITH_PORT, _OF_A_CLOUD):
        text = shape.sub(_name, text)
    known = sorted({_pattern(name) for name in names if name}, key=len, reverse=True)
    return re.sub(rf"(?<![\w-])(?:{'|'.join(known)})(?!\w)", NAME, text) if known else text


def _address(found: re.Match[str]) -> str:
    """IPv6; a time of day or the place of a card on the bus is none."""
    text = found[0]
    try:
        return ADDRESS if ip_address(text.partition("%")[0]) and text.strip(":") else text
    except ValueError:
        return text


def _name(found: re.Match[str]) -> str:
    kept = _PUBLIC.fullmatch(found[0]) or _FILE.fullmatch(found[0])
    return found[0] if kept else NAME


def _named(value: str) -> Iterator[str]:
    """Yield the names in a list of hosts, however it is written; of paths none."""
    value = value[:_LONGEST]
    for front, numbers, back in _RANGE.findall(value):
        yield from (f"{front}{number}{back}" for number in _numbers(numbers))
    for part in re.split(r"[\s,;]+", _RANGE.sub(" ", value)):
        place = part.partition("://")[2].partition("/")[0] if "://" in part else part
        if not place.startswith(("/", "unix:")):
            yield from _WORD.findall(place.rpartition("@")[2].partition(":")[0])


_LONGEST = 1 << 16


def _numbers(text: str) -> Iterator[str]:
    """`001-003,7` in full, with leading zeros."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and last.isdigit() and int(last) - int(first) < _MOST_NAMES:
            yield from (str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))
        elif first.isdigit():
            yield first


def _parts(name: str) -> tuple[str, ...]:
    """Return the short name and the domain."""
    host, _, domain = name.partition(".")
    return (host, domain) if domain else ()


def _is_name(text: str) -> bool:
    letters = sum(character.isalpha() for character in text)
    return letters >= _FEWEST and text.lower() not in _COMMON


def _pattern(name: str) -> str:
    """Return the name, and its siblings: hosts of a cluster are numbered."""
    numbered = _NUMBERED.fullmatch(name)
    if numbered is None or sum(character.isalpha() for character in numbered[1]) < _FEWEST:
        return re.escape(name)
    return rf"{re.escape(numbered[1])}\d+"
