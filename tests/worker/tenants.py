"""Two tenants, one that is quiet and one that is busy, and what tests of a worker do with them."""

from muniment import Fabric
from muniment.testing import People
from muniment.worker.due import Due, DueJobs
from muniment.worker.worker import run as run_job

QUIET, BUSY = People("quiet"), People("busy")


def say(fabric: Fabric, people: People) -> None:
    fabric.capture(people.run(None), kind="statement", text="The gate is blue.", classification="INTERNAL")


def jobs_of(fabric: Fabric) -> DueJobs:
    return DueJobs(fabric._fabric.opened)


def next_due(fabric: Fabric, jobs: DueJobs, others: int) -> list[Due]:
    return fabric._portal.call(jobs.next, others)


def run_all(fabric: Fabric, found: list[Due]) -> None:
    for one in found:
        fabric._portal.call(run_job, fabric._fabric.opened, one)
