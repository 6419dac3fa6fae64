"""The piece of host code with most of a step is a cause by where it is and what it calls, not by its name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.diagnoses import facts, stacks

from gpudebug.core.diagnosis.host_code import PLACED, host_code, worker_code
from gpudebug.core.diagnosis.model import Diagnosis, DiagnosisFacts
from gpudebug.core.diagnosis.rank import LIKELY, diagnose
from gpudebug.core.records import Stacks
from gpudebug.engine.run import catalogue

MAIN = "job/train.py:<module> job/train.py:main"
TRAINS = (
    ("forward", f"{MAIN} job/net.py:Net.forward modules/linear.py:Linear.forward", 40, 2.0, 2.0),
    ("backward", f"{MAIN} torch/_tensor.py:Tensor.backward", 41, 2.0, 2.0),
    ("optimizer", f"{MAIN} optim/adamw.py:AdamW.step", 42, 0.5, 0.5),
)
CODE = {
    "job/train.py:main:40": "loss = net(x)",
    "job/train.py:main:41": "loss.backward()",
    "job/train.py:main:42": "opt.step()",
    "job/net.py:Net.forward:40": "return self.out(x)",
    "job/watch.py:Watch.log:10": "self.rows[name] = np.histogram(grad)",
    "job/train.py:main:50": "hits += confusion(y, guess)",
    "job/pool.py:Pool.pick:7": "ends = np.flatnonzero(self.done)",
    "job/pool.py:Pool.pick:8": "return self.rows[ends]",
    "job/pool.py:Pool.batch:3": "return self.pick(64)",
    "job/train.py:main:30": "for x, y in loader:",
    "job/train.py:main:31": "x = torch.tensor(rows)",
    "job/train.py:average_gradients:60": "dist.all_reduce(p.grad)",
    "job/train.py:average:61": "dist.all_reduce(hits)",
    "job/train.py:main:62": "print(f'step {step} loss {float(loss):.4f}')",
    "job/data.py:Rows.__getitem__:5": "return self.frame.iloc[i]",
    "job/data.py:Rows.scale:9": "return np.linalg.eigh(x @ x.T)",
    "job/net.py:Net.forward:41": "same = of[:, None] == of[None]",
    "job/net.py:Net.forward:42": "h = (self.near(far) * same).sum(1)",
}
FETCHES = "_utils/fetch.py:fetch job/data.py:Rows.__getitem__"
KERAS = "jax/trainer.py:JAXTrainer.predict callbacks/callback_list.py:CallbackList.on_predict_end"
CDIST = "torch/functional.py:cdist"
SPREAD = (
    (
        "other",
        f"{MAIN} job/pool.py:Pool.batch job/pool.py:Pool.pick _core/numeric.py:flatnonzero",
        7,
        3.0,
        3.0,
    ),
    ("other", f"{MAIN} job/pool.py:Pool.batch job/pool.py:Pool.pick", 8, 2.0, 2.0),
)


def training(*rows: tuple[str, str, int, float, float]) -> Stacks:
    return stacks(*TRAINS, *rows, code=CODE)


HOOK = "torch/_tensor.py:Tensor.backward autograd/graph.py:_engine_run_backward job/watch.py:Watch.log"


@pytest.mark.parametrize(
    ("rows", "share", "place"),
    [
        (
            [("backward", f"{MAIN} {HOOK} lib/_histograms_impl.py:histogram", 10, 3.0, 3.0)],
            3 / 7.5,
            "watch.py:10 Watch.log (running): `self.rows[name] = np.histogram(grad)`",
        ),
        (SPREAD, 5 / 9.5, "pool.py:7 Pool.pick (running): `ends = np.flatnonzero(self.done)`"),
        (
            [
                ("other", f"{MAIN} sk/v.py:f.<locals>.wrapper sk/score.py:confusion sk/a.py:x", 50, 2.0, 2.0),
                ("other", f"{MAIN} sk/v.py:f.<locals>.wrapper sk/score.py:confusion sk/b.py:y", 50, 2.0, 2.0),
                ("other", f"{MAIN} np/core.py:zeros", 31, 1.0, 1.0),
            ],
            4 / 9.5,
            "train.py:50 main (running): `hits += confusion(y, guess)`",
        ),
        (
            [("other", f"{MAIN} http/client.py:get (kernel):socket", 50, 3.0, 0.0)],
            3 / 7.5,
            "train.py:50 main (waiting): `hits += confusion(y, guess)`",
        ),
        (
            [*SPREAD, ("other", f"{MAIN} job/pool.py:Pool.batch job/pool.py:Pool.pick {CDIST}", 8, 4.0, 4.0)],
            9 / 13.5,
            "pool.py:8 Pool.pick (running): `return self.rows[ends]`",
        ),
    ],
    ids=["a hook's", "a function's", "a call of the loop's", "an awaited reply", "with its operators"],
)  # fmt: skip
def test_the_piece_with_most_of_a_step(
    rows: list[tuple[str, str, int, float, float]], share: float, place: str
) -> None:
    found = host_code(training(*rows))
    assert found is not None
    assert found[0] == pytest.approx(share)
    assert str(found[1]) == place


@pytest.mark.parametrize(
    "row",
    [
        ("other", f"{MAIN} nn/functional.py:cross_entropy", 40, 5.0, 5.0),
        ("data", f"{MAIN} data/dataloader.py:next multiprocessing/queues.py:Queue.get", 30, 5.0, 0.0),
        ("env", f"{MAIN} job/pool.py:Pool.batch", 3, 5.0, 5.0),
    ],
    ids=["PyTorch's", "waiting for workers", "the environment's"],
)  # fmt: skip
def test_what_has_causes_of_its_own_is_none(row: tuple[str, str, int, float, float]) -> None:
    assert host_code(training(row)) is None


@pytest.mark.timeout(20)
def test_functions_that_call_themselves_and_each_other_count_once() -> None:
    walk, leaf = "job/tree.py:walk", "job/tree.py:leaf"
    code = {**CODE, f"{walk}:3": "walk(child)", f"{leaf}:5": "walk(rest)"}
    told = stacks(
        *TRAINS,
        ("other", f"{MAIN} {walk} {walk} {leaf} {walk} {walk}", 3, 2.0, 2.0),
        ("other", f"{MAIN} {walk} {leaf} {walk} {leaf}", 5, 2.0, 2.0),
        code=code,
    )
    found = host_code(told)
    assert found is not None
    assert found[0] == pytest.approx(4.0 / 8.5)
    workers = worker_code(stacks(("data", f"{walk} {walk} {walk}", 3, 2.0, 2.0), code=code))
    assert workers is not None
    assert workers[0] == pytest.approx(1.0)


def test_a_server_s_loop_is_no_piece_of_it() -> None:
    rows = [
        ("forward", f"{MAIN} job/net.py:Net.forward", 40, 4.0, 4.0),
        ("other", f"{MAIN} job/pool.py:Pool.pick", 7, 3.0, 3.0),
        ("other", MAIN, 50, 1.0, 1.0),
    ]
    found = host_code(stacks(*rows, code=CODE))
    assert found is not None
    assert (found[0], found[1].frame) == (pytest.approx(3 / 8), "job/pool.py:Pool.pick")


def test_a_line_that_waits_for_the_device_is_no_host_code() -> None:
    code = {**CODE, "job/train.py:main:50": "total += loss.item()"}
    told = stacks(*TRAINS, ("other", MAIN, 50, 5.0, 5.0), code=code)
    assert host_code(told, on_cpu=False) is None
    assert host_code(told) is not None


def test_nothing_watched_has_none() -> None:
    assert host_code(None) is None
    assert worker_code(None) is None
    assert worker_code(stacks(("data", "w.py:loop queues.py:get", 1, 1.0, 0.0))) is None


@pytest.mark.parametrize(("cpu_s", "named"), [(0.1, False), (3.9, True)])
def test_a_wait_for_what_the_device_computes_is_none(cpu_s: float, named: bool) -> None:
    row = ("other", "train.py:go train.py:averages jax/core.py:convert_to_numpy", 9, 4.0, cpu_s)
    found = host_code(stacks(row, code={"train.py:averages:9": "return convert(logs)"}))
    assert (found is not None) == named


def test_without_phases_what_trains_by_its_name_is_none() -> None:
    rows = [
        ("other", "train.py:main train.py:update_model", 3, 6.0, 6.0),
        ("other", "train.py:main train.py:read_rows", 9, 4.0, 0.0),
    ]
    code = {"train.py:update_model:3": "w -= g", "train.py:read_rows:9": "recv()"}
    found = host_code(stacks(*rows, code=code))
    assert found is not None
    assert (found[0], found[1].frame) == (pytest.approx(0.4), "train.py:read_rows")


def named(known: DiagnosisFacts) -> Diagnosis:
    return diagnose(catalogue.load(None).causes, known)


def known(training_rows: Stacks, workers: Stacks | None = None, **signals: object) -> DiagnosisFacts:
    """The facts of stacks with the host's code, as a run's evidence gives them."""
    host, worker = host_code(training_rows), worker_code(workers)
    if worker and signals.get("workers_lack_cores"):
        host = 0.6 * worker[0], worker[1]
    places = {}
    if host:
        signals[PLACED], places[PLACED] = host
    told = {"stacks_s": 10.0, "device_stand_in": True, "trains_on": "cpu", **signals}
    return facts(stacks=training_rows, workers=workers, places=places, **told)


def fetched(*rows: tuple[str, str, int, float, float]) -> Stacks:
    return stacks(*rows, code=CODE)


LOADS = f"{MAIN} data/dataloader.py:_BaseDataLoaderIter.__next__"
WAITS = ("data", f"{LOADS} multiprocessing/queues.py:Queue.get (kernel):pipe", 30, 6.0, 0.0)
IDLE = ("data", "_utils/worker.py:_worker_loop multiprocessing/queues.py:Queue.get", 0, 5.0, 0.0)
EIGH = ("data", "_utils/worker.py:_worker_loop job/data.py:Rows.scale linalg/_linalg.py:eigh", 9, 5.0, 5.0)
ROWS = "data/dataset.py:TensorDataset.__getitem__"
HANDED = (
    "multiprocessing/reductions.py:rebuild_storage_fd multiprocessing/resource_sharer.py:DupFd.detach "
    "(kernel):socket"
)
REDUCES = "distributed/c10d_logger.py:wrapper distributed/distributed_c10d.py:all_reduce"
STEP = f"{MAIN} jax/trainer.py:JAXTrainer.fit jax/trainer.py:JAXTrainer.train_step _src/api.py:value_and_grad"
EAGER = (("other", f"{STEP} interpreters/ad.py:linearize layers/layer.py:Layer.__call__", 50, 6.0, 6.0),)
TRACED = (("other", f"{STEP} interpreters/partial_eval.py:trace interpreters/ad.py:jvp", 50, 6.0, 6.0),)
REPORTS = {
    "a search through a storage": (known(training(*SPREAD)), "host-code"),
    "a metric on the host": (
        known(training(("other", f"{MAIN} metrics/_classification.py:confusion", 50, 5.0, 5.0))),
        "host-code",
    ),
    "tensors from lists": (known(training(("other", MAIN, 31, 6.0, 6.0))), "tensor-from-list"),
    "an order that is drawn for each batch": (
        known(
            training(("data", f"{LOADS} data/sampler.py:RandomSampler.__iter__", 30, 6.0, 6.0)),
            data_wait_share=0.6, loader_workers=0, loader_used=True, sample_cost_s=0.002, fetch_s=0.1,
        ),
        "dl-order",
    ),
    "one worker's archive is slow": (
        known(
            training(WAITS), fetched(IDLE, EIGH), data_wait_share=0.6, loader_workers=2, loader_used=True,
            worker_running_share=0.5, worker_starved_share=0.1,
        ),
        "dl-straggler",
    ),
    "threads of BLAS in each worker": (
        known(
            training(WAITS), fetched(EIGH), data_wait_share=0.6, loader_workers=2, loader_used=True,
            worker_running_share=0.95, worker_starved_share=0.7, workers_lack_cores=True,
            threads_over_cores=0.5, starved_share=0.3,
        ),
        "dl-oversubscribed",
    ),
    "chunks that are inflated whole": (
        known(
            training(("data", f"{LOADS} {FETCHES} _hl/dataset.py:Dataset.__getitem__", 5, 8.0, 8.0)),
            data_wait_share=0.65, loader_workers=0, loader_used=True, sample_cost_s=0.005, fetch_s=0.2,
        ),
        "dl-storage",
    ),
    "rows of a frame in memory": (
        known(
            training(("data", f"{LOADS} {FETCHES}", 5, 5.0, 5.0)),
            data_wait_share=0.5, loader_workers=0, loader_used=True, sample_cost_s=0.00005, fetch_s=0.003,
        ),
        "dl-row-by-row",
    ),
    "rows in memory that a worker stacks": (
        known(
            training(WAITS),
            fetched(("data", f"_utils/worker.py:_worker_loop _utils/fetch.py:fetch {ROWS}", 0, 5.0, 5.0)),
            data_wait_share=0.6, loader_workers=1, loader_used=True, worker_running_share=0.95,
            sample_cost_s=0.00002,
        ),
        "dl-row-by-row",
    ),
    "a batch of many small tensors": (
        known(
            training(("data", f"{LOADS} {HANDED}", 30, 6.0, 2.0)), fetched(IDLE),
            data_wait_share=0.6, loader_workers=1, loader_used=True, worker_running_share=0.07,
        ),
        "dl-float-ipc",
    ),
    "all pairs of a batch": (
        known(
            training(
                ("forward", f"{MAIN} job/net.py:Net.forward", 41, 0.2, 0.2),
                ("forward", f"{MAIN} job/net.py:Net.forward modules/linear.py:Linear.forward", 42, 5.0, 5.0),
            ),
            forward_share=0.7, backward_share=0.2,
        ),
        "unused-work",
    ),
    "a copy of a buffer that fills": (
        known(training(*SPREAD), slowing_share=0.3, slowing_part="other"), "slowing-steps",
    ),
    "moments that become denormal": (
        known(training(), slowing_share=0.2, slowing_part="optimizer", optimizer_share=0.7), "denormals",
    ),
    "a table of which few rows are used": (
        known(
            training(("forward", f"{MAIN} modules/sparse.py:Embedding.forward", 40, 0.1, 0.1)),
            optimizer_share=0.6, optimizer_ns_per_weight=6.0,
        ),
        "dense-embedding",
    ),
    "a loader of another library": (
        known(training(("other", f"{MAIN} grain/loader.py:next python3.11/queue.py:get", 30, 9.0, 0.1))),
        "dl-pipeline",
    ),
    "a transform of each sample, done anew": (
        known(
            training(("data", f"{LOADS} {FETCHES}", 5, 8.0, 8.0)),
            data_wait_share=0.64, loader_workers=0, loader_used=True, sample_cost_s=0.001, fetch_s=0.06,
        ),
        "dl-no-workers",
    ),
    "gradients that the program averages itself": (
        known(
            training(("other", f"{MAIN} job/train.py:average_gradients {REDUCES}", 60, 9.0, 0.0)),
            world_size=2, backward_wait_share=0.0,
        ),
        "comm-exposed",
    ),
    "figures that are averaged over all ranks": (
        known(
            training(("other", f"{MAIN} job/train.py:average {REDUCES}", 61, 9.0, 0.0)),
            world_size=2, backward_wait_share=0.0,
        ),
        "metric-sync",
    ),
    "Keras that runs eagerly": (
        known(stacks(*EAGER, ("other", MAIN, 50, 1.0, 1.0), code=CODE)),
        "debug-mode",
    ),
    "a step of JAX that is traced anew": (
        known(stacks(*TRACED, ("other", MAIN, 50, 1.0, 1.0), code=CODE)),
        "recompile",
    ),
    "predict for one row": (
        known(training(("other", f"{MAIN} {KERAS}", 50, 6.0, 5.0))),
        "api-per-row",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("read", "right"), REPORTS.values(), ids=REPORTS)
def test_the_cause_of_a_report_is_named_first(read: DiagnosisFacts, right: str) -> None:
    found = named(read)
    assert found.abstains is None
    assert found.causes[0].id == right


def test_its_title_says_where_it_is() -> None:
    read, _ = REPORTS["a search through a storage"]
    assert named(read).causes[0].title.endswith(": Pool.pick, pool.py:7")


def test_a_piece_that_a_likelier_cause_names_is_not_named_again() -> None:
    read, _ = REPORTS["an order that is drawn for each batch"]
    assert "host_code_share" in read.signals
    assert "host-code" not in [cause.id for cause in named(read).causes]


def test_a_data_sets_own_code_is_named_behind_more_workers_for_it() -> None:
    read, _ = REPORTS["a transform of each sample, done anew"]
    assert [cause.id for cause in named(read).causes][:2] == ["dl-no-workers", "host-code"]
    assert named(read).causes[1].title.endswith(": Rows.__getitem__, data.py:5")


def test_a_line_that_grows_can_go_as_a_whole() -> None:
    read, _ = REPORTS["a copy of a buffer that fills"]
    places = {**read.places, "slowing_share": read.places[PLACED]}
    grows = named(replace(read, places=places)).causes[0]
    assert (grows.id, grows.line) == ("slowing-steps", read.places[PLACED])
    assert grows.ceiling_ratio == pytest.approx(9.5 / 4.5)


@pytest.mark.parametrize(("below", "logs"), [("_src/array.py:ArrayImpl._value", False), ("", True)])
def test_a_line_that_prints_what_jax_still_computes_is_no_logging(below: str, *, logs: bool) -> None:
    read = known(stacks(("other", f"{MAIN} {below}", 62, 9.0, 0.1), ("other", MAIN, 50, 1.0, 1.0), code=CODE))
    likely = [cause.id for cause in named(read).causes if cause.probability >= LIKELY]
    assert ("logging" in likely) is logs


def test_more_workers_are_no_cause_where_no_core_is_left() -> None:
    read, _ = REPORTS["threads of BLAS in each worker"]
    found = named(read)
    assert "dl-few-workers" not in [cause.id for cause in found.causes]
    assert found.no_help == ("More loader workers will not help: loader workers compute 95% of their time",)


def test_the_signal_of_a_place_is_the_cause_s() -> None:
    (cause,) = [one for one in catalogue.load(None).causes if one.id == "host-code"]
    assert [term.signal for term in cause.exposed] == [PLACED]
