"""Excerpts in the style of many training programs, each with its truth: the reader knows none of them."""

# ruff: noqa: E501 - printed lines are as long as they are

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gpudebug.core.trainlog.reader import LogReader

LOSSES = (2.5, 2.1, 1.7, 1.2, 0.9, 0.7)
STEPS = (10, 20, 30, 40, 50, 60)


@dataclass(frozen=True)
class Case:
    """`text` and what a careful person reads from it."""

    name: str
    text: str
    first: float | None = 2.5
    last: float | None = 0.7
    points: int = 6
    steps: int | None = 60
    trend: str = "CONVERGING"
    total: int | None = None
    data_s: float | None = None
    update_s: float | None = None


def lines(template: str, head: str = "", between: str = "", end: str = "\n") -> str:
    """`template` once for each step, with {step}, {loss}, {val} (loss + 1) and {i} (0, 1, ...)."""
    rows = [
        template.format(
            step=step, loss=loss, val=round(loss + 1, 6), i=i, epoch=i // 2 + 1, half=step % 20 or 20
        )
        for i, (step, loss) in enumerate(zip(STEPS, LOSSES, strict=True))
    ]
    return head + (end + between).join(rows) + end


RL_TABLE = """################################################################################
                       Learning iteration {step}/300
                       Computation: 4545 steps/s (collection: 0.400s, learning 0.050s)
             Mean action noise std: 1.00
          Mean value_function loss: {loss}
               Mean surrogate loss: -0.0123
                       Mean reward: 12.30
--------------------------------------------------------------------------------
                   Total timesteps: {step}000
                    Iteration time: 0.45s
                      Time elapsed: 00:00:12
                               ETA: 00:02:15
"""

CASES = (
    Case(
        "key:value with K steps",
        lines(
            "INFO 2026-11-20 22:22:01 ts/train.py:210 step:{i}K smpl:{i}K ep:12 epch:0.13 loss:{loss} grdn:1.6 "
            "lr:1.0e-03 data_s:0.030 prep_s:0.003 updt_s:0.050"
        ),
        steps=5001,
        data_s=0.03,
        update_s=0.05,
    ),
    Case("reinforcement blocks", lines(RL_TABLE), trend="UNKNOWN", total=300, data_s=0.4, update_s=0.05),
    Case(
        "description glued to its bar",
        lines("1|{step}|Loss: {loss}: 100%|██████████| {step}/60 [00:10<00:00,  1.90it/s]", end="\r"),
        total=60,
    ),
    Case("pipes and colons", lines("Step {step} | loss:{loss} lr:2e-05 tokens_per_second_per_gpu:1234.5")),
    Case(
        "semicolons with perplexity first",
        lines(
            "[2026-11-20 22:10:01,123 INFO] Step {step}/ 1000; acc:  10.2; ppl: 300.2; xent: {loss}; lr: 0.00012; "
            "sents:    3200; bsz: 1500/1400/32; 10000/9000 tok/s;      5 sec;"
        ),
        total=1000,
    ),
    Case(
        "coloured key: value",
        lines(
            "\x1b[0m[titan] 2026-11-20 22:26:57,023 - root - INFO - \x1b[31mstep: {step}  \x1b[32mloss:  {loss}  "
            "\x1b[33mmemory:  3.30GiB(4.10%)  \x1b[34mtps: 1,234  \x1b[36mmfu: 1.2%\x1b[39m"
        ),
    ),
    Case(
        "total and parts, last_ twins",
        lines(
            "[11/20 22:12:21 d2.utils.events]:  eta: 0:01:00  iter: {step}  total_loss: {loss}  loss_cls: 0.5  "
            "loss_box_reg: 0.1  time: 0.2500  last_time: 0.24  data_time: 0.0500  last_data_time: 0.01   lr: 1e-05"
        ),
        data_s=0.05,
        update_s=0.2,
    ),
    Case(
        "bracketed epochs, costs are times",
        lines(
            "[2026/11/20 22:12:21] ppcls INFO: [Train][Epoch {epoch}/3][Iter: {half}/20]lr(LinearWarmup): 0.00012, "
            "top1: 0.1, CELoss: 9.9, loss: {loss}, batch_cost: 2.00000s, reader_cost: 1.50000, "
            "ips: 27.7 samples/s, eta: 0:07:13"
        ),
        total=60,
        data_s=1.5,
        update_s=0.5,
    ),
    Case(
        "padded counts in brackets",
        lines(
            "Epoch: [{epoch}][{half:5d}/20]\tTime  0.250 ( 0.300)\tData  0.050 ( 0.060)\t"
            "Loss {loss:.4e} (2.9e+00)\tAcc@1   0.00 (  0.20)"
        ),
        total=60,
        data_s=0.05,
        update_s=0.2,
    ),
    Case(
        "padded counts behind a phase",
        lines("06/01 10:00:11 - INFO - Epoch(train)  [{epoch}][{half:4d}/20]  lr: 1.0e-02  loss: {loss}  acc: 20.0"),
        total=60,
    ),
    Case("ms/step tail", lines("step {step}/937 - loss: {loss} - acc: 0.5000 - 15ms/step"), total=937),
    Case(
        "epoch 001: n / total",
        lines(
            "2026-11-20 22:10:01 | INFO | train_inner | epoch 001:    {step} / 1234 loss={loss}, nll_loss=4.2, ppl=18, "
            "wps=12345, ups=1.25, bsz=128, num_updates={step}, lr=1e-05, gnorm=1.2, loss_scale=64, train_wall=12"
        ),
    ),
    Case(
        "JSON lines with quoted numbers",
        lines('{{"epoch": 1, "update": 0.05, "loss": "{loss}", "ppl": "18.3", "num_updates": "{step}", "lr": "1e-05"}}'),
    ),
    Case("JSON lines", lines('{{"step": {step}, "train/loss": {loss}, "eval/loss": {val}, "lr": 1e-3}}')),
    Case("boosting, levels as names", lines("[{step}]\ttraining's l2: {loss}\tvalid_1's l2: {val}")),
    Case("boosting, named sets", lines("[{step}]\ttrain's binary_logloss: {loss}\teval's binary_logloss: {val}")),
    Case(
        "boosting, learn and test",
        lines("{step}:\tlearn: {loss}\ttest: {val}\tbest: {val} ({step})\ttotal: 50.1ms\tremaining: 1m 23s"),
    ),
    Case("iteration, loss = value", lines("Iteration {step}, loss = {loss}")),
    Case(
        "columns with spaces in their names",
        lines(
            "{i:3d}  {step:6d}  {loss:12.2f}  {val:11.2f}    25.00    0.25",
            head="E    #       LOSS TOK2VEC  LOSS TAGGER  TAG_ACC  SCORE \n---  ------  ------------  -----------  -----\n",
        ),
    ),
    Case(
        "fixed columns with a time left",
        lines("{step:10d} {loss:16.4f} {val:16.2f}s", head="      Iter       Train Loss   Remaining Time \n"),
    ),
    Case("CSV under its head", lines("{step},{loss},0.001,{val}", head="step,loss,lr,val_loss\n")),
    Case(
        "table with rules and strings",
        lines("| run_a1 | RUNNING | {step} | {loss} |", head="| Trial | status | iter | loss |\n|---|---|---|---|\n"),
    ),
    Case(
        "bar with an lr and a step loss",
        lines("Steps:  10%|█    | {step}/100 [00:05<00:45,  2.00it/s, lr=1e-5, step_loss={loss}]", end="\r"),
        total=100,
    ),
    Case(
        "bar in s/it",
        lines("steps:  10%|█    | {step}/100 [00:10<01:30,  1.00s/it, avr_loss={loss}]", end="\r"),
        total=100,
    ),
    Case(
        "bar without a rate, counter in the postfix",
        lines(
            "Epoch 0: :   5%|▌    | {step}/100 [00:10<03:00, v_num=abc1, reduced_train_loss={loss}, "
            "global_step={step}.000, consumed_samples=160.0, train_step_timing in s=1.230]",
            end="\r",
        ),
        total=None,
    ),
    Case(
        "glog prefix, bracketed step",
        lines("I1120 22:44:09.314000 140000 logging_writer.py:48] [{step}] loss={loss}, steps_per_second=12.5"),
    ),
    Case(
        "batches of a whole, ms/batch",
        lines("| epoch   1 |   {step}/ 2983 batches | lr 20.00 | ms/batch 12.34 | loss  {loss} | ppl   672.1"),
        total=2983,
    ),
    Case(
        "rank prefix, iter time in seconds",
        lines("[Rank 0] steps: {step} loss: {loss} iter time (s): 0.512 samples/sec: 100.123"),
    ),
    Case(
        "block of keys with slashes",
        lines(
            "[epoch=0][batch={step}/100]:\n\t Train time/batch: {i}\n\t Train loss/train/total: {loss}"
            "\n\t Train trainer/grad_accum: 1"
        ),
        total=100,
    ),
    Case("brackets without separators", lines("Epoch[0] Iteration[{step}/100] Loss: {loss}"), total=100),
    Case(
        "dashes between",
        lines(
            "2026-11-20 22:10:01,123 epoch 1 - iter {step}/100 - loss {loss} - time (sec): 3.21 - samples/sec: 100.1"
        ),
        total=100,
    ),
    Case("loss before step", lines("INFO:tensorflow:loss = {loss}, step = {step} (0.512 sec)")),
    Case("global step N: loss", lines("global step {step}: loss = {loss} (0.512 sec/step)")),
    Case("value before its name", lines(" {step}: 5.123456, {loss} avg loss, 0.001 rate, 2.34 seconds, 640 images")),
    Case(
        "a word that begins with nan",
        lines("step   {step}/100 | loss {loss} (+nanz)| norm 1.2345 (+nanz)| lr 1.00e-04 | 250.12 ms | 45.1% MFU"),
        total=100,
    ),
    Case(
        "train_time and step_avg",
        lines("step:{step}/1750 train_loss:{loss} train_time:{step}34ms step_avg:123.40ms"),
        total=1750,
    ),
    Case(
        "loss scale and rates with slashes",
        lines(
            "completed step: {step}, seconds: 0.512, TFLOP/s/device: 10.1, Tokens/s/device: 1000.1, "
            "total_weights: 100, loss: {loss}"
        ),
    ),
    Case(
        "step in its own line",
        lines("[step={step}/100,epoch=0]\n    train/CrossEntropyLoss={loss}\n    train/Perplexity=1,500"),
        total=100,
    ),
    Case(
        "steps that restart each epoch",
        lines("Epoch [{epoch}/3], Step [{half}/20], Loss: {loss}"),
        total=60,
    ),
    Case(
        "printed tensors",
        lines("Epoch 1/1, Batch {step}/100, Loss: tensor({loss}, device='cuda:0', grad_fn=<NllLossBackward0>)"),
        total=100,
    ),
    Case(
        "value (average), columns by tabs",
        lines("Epoch: [0][{step}/100]\tTime  0.500 ( 0.6)\tData  0.100 ( 0.2)\tLoss {loss} (2.2)\tAcc@1   0.00 (  0.1)"),
        total=100,
        data_s=0.1,
        update_s=0.4,
    ),
    Case("loss at step N: value", lines("loss at step {step}: {loss}")),
    Case("structured key=value", lines("2026-11-20 22:10:01 [info     ] training      loss={loss} step={step}")),
    Case("thousands separators", lines("step {step},000 of 100,000: loss={loss}"), steps=60000, total=100000),
    Case("scientific notation", lines("it={step} train_loss={loss:.3e} lr=1E-4")),
    Case("validation beside", lines("step {step}: loss {loss:.4f}, val loss {val:.4f}")),
    Case(
        "validation lines of the same form",
        lines("[train] step {step} loss {loss}", between="[valid] step {step} loss 3.3\n".replace("{step}", "5")),
    ),
    Case(
        "NaN in the end",
        lines("step {step} loss {loss}") + "step 70 loss nan\nstep 80 loss NaN\n",
        last=float("nan"),
        points=7,
        steps=80,
        trend="NAN",
    ),
    Case(
        "inf in the end", lines("step={step} loss={loss}") + "step=70 loss=inf\n", last=float("inf"), points=7, steps=70,
        trend="NAN",
    ),
    Case(
        "a metric that is nan is no loss",
        lines("step={step} loss={loss} auc=nan"),
    ),
    Case(
        "only validation",
        lines("step {step}: val_loss {loss}"),
        trend="UNKNOWN",
    ),
    Case(
        "table rows drawn before their bar, epochs in a cell",
        "".join(
            "\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
            + "".join(
                f"\r        {e}/3         0G      {LOSSES[2 * e - 2 + b]:.3f}      4.{b}12      1.5         12"
                f"        640: {b + 1}0%|##  | {b + 1}/2 [00:01<00:01,  3.2it/s]"
                for b in range(2)
            )
            + "\n\r                 Class     Images      Box(P          R: 100%|####| 2/2 [00:00<00:00,  5.1it/s]\n"
            + "                   all          4         17      0.622       0.58      0.638      0.415\n"
            for e in (1, 2, 3)
        ),
        steps=6,
        total=6,
    ),
    Case(
        "an environment's bar beside the optimiser's counter",
        lines("\rEpoch #1:  1%|#  | {step}0/1000 [00:01<00:05, 190.1it/s, env_step={step}0, gradient_step={step}, loss={loss}]"),
    ),
    Case("value (average) by twin names", lines("iter: {step} time (data): 0.5 (0.1) loss: {loss}"), data_s=0.1, update_s=0.4),
    Case("Loss step N: value", lines("Loss step {step}: {loss}")),
    Case("sentences", lines("[Iteration {step}][Wall Clock 19.8s] Throughput is 408.4 records/second. Loss is {loss}. Current rate is 0.04.")),
    Case("llm.c's main.log", "s:0 tel:9.9\n" + lines("s:{step} trl:{loss} lr:0.000171 norm:1.14") + "s:60 tel:1.1\n", steps=None),
    Case(
        "colours that lost their escape",
        lines(
            "[rank0]:[titan] 2025-06-16 22:30:48,735 - root - INFO - [31mstep: {step}  [32mloss:  {loss}  "
            "[38;2;180;60;0mgrad_norm:  0.8319  [33mmemory: 49.66GiB(52.28%)  [34mtps: 5,856  [35mmfu: 34.29%[39m"
        ),
    ),
    Case(
        "a detector's parts with their total",
        lines(
            "   {i}/5     55.1G   0.05461   0.01017   0.03715    {loss}        26      1856: 100%|████| 9/9 [00:51<00:00,  2.62s/it]\n"
            "               Class      Images      Labels           P           R      mAP@.5: 100%|████| 5/5 [00:15<00:00,  1.52s/it]\n"
            "                 all         787        2054       0.736      0.0185     0.00493",
            head="     Epoch   gpu_mem       box       obj       cls     total    labels  img_size\n",
        ),
        steps=54,
    ),
    Case(
        "srun's padded label of one rank",
        lines(" 3: iter {step}: loss {loss:.4f}, time 99.1ms") + "slurmstepd: error: Detected 1 oom_kill event in StepId=11.0.\n",
    ),
    Case(
        "another loss after training",
        lines("step:{step}/60 train_loss:{loss} train_time:100ms") + "".join(f"chunk [{i}/40] bpb={1.5 - i / 100}\n" for i in range(40)),
        total=60,
    ),
    Case(
        "source before a log that shows validation alone",
        "        loss = 0\n" + lines("step:{step}/60 val_loss:{loss} train_time:100ms step_avg:98.76ms"),
        trend="UNKNOWN",
        total=60,
    ),
    Case("no loss", lines("step {step} fps 100"), first=None, last=None, points=0, trend="UNKNOWN"),
)  # fmt: skip


def read(text: str) -> LogReader:
    reader = LogReader()
    reader.feed(text.encode())
    return reader


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_reads_the_style(case: Case) -> None:
    summary = read(case.text).summary()
    found = (summary.first, summary.last, summary.points, summary.steps, str(summary.trend))
    assert repr(found) == repr((case.first, case.last, case.points, case.steps, case.trend)), (
        summary.loss_name
    )
    if case.total is not None:
        assert summary.total_steps == case.total
    if case.data_s is not None:
        assert (summary.data_s, summary.update_s) == (
            pytest.approx(case.data_s),
            pytest.approx(case.update_s),
        )
