"""Lines without what passed them on."""

from __future__ import annotations

from gpudebug.core.recordings.lines import cleaner, uncoloured

HEADER = "timestamp, index, utilization.gpu [%]"
ROW = "2026/03/09 14:05:07.412, 0, 50 %"


def test_colours_are_taken_off() -> None:
    assert uncoloured("\x1b[1;37mnode\x1b(B\x1b[m 5 %\x1b[K") == "node 5 %"


def test_a_prefix_of_all_lines_is_taken_off() -> None:
    lines = [f"gpu-1  | {line}" for line in (HEADER, ROW, ROW)]
    assert cleaner(lines)(lines[1]) == ROW
    assert cleaner(lines)("Killed\n") == "Killed\n"


def test_a_prefix_of_several_hosts_becomes_a_column() -> None:
    lines = [f"n{host}: {line}" for host in (1, 2) for line in (HEADER, ROW)]
    assert [cleaner(lines)(line) for line in lines[:2]] == [f"hostname, {HEADER}", f"n1, {ROW}"]


def test_what_no_table_is_behind_stays() -> None:
    for lines in (["GPU: 0", "Power: 5 W"], ["INFO: step 1", "INFO: step 2"], [HEADER, ROW], []):
        assert all(cleaner(lines)(line) == line for line in lines)
