"""Editing a table of a TOML file as text."""

import tomllib

import pytest

from muniment.assistants.toml_text import TomlText

PATH = ("mcp_servers", "muniment")
CONFIG = """# mine
model = "o5"   # the new one

[mcp_servers.files]
command = "files"

# trusted
[projects."/home/joanna/work"]
trust_level = "trusted"
"""


def test_a_table_is_added_at_the_end_and_removed_without_a_trace() -> None:
    made = TomlText(CONFIG).set(PATH, {"command": "muniment", "args": ["mcp", 'a "b" \\ ü\x7f']})
    assert made.text.startswith(CONFIG)
    assert tomllib.loads(made.text)["mcp_servers"]["muniment"] == {
        "command": "muniment",
        "args": ["mcp", 'a "b" \\ ü\x7f'],
    }
    assert made.remove(PATH).text == CONFIG


def test_tables_within_stay_when_it_is_set_and_go_when_it_is_removed() -> None:
    text = f'{CONFIG}\n[mcp_servers.muniment]\ncommand = "old"\n\n[mcp_servers.muniment.env]\nA = "1"\n\n# last\n[tui]\nx = 1\n'
    made = TomlText(text).set(PATH, {"command": "new", "args": []})
    assert made.get(PATH) == {"env": {"A": "1"}, "command": "new", "args": []}
    gone = made.remove(PATH)
    assert gone.value == tomllib.loads(f"{CONFIG}\n[tui]\nx = 1\n")
    assert "# last" in gone.text


def test_an_empty_file_gets_the_table_alone() -> None:
    assert TomlText("").set(PATH, {"command": "m"}).text == '[mcp_servers.muniment]\ncommand = "m"\n'


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = {muniment = {command = "x"}}\n',
        '[mcp_servers]\nmuniment = {command = "x"}\n',
        'mcp_servers = "none"\n',
        'note = """\n[mcp_servers.muniment]\n"""\n[mcp_servers.muniment]\ncommand = "x"\n',
    ],
)
def test_what_it_cannot_edit_alone_it_leaves_to_a_person(text: str) -> None:
    with pytest.raises(ValueError, match=r"by hand|no table"):
        TomlText(text).set(PATH, {"command": "m"})


def test_what_is_not_toml_is_refused_with_its_line() -> None:
    with pytest.raises(ValueError, match=r"is not TOML: .*line 2"):
        TomlText("a = 1\nb = \n")
