"""Which of several values of a setting holds."""

from __future__ import annotations

from gpudebug.core.trainlog.last_word import Form, SettingBlock, Settings, combined, resolve


def block(form: Form, **values: str) -> SettingBlock:
    return SettingBlock(form, {name: [value] for name, value in values.items()})


def test_what_is_said_twice_alike_is_no_contradiction() -> None:
    twice = [block(Form.LINES, lr="0.1"), block(Form.STRUCTURE, lr="1e-1")]
    assert resolve(twice) == Settings({"lr": "0.1"})


def test_a_list_of_the_same_name_is_not_a_later_word() -> None:
    assert resolve([SettingBlock(Form.LINES, {"name": ["a", "b"]})]) == Settings({}, {"name": ("a", "b")})


def test_a_default_is_never_the_last_word() -> None:
    for form in (Form.LINES, Form.STRUCTURE, Form.OVERRIDE):
        given = [block(form, lr="0.1"), block(Form.DEFAULTS, lr="0.2")]
        assert resolve(given) == resolve(given[::-1]) == Settings({"lr": "0.1"})
    assert resolve([block(Form.DEFAULTS, lr="0.2")]) == Settings({"lr": "0.2"})


def test_two_files_that_differ_leave_a_setting_unknown() -> None:
    found = combined(Settings({"a": "1", "b": "2"}), Settings({"a": "1.0", "b": "3"}), Settings({"b": "3"}))
    assert found == Settings({"a": "1"}, {"b": ("2", "3")})


def test_a_file_that_agrees_with_the_last_word_leaves_it() -> None:
    printed = resolve([block(Form.LINES, a="1", b="2"), block(Form.STRUCTURE, a="3", b="2")])
    assert printed == Settings({"a": "3", "b": "2"}, {"a": ("1", "3")})
    assert combined(printed, Settings({"a": "3"})) == printed
    assert combined(printed, Settings({"a": "1"})).known == {"b": "2"}
