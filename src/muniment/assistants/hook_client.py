"""Runs one hook: reads what the assistant says, hands it on, and answers. Standard library only.

It ends with 0 whatever happens, and with an answer that lets the assistant go on: an assistant never waits for memory
longer than a bound, and never fails because of it. What was said, and in which session, comes from the input; whose
words they are, and where they are kept, from the command line alone, which that person installed.

On a home it asks the process that listens there (`mcp.hook_service`); if none does, it starts one that goes on by
itself. A server is asked over HTTP, under the key of an agent.
"""

import argparse
import json
import os
import select
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn, cast

from muniment.assistants import hook_events

# Where the process that listens on a home is found: a file of the home that holds the path of its socket.
ADDRESS = "hooks.address"
LOG = "hooks.log"
# The environment variable that switches hooks off.
SWITCH = "MUNIMENT_HOOKS"
CLASSIFICATION = "INTERNAL"
START_TOKENS = 800
# Seconds in which the same prompt in the same session is the same.
SAME_WITHIN = 30
_INPUT_LIMIT = 1024 * 1024
_ANSWER_LIMIT = 1024 * 1024
# Seconds: for the input to come; to be answered; for a listening process to come up before a session.
_INPUT_WITHIN = 2.0
_WITHIN = {"start": 5.0, "prompt": 2.0, "stop": 1.0, "end": 1.0}
_POLL = 0.05


class HookError(Exception):
    """Why a hook did nothing, in words without content."""


class BrokeOffError(HookError):
    """Whoever listens ended before it answered."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise HookError(message)


def main(arguments: list[str]) -> int:
    """Run a hook; always returns 0, and raises nothing. It ends the process if the work takes too long."""
    options = _options(arguments)
    if options is None:
        return 0
    contexts: list[str] = []
    work = threading.Thread(target=lambda: contexts.append(_context(options)), daemon=True)
    work.start()
    # A thread, as nothing else bounds what the system takes to find a server's name.
    work.join(_INPUT_WITHIN + 1.5 * _WITHIN[hook_events.ACTIONS[options.event]])
    _flush(hook_events.answer(options.event, options.program, contexts[0] if contexts else ""))
    if work.is_alive():
        _say("the memory took too long")
        os._exit(0)
    return 0


def _options(arguments: list[str]) -> argparse.Namespace | None:
    """The arguments; None if they are wrong, which is said."""
    try:
        options = _parser().parse_args(arguments)
        hook_events.check(options.event)
    except (HookError, ValueError) as error:
        _say(str(error))
        return None
    return options


def _context(options: argparse.Namespace) -> str:
    """Do what the event asks for, and return what the session is to begin with; raises nothing."""
    try:
        return _done(options)
    except (HookError, ValueError) as error:
        _say(str(error))
    except OSError as error:
        _say(f"the memory did not answer ({type(error).__name__})")
    except BaseException as error:
        # INVARIANT: no words of the error, which may quote what was said.
        _say(f"it failed ({type(error).__name__})")
    return ""


def _flush(answer: str) -> None:
    try:
        sys.stdout.write(answer)
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        return


def _say(message: str) -> None:
    try:
        sys.stderr.write(f"muniment hook: {message}\n")
    except (OSError, ValueError, AttributeError):
        return


def _done(options: argparse.Namespace) -> str:
    given = _read_input()
    if os.environ.get(SWITCH, "on").strip().lower() in ("off", "0", "no", "false"):
        return ""
    happened = hook_events.parse(options.event, given)
    if happened.ignored is not None:
        return ""
    return _over_http(happened, options) if options.server else _on_home(happened, options)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="muniment mcp hook", add_help=False)
    parser.add_argument("event")
    for name in ("program", "user", "home", "server", "key", "channel"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--allow", action="append", default=[])
    return parser


def _read_input() -> bytes:
    """What comes on stdin until it ends, or until no more comes; raises `HookError` for too much.

    Too much is read to its end all the same, so that the assistant does not write to a pipe that nobody reads.
    """
    found, length, until = bytearray(), 0, time.monotonic() + _INPUT_WITHIN
    while True:
        ready, _, _ = select.select([0], [], [], max(0.0, until - time.monotonic()))
        chunk = os.read(0, 65536) if ready else b""
        if not chunk:
            break
        length += len(chunk)
        if length <= _INPUT_LIMIT:
            found += chunk
    if length > _INPUT_LIMIT:
        raise HookError(f"the input is longer than {_INPUT_LIMIT} bytes")
    return bytes(found)


# ---- on a home ----


def home_of(named: str | None) -> Path:
    """The home that is named, by an option or by MUNIMENT_HOME, else `~/.muniment`."""
    return Path(named or os.environ.get("MUNIMENT_HOME") or "~/.muniment").expanduser().absolute()


def _on_home(happened: hook_events.HookEvent, options: argparse.Namespace) -> str:
    home = home_of(options.home)
    request = {
        "action": happened.action,
        "session": happened.session,
        "text": happened.text,
        "program": options.program or "assistant",
        "user": options.user or _user_name(),
        "allow": options.allow,
        "at": int(time.time()),
    }
    until = time.monotonic() + _WITHIN[happened.action]
    wire = _connected(home, until)
    if happened.action == "prompt":
        if wire is None or not _is_taken(wire, request, until):
            # What was said goes to the new process through a pipe: it is nowhere else before it is sealed.
            _start_host(home, request)
        return ""
    if wire is None:
        if happened.action != "start":
            return ""
        _start_host(home, None)
        while wire is None:
            if time.monotonic() > until:
                raise HookError("the memory is being started; this session begins without it")
            time.sleep(_POLL)
            wire = _connected(home, until)
    with wire:
        return _ask(wire, request, until)


def _connected(home: Path, until: float) -> socket.socket | None:
    """A connection to who listens on the home; None if nobody does."""
    try:
        place = (home / ADDRESS).read_bytes()
    except FileNotFoundError:
        return None
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    wire.settimeout(max(0.05, until - time.monotonic()))
    try:
        wire.connect(os.fsdecode(place))
    except OSError:
        wire.close()
        return None
    return wire


def _is_taken(wire: socket.socket, request: dict[str, Any], until: float) -> bool:
    """Whether a prompt is captured. One that may be and may not be can be given again: it is captured once."""
    with wire:
        try:
            _ask(wire, request, until)
        except (OSError, BrokeOffError):
            # It was still opening its database, or is ending: an assistant that ends ends its servers.
            return False
    return True


def _ask(wire: socket.socket, request: dict[str, Any], until: float) -> str:
    wire.sendall(json.dumps(request).encode() + b"\n")
    found = b""
    while not found.endswith(b"\n"):
        wire.settimeout(max(0.05, until - time.monotonic()))
        chunk = wire.recv(65536)
        if not chunk or len(found) > _ANSWER_LIMIT:
            raise BrokeOffError("the memory broke off")
        found += chunk
    return _context_of(json.loads(found))


def _context_of(answer: object) -> str:
    if not isinstance(answer, dict):
        raise HookError("the memory gave no answer")
    fields = cast("dict[str, object]", answer)
    if problem := fields.get("error"):
        raise HookError(f"the memory refused: {problem}")
    return str(fields.get("context") or "")


def _start_host(home: Path, request: dict[str, Any] | None) -> None:
    """Start the process that listens on a home, and give it its first request; it goes on when this one ends."""
    import subprocess

    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(home / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600), "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "muniment.mcp.hook_host", str(home)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    assert process.stdin is not None
    with process.stdin as pipe:
        pipe.write(json.dumps(request).encode() + b"\n" if request is not None else b"")
    # It is not waited for.
    process.returncode = 0


def _user_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid_{os.getuid()}"


# ---- on a server ----


def _over_http(happened: hook_events.HookEvent, options: argparse.Namespace) -> str:
    key = _key(options.key)
    run: dict[str, Any] = {"run_id": f"hook_{happened.session}", "session_id": happened.session}
    if options.user:
        run["user_id"] = options.user
    if options.allow:
        run["classification_allowed"] = ["PUBLIC", "INTERNAL", *options.allow]
    body: dict[str, Any] = {"run": run}
    if happened.action == "prompt":
        path = "/v1/captures"
        origin = f"channel:{options.channel or options.program or 'assistant'}"
        body |= {"kind": "message", "text": happened.text, "classification": CLASSIFICATION, "origin": origin}
        body["idempotency_key"] = _repeated_key(happened, options.user, key)
    elif happened.action == "start":
        path = "/v1/compile"
        body["token_budget"] = START_TOKENS
    elif happened.action == "end":
        path = f"/v1/sessions/{happened.session}/end"
    else:
        # The server's worker reads what was said.
        return ""
    answered = _posted(options.server, path, body, key, _WITHIN[happened.action])
    return str(answered.get("text") or "") if happened.action == "start" else ""


def _repeated_key(happened: hook_events.HookEvent, user: str | None, key: str) -> str:
    """The same for the same prompt in the same session at the same time: some programs run each other's hooks too.

    It is keyed, so that it tells nothing of what was said once that is erased.
    """
    import hmac

    same = f"{user or ''}\0{happened.session}\0{happened.text}\0{int(time.time()) // SAME_WITHIN}"
    return f"hook_{hmac.digest(key.encode(), same.encode('utf-8', 'replace'), 'sha256').hex()[:32]}"


def _key(given: str | None) -> str:
    if given is not None and not given.startswith("@"):
        raise HookError("give the key as @FILE, or in MUNIMENT_KEY: other users can read command lines")
    key = Path(given[1:]).expanduser().read_text("ascii") if given else os.environ.get("MUNIMENT_KEY", "")
    if not key.strip():
        raise HookError("there is no key: set MUNIMENT_KEY, or give --key @FILE")
    return key.strip()


def _posted(server: str, path: str, body: dict[str, Any], key: str, within: float) -> dict[str, Any]:
    """Send one request; no redirect is followed, as the key is for this address alone."""
    import http.client
    from urllib.parse import urlsplit

    place = urlsplit(server)
    kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}.get(place.scheme)
    if kind is None or not place.hostname:
        raise HookError("the server's address must begin with https:// or http://")
    connection = kind(place.hostname, place.port, timeout=within)
    try:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "User-Agent": "muniment-hook"}
        connection.request("POST", place.path.rstrip("/") + path, json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        found = answer.read(_ANSWER_LIMIT)
    finally:
        connection.close()
    if answer.status >= http.client.BAD_REQUEST:
        raise HookError(f"the server answered with status {answer.status}{_code(found)}")
    return json.loads(found)


def _code(body: bytes) -> str:
    try:
        return f" ({json.loads(body)['code']})"
    except (ValueError, KeyError, TypeError):
        return ""
