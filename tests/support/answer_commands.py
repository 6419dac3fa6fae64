"""Which records each command answers with."""

from __future__ import annotations

from gpudebug.core.answers import next as cycle
from gpudebug.core.answers.analyze import FilesAnswer, SamplesAnswer, TraceAnswer
from gpudebug.core.answers.answer import Answer
from gpudebug.core.answers.catalogue import CatalogueAnswer, CauseAnswer, SignalsAnswer
from gpudebug.core.answers.compare import CompareAnswer
from gpudebug.core.answers.diagnosis import DiagnoseAnswer, LayerAnswer, WhyAnswer
from gpudebug.core.answers.hypotheses import (
    AcceptAnswer,
    ExportAnswer,
    LoopAnswer,
    ProposeAnswer,
    ReleaseAnswer,
    ReopenAnswer,
)
from gpudebug.core.answers.log import LogAnswer
from gpudebug.core.answers.sample import SampleAnswer
from gpudebug.core.answers.sections import SectionsAnswer
from gpudebug.core.answers.setup import (
    CleanAnswer,
    DefaultsAnswer,
    DemoAnswer,
    DoctorAnswer,
    GpuDoctorAnswer,
    InitAnswer,
    ReportAnswer,
    SettingsAnswer,
)
from gpudebug.core.answers.show import ShowAnswer
from gpudebug.core.answers.status import StatusAnswer
from gpudebug.core.answers.verify import CheckAnswer, VerifyAnswer

_CYCLE = (cycle.RecordedVerdict, cycle.RecordedBaseline, cycle.Recovered, cycle.Request, cycle.SessionDone)

ANSWERS: dict[str, tuple[type[Answer], ...]] = {
    "demo": (DemoAnswer,),
    "init": (InitAnswer, DefaultsAnswer),
    "next": (*_CYCLE, cycle.Running, cycle.NothingRunning),
    "submit": (cycle.SubmitAnswer,),
    "stop": (cycle.StopAnswer,),
    "wait": (*_CYCLE, cycle.Running, cycle.NothingRunning),
    "baseline": (cycle.RecordedBaseline, cycle.RecordedAA, cycle.RecordedProfile),
    "why": (WhyAnswer,),
    "diagnose": (DiagnoseAnswer, LayerAnswer),
    "catalogue": (CatalogueAnswer, CauseAnswer, SignalsAnswer),
    "propose": (ProposeAnswer, cycle.SessionDone, cycle.Request),
    "accept": (AcceptAnswer,),
    "release": (ReleaseAnswer,),
    "reopen": (ReopenAnswer,),
    "export": (ExportAnswer,),
    "loop": (LoopAnswer,),
    "report": (ReportAnswer,),
    "verify": (VerifyAnswer,),
    "check": (CheckAnswer,),
    "compare": (CompareAnswer,),
    "sample": (SampleAnswer,),
    "analyze": (LogAnswer, SamplesAnswer, SectionsAnswer, TraceAnswer, FilesAnswer),
    "doctor": (DoctorAnswer, GpuDoctorAnswer),
    "settings": (SettingsAnswer,),
    "status": (StatusAnswer,),
    "show": (ShowAnswer,),
    "clean": (CleanAnswer,),
}
"""By the command's name; one of several by what was asked, or by `action`."""
