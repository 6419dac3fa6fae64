"""The brief: one page on what is known and what to do now. Reads only."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpudebug.core.agents import page as pages
from gpudebug.core.agents.page import PagePart, code, quoted
from gpudebug.core.campaign import decide
from gpudebug.core.progress import harmless
from gpudebug.core.statistics import numbers
from gpudebug.core.verdict.gates.figures import BETTER_ESTIMATE, NOT_WORSE_BOUND
from gpudebug.edges import store, templates
from gpudebug.engine.brief import flags, history, sources, state
from gpudebug.engine.brief.last_run import last_run
from gpudebug.engine.campaign.campaign import Loaded

_ASKED = {
    "propose": "propose one hypothesis",
    "implement": "write the change of hypothesis {}",
    "test": "hypothesis {} is ready to be tested",
    "running": "a run is under way",
    "stop": "stop, nothing is left to do",
}
_NEWEST = 10
# Of what people and programs wrote this much is looked at, however long it is.
_LOOKED_AT = 1 << 16
_LONGEST_PATH = 400
_STATUS = "see `gpudebug status`"


def brief(
    loaded: Loaded,
    action: decide.Action,
    *,
    worktree: Path | None = None,
    remarks: Sequence[str] = (),
    diagnosis: Sequence[str] = (),
    instructions: Sequence[str] = (),
    offer: str | None = None,
    patch: str | None = None,
    seen: Sequence[tuple[str, int | None]] = (),
) -> str:
    """One markdown page of at most 4,600 characters; its last line is the command that ends it.

    `worktree` is the folder in which the code of a hypothesis is to be written, `remarks` what else the
    caller must know now, one line each; `diagnosis` are ranked causes with their evidence, `instructions`
    the catalogue's advice on writing the change, one line each. `offer` is the id of the cause that
    the catalogue would propose to test; `patch` is the file of a change that crashed. `seen` are the files,
    with a line, in which causes were seen.
    """
    it = _Brief(loaded, action.hypothesis)
    parts = (
        PagePart(it.tried, 1500, 2200, 1),
        PagePart(it.measured, 400, 1000, 2),
        PagePart(lambda n: it.listed("Diagnosis", diagnosis, n, "see `gpudebug diagnose`"), 300, 900, 4),
        PagePart(lambda n: last_run(loaded.setup, loaded.history.records, it.say, n), 450, 1100, 2),
        PagePart(lambda n: it.files(seen, n), 550, 1200, 2),
        PagePart(it.command, 150, 900, 5),
        PagePart(it.guidelines, 120, 900, 5),
        PagePart(lambda n: it.hypothesis(instructions, n), 500, 1200, 0),
        PagePart(lambda n: it.instructions(instructions, n), 400, 1600, 2),
        PagePart(lambda n: it.listed("Remarks", remarks, n), 300, 700, 0),
    )
    return pages.page(it.head(action), parts, it.now(action.kind, worktree, offer, patch))


class _Brief:
    """The parts of one page; those between head and end take the characters that they may have."""

    def __init__(self, loaded: Loaded, number: int | None) -> None:
        self.loaded = loaded
        self.config = loaded.setup.config
        self.entry = next((h for h in loaded.entries.document.hypotheses if h.number == number), None)

    def say(self, text: str) -> str:
        """Foreign text as one harmless line without secrets: joined lines can form one."""
        scrub = self.loaded.setup.workspace.scrub
        return scrub(harmless(scrub(text[:_LOOKED_AT]), limit=_LOOKED_AT))

    def short(self, text: str, limit: int) -> str:
        return harmless(self.say(text), limit=limit)

    def head(self, action: decide.Action) -> str:
        """Return what is asked, why, the goal, and what counts as success."""
        c, metric = self.loaded.campaign, self.loaded.setup.metric
        session, target = self.loaded.setup.session, decide.goal(c)
        asked = _ASKED.get(str(action.kind), "something is to be measured")
        reason = self.short(action.why, 300).rstrip(".")
        return templates.render(
            "brief_head.md.j2",
            asked=asked.format(self.entry.number if self.entry else ""),
            why=reason[:1].upper() + reason[1:],
            session=session and self.short(session, 64),
            campaign=self.config.campaign,
            goal=self.short(self.config.goal, 400),
            metric=f"{self.short(metric.name, 80)}, {'lower' if metric.lower else 'higher'} is better",
            target=None if target is None else numbers.figure(metric, target),
            conditions=self._conditions(),
            hypotheses_left=max(0, c.hypothesis_budget - c.tested),
            budget=c.hypothesis_budget,
            time_left=self._time_left(),
        ).strip("\n")

    def _conditions(self) -> list[str]:
        """Return the gates of a verdict, as far as a change can do something about them."""
        metric, criteria = self.loaded.setup.metric, self.config.criteria
        success, failure = (numbers.threshold(metric, v) for v in (criteria.success, criteria.failure))
        moved = "rises by" if metric.points else "is better by"
        faster = {
            "better": f"throughput rises to {BETTER_ESTIMATE:g}x or more, its interval above 1x",
            "not_worse": f"throughput does not fall below {NOT_WORSE_BOUND:g}x",
        }.get("any" if metric.throughput else criteria.throughput)
        learns = "and its loss converges" if criteria.loss == "converging" else "whatever its loss"
        return [
            f"{self.short(metric.name, 80)} {moved} {success} or more, its 95% interval above {failure}",
            *([faster] if faster else []),
            f"the training ends by itself {learns}",
            "a step takes no more busy time than before",
            "one thing changed, and no locked knob",
        ]

    def _time_left(self) -> str | None:
        c = self.loaded.campaign
        if c.device_time_budget is None:
            return None
        return numbers.duration(max(0.0, c.device_time_budget - c.device_time))

    def measured(self, limit: int) -> str:
        lines = state.lines(self.loaded, self.entry, self.say)
        return pages.bullets("Measured so far", lines, limit, _STATUS)

    def tried(self, limit: int) -> str:
        title = "Tried so far, newest first (`gpudebug show H` shows all of one)"
        entries = history.judged(self.loaded.entries.document)
        newest = [history.tried(self.loaded.entries, h, self.say) for h in entries[:_NEWEST]]
        older = [(h.number, history.mark(self.loaded.entries, h)) for h in entries[_NEWEST:]]
        return pages.section(title, pages.history(newest, older, limit - len(title) - 5))

    def listed(self, title: str, lines: Iterable[str], limit: int, rest: str = _STATUS) -> str:
        return pages.bullets(title, [self.short(line, 300) for line in lines], limit, rest)

    def instructions(self, lines: Sequence[str], limit: int) -> str:
        """Return the catalogue's words on the hypothesis's cause, its longest line cut first."""
        cause = self.entry.cause if self.entry else None
        title = f"The catalogue on {cause}, in general, not measured here"
        longest = pages.longest([len(line) for line in lines], limit - len(title) - 5 - 3 * len(lines))
        quoted_lines = [self.short(line, max(80, longest)) for line in lines]
        return pages.bullets(title, quoted_lines, limit, f"`gpudebug catalogue {cause}`")

    def files(self, seen: Sequence[tuple[str, int | None]], limit: int) -> str:
        """Return the files to read by folder, the one where the cause was seen first."""
        root, workload = self.loaded.setup.workspace.root, self.config.workload
        named = sources.named_files(root, workload.cwd, workload.argv())
        absent = [text for text in self.config.context if not os.path.exists(root / text)]
        known = [text for text in dict.fromkeys([*named, *self.config.context]) if text not in absent]
        lines = dict(sources.placed(root, seen, known))
        groups = [
            code(self.short(text, 1000))
            + (f" (a cause was seen in {self.short(', '.join(places), 200)})" if places else "")
            for text, places in sources.by_folder(list(dict.fromkeys([*lines, *known])), lines)
        ]
        missing = ", ".join(code(self.short(text, 200)) for text in absent)
        groups += [f"missing, though `context` in gpudebug.yaml names it: {missing}"] if absent else []
        return pages.bullets("Files to read", groups, limit, "`context` in gpudebug.yaml")

    def command(self, limit: int) -> str:
        return flags.section(self.config.workload.text, self.config.locked, self.say, limit)

    def guidelines(self, limit: int) -> str:
        title = "Guidelines"
        text = self.loaded.setup.workspace.scrub(self.config.guidelines[:_LOOKED_AT])
        quote = pages.block_quote(text, limit - len(title) - 5, "… the rest is in gpudebug.yaml")
        return pages.section(title, quote.splitlines())

    def hypothesis(self, known: Sequence[str], limit: int) -> str:
        """Return the hypothesis that this is about, its longest texts cut first; a method that the catalogue
        lent, whose lines are `known`, is not repeated."""
        if self.entry is None:
            return ""
        title = f"Hypothesis {self.entry.number}: {quoted(self.say(self.entry.title), min(200, limit // 4))}"
        room = limit - len(title) - 70
        change = code(self.short(self.entry.intervention or "none yet", max(20, room // 5)))
        method = self.say(self.entry.test_method)
        lent = any(self.say(line) in method for line in known)
        method = "what the catalogue says, below" if lent else quoted(method, max(20, room // 4))
        about = quoted(self.say(self.entry.description), max(20, room - len(change) - len(method)))
        parts = {"Description": about, "Test method": method, "Change": change}
        text = pages.section(title, [f"- {key}: {value}" for key, value in parts.items() if value])
        return text if len(text) <= limit else ""

    def now(
        self,
        kind: decide.ActionKind,
        worktree: Path | None,
        offer: str | None = None,
        patch: str | None = None,
    ) -> str:
        """Return what to do now and the command that ends it: never cut, so nothing in it can be long."""
        ours = ["gpudebug.yaml", self.config.progress, "hypotheses/", "runs/", ".git"]
        forbidden = ", ".join(code(self.short(n, 60)) for n in [*ours, *self.config.worktree.link[:5]])
        return templates.render(
            "brief_now.md.j2",
            kind=str(kind),
            number=self.entry.number if self.entry else None,
            worktree=worktree and self._path(worktree),
            forbidden=forbidden,
            flags_do=self.entry is not None and self.entry.intervention is None,
            progress=code(self.short(self.config.progress, 200)),
            offer=offer,
            patch=patch and code(self.short(patch, 200)),
            gpudebug=self._gpudebug(),
        ).strip("\n")

    def _path(self, path: Path) -> str:
        """Return a folder as a shell takes it; from the campaign's folder on if it is too long for a page."""
        shown = _shell_word(path)
        if len(shown) > _LONGEST_PATH and path.is_relative_to(self.loaded.setup.workspace.root):
            return _shell_word(path.relative_to(self.loaded.setup.workspace.root))
        return shown

    def _gpudebug(self) -> str:
        """`gpudebug`, with -C if the caller's folder is not this campaign's."""
        root = self.loaded.setup.workspace.root.resolve()
        if _campaign_here() == root:
            return "gpudebug"
        word = _shell_word(root)
        return f"gpudebug -C {word}" if len(word) <= _LONGEST_PATH else "gpudebug"


def _campaign_here() -> Path | None:
    """Return the folder of the campaign that a command without -C would find."""
    try:
        return store.find_root(Path.cwd())
    except FileNotFoundError:
        return None


def _shell_word(path: Path) -> str:
    """A path as one line that a shell reads back: quoted as `$'…'` if it holds what no line can show."""
    text = str(path)
    if text.isprintable():
        return shlex.quote(text)
    escaped = (
        chr(b) if 0x20 <= b < 0x7F and chr(b) not in "\\'" else f"\\x{b:02x}" for b in os.fsencode(text)
    )
    return "$'" + "".join(escaped) + "'"
