"""The memory of one process that has opened every tenant: each recalled once, as a server that all of them use.

usage: python -m bench.scale.processes FOLDER TENANTS   writes a line of JSON at each power of ten, and at the end
"""

import asyncio
import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from bench.meter import memory_bytes
from bench.scale.calls import question
from bench.scale.generate import USERS, tenant_name
from bench.scale.home import Home
from bench.scale.report import Line
from muniment.testing import People


async def run(home: Home, tenants: int) -> list[Line]:
    """In a process of its own."""
    command = [sys.executable, "-m", "bench.scale.processes", str(home.folder), str(tenants)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0, f"ended with {process.returncode}"
    *found, renewed = [json.loads(line) for line in out.decode().splitlines()]
    first, last = found[0], found[-1]
    steps = "; ".join(f"{one['tenants']:,}: {one['mb']:.0f} MB" for one in found)
    each = (last["mb"] - first["mb"]) * 1024 / max(last["tenants"], 1)
    return [
        Line(
            f"memory of a process with {last['tenants']:,} tenants open",
            f"{last['mb']:,.0f} MB",
            f"{each:.1f} KB a tenant above {first['mb']:.0f} MB; {steps}; of it {last['index_mb']:.0f} MB index"
            f" (limit {last['limit_mb']:.0f} MB); one recall in each",
        ),
        Line(
            "renewing its leases on what it holds, once a minute",
            f"{renewed['cpu']:.1f} s CPU, {renewed['wall']:.1f} s wall",
            f"of {renewed['leases']:,} tenants, those with a recall in the last fifteen minutes",
        ),
    ]


async def open_all(folder: Path, tenants: int) -> None:
    """Recall once in each tenant, in an order that no cache likes."""
    order, chance = list(range(tenants)), Random(41)
    chance.shuffle(order)
    home = Home(folder)
    async with home.fabric() as fabric:
        scopes = fabric._context.scopes

        def tell(opened: int) -> None:
            gc.collect()
            index = sum(scopes._sizes.values()) / 2**20
            print(json.dumps({"tenants": opened, "mb": memory_bytes() / 2**20, "index_mb": index,
                              "limit_mb": scopes.limit / 2**20, "at": time.time()}), flush=True)  # fmt: skip

        tell(0)
        step = 10
        for opened, number in enumerate(order, 1):
            who = People(tenant_name(number)).run(f"user_{number % USERS}", intent_id="support.orders.change")
            await fabric.recall(who, question(chance))
            if opened in (step, tenants):
                tell(opened)
                step = step * 10 if opened == step else step
        held = len(scopes.leases)
        with home.meter().block() as spent:
            await fabric._context.index.renew_leases()
        print(json.dumps({"leases": held, "cpu": spent.cpu, "wall": spent.wall}), flush=True)


if __name__ == "__main__":
    asyncio.run(open_all(Path(sys.argv[1]), int(sys.argv[2])))
