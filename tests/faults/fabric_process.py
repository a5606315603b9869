"""Run by the tests of recovery: a program that has a fabric open on an embedded home, in a process of its own.

usage: fabric_process.py HOME wait|write|async   waits for the end of its input, or captures line after line until then

Writes `ready` once it is open, and for each line `ok NUMBER` or `away NUMBER`.
"""

import asyncio
import logging
import sys
import threading

from muniment import AsyncFabric, Fabric
from muniment.errors import StorageUnavailable
from muniment.testing import People

PEOPLE = People("tenant_library")
# Seconds between two lines: the machine has other things to do.
PAUSE = 0.2


def wait(home: str) -> None:
    with Fabric.open(home=home) as fabric:
        fabric.recall(PEOPLE.run())
        print("ready", flush=True)
        sys.stdin.read()


def write(home: str) -> None:
    ended = threading.Event()

    def read() -> None:
        sys.stdin.read()
        ended.set()

    with Fabric.open(home=home) as fabric:
        threading.Thread(target=read, daemon=True).start()
        print("ready", flush=True)
        number = 0
        while not ended.wait(PAUSE):
            number += 1
            try:
                run = PEOPLE.run(session_id=f"library_{number}")
                fabric.capture(run, kind="statement", text=f"this is line {number}", classification="PUBLIC")
            except StorageUnavailable:
                print(f"away {number}", flush=True)
            else:
                print(f"ok {number}", flush=True)


async def in_a_loop(home: str) -> None:
    async with AsyncFabric.open(home=home) as fabric:
        await fabric.recall(PEOPLE.run())
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    if sys.argv[2] == "async":
        asyncio.run(in_a_loop(sys.argv[1]))
    else:
        {"wait": wait, "write": write}[sys.argv[2]](sys.argv[1])
