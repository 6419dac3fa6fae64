from __future__ import annotations

import subprocess
import sys

from gpudebug.core import words


def test_a_word_reads_as_its_value_in_text_and_in_json() -> None:
    assert f"{words.Status.UNTESTED} {words.Outcome.DEVICE_LOST}" == "UNTESTED DEVICE_LOST"
    assert words.Status("VALIDATED") is words.Status.VALIDATED


def test_verdicts_are_the_statuses_that_a_trial_can_end_in() -> None:
    assert set(words.Status) - words.VERDICTS == {words.Status.UNTESTED, words.Status.TESTING}


def test_the_words_do_not_pay_for_pydantic() -> None:
    code = "import sys, gpudebug.core.words; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_number_of_things_has_its_noun() -> None:
    assert [words.counted(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
    assert words.counted(1, "hypothesis", "hypotheses") == "1 hypothesis"
    assert words.counted(3, "hypothesis", "hypotheses") == "3 hypotheses"


def test_a_range_of_one_is_one() -> None:
    assert words.from_to("--run", 33, 33) == "--run 33"
    assert words.from_to("--run", 33, 40) == "--run 33 to --run 40"
