"""`muniment mcp config`, `install` and `uninstall`: what they write into the files of assistants, and what stays."""

import json
import os
import shlex
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

from muniment.assistants import files
from muniment.assistants.hook_events import ACTIONS
from muniment.assistants.installing import carry_out, plan_install
from muniment.assistants.programs import PROGRAMS, Connection, Machine
from muniment.errors import Conflict, InvalidInput
from tests.interfaces.command import MUNIMENT, CommandResult, run

LOCAL = [name for name, one in PROGRAMS.items() if not one.remote]
WITH_HOOKS = [name for name, one in PROGRAMS.items() if one.hooks]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and what it holds."""
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def mcp(*arguments: object) -> CommandResult:
    return run("mcp", *arguments, "--json")


def install(name: str, *options: object) -> dict[str, str]:
    """Install it, and return what became of each file."""
    done = mcp("install", name, "--user", "joanna", *options)
    assert done.code == 0, done
    return {one["file"]: one["outcome"] for one in done.json["files"]}


# What people have in these files already: one document for each file.
THEIRS = {
    ".claude.json": '{"numStartups": 12,\n "mcpServers": {"files": {"command": "npx", "args": ["files"]}}}',
    ".claude/settings.json": """{
  // hooks of mine
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "say done"}]}
    ]
  },
  "model": "opus",
}
""",
    ".config/Claude/claude_desktop_config.json": '{\n\t"mcpServers": {},\n\t"globalShortcut": ""\n}',
    ".codex/config.toml": '# mine\nmodel = "o5"\n\n[mcp_servers.docs]\nurl = "https://docs.example.com/mcp"\n',
    ".codex/hooks.json": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}\n',
    ".cursor/mcp.json": '{\r\n    "mcpServers": {\r\n        "a": {"url": "https://a.example.com"}\r\n    }\r\n}\r\n',
    ".cursor/hooks.json": '{"version": 1, "hooks": {"afterFileEdit": [{"command": "./format.sh"}]}}',
    ".copilot/mcp-config.json": '{"mcpServers": {}}\n',
    ".config/Code/User/mcp.json": '{\n  "servers": {},\n  "inputs": [] // none yet\n}\n',
    ".gemini/settings.json": '{"theme": "dark"}',
    ".codeium/windsurf/mcp_config.json": "",
}


def give(person: Path) -> None:
    for name, text in THEIRS.items():
        (person / name).parent.mkdir(parents=True, exist_ok=True)
        (person / name).write_bytes(text.encode())


@pytest.mark.parametrize("name", LOCAL)
def test_uninstalling_leaves_every_file_byte_for_byte_as_it_was(name: str, person: Path) -> None:
    give(person)
    before = tree(person)
    outcomes = install(name)
    assert set(outcomes.values()) <= {"changed", "created"} and len(outcomes) >= 1
    between = tree(person)
    for file, text in before.items():
        if file in THEIRS and between[file] != text:
            assert between[f"{file}{files.BACKUP}"] == text
    # Nobody else's entry is gone.
    for word in (b"npx", b"say done", b"docs.example.com", b"a.example.com", b"./format.sh", b"hooks of mine"):
        assert any(word in text for text in between.values())
    assert mcp("uninstall", name).code == 0
    assert tree(person) == before


@pytest.mark.parametrize("name", LOCAL)
def test_where_nothing_was_nothing_stays(name: str, person: Path) -> None:
    assert set(install(name).values()) == {"created"}
    assert mcp("uninstall", name).code == 0
    assert list(person.iterdir()) == []


@pytest.mark.parametrize("name", LOCAL)
def test_installing_twice_changes_nothing_the_second_time(name: str, person: Path) -> None:
    give(person)
    install(name)
    once = tree(person)
    assert set(install(name).values()) == {"unchanged"}
    assert tree(person) == once


@pytest.mark.parametrize("name", LOCAL)
def test_another_user_replaces_the_entries_and_adds_none(name: str, person: Path) -> None:
    give(person)
    before = tree(person)
    install(name)
    again = mcp("install", name, "--user", "johanna", "--home", "/srv/memory")
    assert again.code == 0
    for file, text in tree(person).items():
        if not file.endswith(files.BACKUP):
            assert b"joanna" not in text
    mcp("uninstall", name)
    assert tree(person) == before


def test_what_somebody_changed_in_between_stays(person: Path) -> None:
    give(person)
    install("claude-code")
    settings, servers = person / ".claude" / "settings.json", person / ".claude.json"
    text = settings.read_text().replace('"model": "opus"', '"model": "sonnet" /* cheaper */')
    ours = json.loads(servers.read_text())
    ours["numStartups"] = 13
    ours["mcpServers"]["new"] = {"command": "new"}
    settings.write_text(text)
    servers.write_text(json.dumps(ours))
    assert mcp("uninstall", "claude-code").code == 0
    left = json.loads(servers.read_text())
    assert left["numStartups"] == 13 and left["mcpServers"].keys() == {"files", "new"}
    assert "muniment" not in settings.read_text() and "/* cheaper */" in settings.read_text()
    assert "say done" in settings.read_text() and "// hooks of mine" in settings.read_text()
    assert not list(person.rglob(f"*{files.BACKUP}"))


def test_a_command_that_somebody_put_into_our_group_stays(person: Path) -> None:
    install("claude-code")
    settings = person / ".claude" / "settings.json"
    value = json.loads(settings.read_text())
    value["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "say done"})
    settings.write_text(json.dumps(value, indent=2))
    assert mcp("uninstall", "claude-code").code == 0
    assert json.loads(settings.read_text()) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}
    }


def test_what_a_person_added_to_our_entry_stays_when_it_is_installed_again(person: Path) -> None:
    install("codex")
    config = person / ".codex" / "config.toml"
    config.write_text(f'{config.read_text()}startup_timeout_sec = 20\n\n[mcp_servers.muniment.env]\nA = "1"\n')
    assert mcp("install", "codex", "--user", "johanna").code == 0
    entry = tomllib.loads(config.read_text())["mcp_servers"]["muniment"]
    assert (entry["startup_timeout_sec"], entry["env"]) == (20, {"A": "1"})
    assert "johanna" in entry["args"]


def test_an_entry_of_the_same_name_that_is_not_ours_is_never_replaced(person: Path) -> None:
    file = person / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"muniment": {"command": "npx", "args": ["other"]}}}')
    before = tree(person)
    done = mcp("install", "cursor", "--user", "joanna")
    assert (done.code, done.error["code"], done.error["field"]) == (1, "invalid_input", "file")
    assert "not ours; rename or remove that one first" in done.error["message"]
    assert tree(person) == before
    assert mcp("uninstall", "cursor").code == 0
    assert tree(person) == before


@pytest.mark.parametrize(
    ("name", "file", "text", "why"),
    [
        ("claude-code", ".claude.json", '{"a": 1,\n"b" 2}', "is not JSON: line 2"),
        ("claude-code", ".claude/settings.json", '{"hooks": [', "is not JSON"),
        ("claude-code", ".claude/settings.json", '{"hooks": []}', "holds no object at hooks"),
        ("claude-code", ".claude/settings.json", '{"hooks": {"Stop": {}}}', "holds no list at hooks.Stop"),
        ("codex", ".codex/config.toml", "model = \n", "is not TOML"),
        ("cursor", ".cursor/mcp.json", "[]", "is not a JSON object"),
        ("gemini", ".gemini/settings.json", b"\xff\xfe{}", "is not text in UTF-8"),
    ],
)
def test_a_broken_file_is_refused_and_no_file_is_touched(
    name: str, file: str, text: str | bytes, why: str, person: Path
) -> None:
    (person / file).parent.mkdir(exist_ok=True)
    (person / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    before = tree(person)
    for command in (["install", name, "--user", "joanna"], ["uninstall", name]):
        done = mcp(*command)
        # A file in a form that we never wrote has none of our entries: there is nothing to undo.
        if command[0] == "install" or "is not" in why:
            assert (done.code, done.error["code"]) == (1, "invalid_input")
            assert str(person / file) in done.error["message"] and "othing was changed" in done.error["message"]
            if command[0] == "install":
                assert why in done.error["message"]
        assert tree(person) == before


def test_links_and_modes_stay(person: Path) -> None:
    kept = person / "dotfiles" / "cursor.json"
    kept.parent.mkdir()
    kept.write_text("{}\n")
    kept.chmod(0o640)
    (person / ".cursor").mkdir()
    (person / ".cursor" / "mcp.json").symlink_to(kept)
    install("cursor", "--no-hooks")
    assert (person / ".cursor" / "mcp.json").is_symlink()
    assert "muniment" in kept.read_text() and stat.S_IMODE(kept.stat().st_mode) == 0o640
    backup = person / ".cursor" / f"mcp.json{files.BACKUP}"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    mcp("uninstall", "cursor")
    assert (person / ".cursor" / "mcp.json").is_symlink() and kept.read_text() == "{}\n"


def test_a_file_that_changed_meanwhile_is_not_overwritten(person: Path) -> None:
    give(person)
    entries = PROGRAMS["claude-code"].entries(Connection(("muniment",), ("mcp",), ()), Machine(), hooks=True)
    planned = plan_install(entries)
    (person / ".claude" / "settings.json").write_text('{"newer": true}')
    before = tree(person)
    with pytest.raises(Conflict, match="changed meanwhile"):
        carry_out(planned)
    assert tree(person) == before


def test_what_cannot_be_written_leaves_the_others_as_they_were(person: Path) -> None:
    first, last = person / "first.json", person / ("n" * 250)
    first.write_text("{}")
    with pytest.raises(InvalidInput, match="cannot be written"):
        files.write_all({first: ("{}", "{1}"), person / "new" / "second": (None, "{}"), last: (None, "{}")})
    assert tree(person) == {"first.json": b"{}"} and not (person / "new").exists()


def test_a_folder_in_place_of_a_file_leaves_the_others_as_they_were(person: Path) -> None:
    give(person)
    (person / ".claude" / "settings.json").unlink()
    (person / ".claude" / "settings.json").mkdir()
    before = tree(person)
    done = mcp("install", "claude-code", "--user", "joanna")
    assert (done.code, done.error["field"]) == (1, "file") and "is not a file" in done.error["message"]
    assert tree(person) == before


def test_a_dry_run_shows_the_difference_and_writes_nothing(person: Path) -> None:
    give(person)
    before = tree(person)
    done = mcp("install", "cursor", "--user", "joanna", "--dry-run")
    assert done.code == 0 and all("+" in one["diff"] for one in done.json["files"])
    assert tree(person) == before
    shown = run("mcp", "install", "cursor", "--user", "joanna", "--dry-run")
    assert "beforeSubmitPrompt" in shown.out


@pytest.mark.parametrize("name", LOCAL)
def test_what_is_printed_is_what_is_installed(name: str, person: Path) -> None:
    (person / ".config" / "Code" / "User").mkdir(parents=True)
    printed = mcp("config", name, "--user", "joanna").json
    install(name)
    for one in printed:
        assert Path(one["file"]).read_text() == one["content"]
    people = run("mcp", "config", name, "--user", "joanna")
    assert all(one["file"] in people.out and one["content"] in people.out for one in printed)


def hook_lines(person: Path) -> list[str]:
    found = []
    for file in person.rglob("*.json"):
        for part in file.read_text().split('"command": "')[1:]:
            line = json.loads('"' + part.split('"\n')[0].split('",')[0] + '"')
            found += [line] if " hook " in line else []
    return found


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_each_installed_hook_is_a_command_that_runs(name: str, person: Path) -> None:
    install(name, "--home", person / "the home")
    lines = hook_lines(person)
    assert len(lines) >= 3
    for line in lines:
        words = shlex.split(line)
        assert words[0] == MUNIMENT and words[3] in ACTIONS and str(person / "the home") in words
        done = subprocess.run(
            line, shell=True, input=b"{}", capture_output=True, env={**os.environ, "MUNIMENT_HOOKS": "off"}, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert json.loads(done.stdout) in ({}, {"continue": True})
    assert not (person / "the home").exists()


def test_without_hooks_the_tools_alone_are_installed(person: Path) -> None:
    for name in WITH_HOOKS:
        install(name, "--no-hooks")
    assert hook_lines(person) == []


def test_labels_and_a_server_go_into_the_entry_but_a_key_does_not(person: Path) -> None:
    key = person / "key"
    key.write_text("mun_secret\n")
    place = ("--server", "https://memory.example.com/", "--user", "joanna")
    for given in ([], ["--key", "mun_secret"]):
        done = mcp("config", "cursor", *place, *given)
        assert (done.code, done.error["field"]) == (1, "key") and "@FILE" in done.error["message"]
        assert "mun_secret" not in done.err
    done = mcp("config", "cursor", *place, "--key", f"@{key}", "--allow", "PII")
    server, hooks = (json.loads(one["content"]) for one in done.json)
    allowed = ["--allow", "PII", "--allow", "PUBLIC", "--allow", "INTERNAL"]
    common = ["--server", "https://memory.example.com", "--key", f"@{key}", "--user", "joanna"]
    assert server["mcpServers"]["muniment"]["args"] == ["mcp", *common, *allowed]
    assert shlex.split(hooks["hooks"]["stop"][0]["command"])[-8:] == [*common, "--allow", "PII"]
    assert "mun_secret" not in done.out


def test_chatgpt_gets_an_address_and_no_file(person: Path) -> None:
    done = mcp("config", "chatgpt", "--server", "https://memory.example.com")
    assert done.json["url"] == "https://memory.example.com/mcp"
    for options, field in (([], "server"), (["--server", "http://memory.example.com"], "server")):
        refused = mcp("config", "chatgpt", *options)
        assert (refused.code, refused.error["field"]) == (1, field) and "https://" in refused.error["message"]
    for command in ("install", "uninstall"):
        refused = mcp(command, "chatgpt")
        assert (refused.code, refused.error["field"]) == (1, "name")
    assert tree(person) == {}


def test_a_name_that_is_not_known_is_answered_with_those_that_are(person: Path) -> None:
    done = mcp("install", "emacs", "--user", "joanna")
    assert (done.code, done.error["field"]) == (1, "name")
    assert all(name in done.error["message"] for name in PROGRAMS)


def test_a_user_who_can_be_nobody_is_refused(person: Path) -> None:
    done = mcp("config", "cursor", "--user", "joanna; rm -rf /")
    assert (done.code, done.error["field"]) == (1, "user")


@pytest.mark.parametrize(
    ("system", "variables", "expected"),
    [
        ("darwin", {}, "Library/Application Support/Claude/claude_desktop_config.json"),
        ("linux", {}, ".config/Claude/claude_desktop_config.json"),
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Claude/claude_desktop_config.json"),
        ("win32", {"APPDATA": "/roaming"}, "/roaming/Claude/claude_desktop_config.json"),
    ],
)
def test_each_system_has_its_folder_of_settings(system: str, variables: dict[str, str], expected: str) -> None:
    machine = Machine(Path("/home/joanna"), system, variables)
    (entry,) = PROGRAMS["claude-desktop"].entries(Connection(("muniment",), (), ()), machine, hooks=True)
    assert entry.file == Path("/home/joanna") / expected


def test_variables_move_the_folders_of_the_programs() -> None:
    variables = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/d", "COPILOT_HOME": "/g"}
    machine = Machine(Path("/home/joanna"), "linux", variables)
    connection = Connection(("muniment",), (), ())

    def found(name: str) -> set[str]:
        return {str(one.file) for one in PROGRAMS[name].entries(connection, machine, hooks=True) if not one.optional}

    assert found("claude-code") == {"/c/.claude.json", "/c/settings.json"}
    assert found("codex") == {"/d/config.toml", "/d/hooks.json"}
    assert found("copilot") == {"/g/mcp-config.json", "/g/hooks/muniment.json"}
