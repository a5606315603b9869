"""The pack's schedule: how often each job runs in a tenant."""

from datetime import timedelta

from pydantic import Field

from muniment.pack.durations import Duration
from muniment.pack.fields import Section


class Schedule(Section):
    """Pause between two runs of a job in a tenant; null turns it off. The first three run only after new events."""

    consolidate: Duration | None = Field(default=timedelta(seconds=2), description="Captures to candidates (JOB-1).")
    deliver: Duration | None = Field(default=timedelta(seconds=2), description="Events to webhooks (EVT-1).")
    seal: Duration | None = Field(default=timedelta(minutes=1), description="Audit batches (JOB-9).")
    sweep: Duration | None = Field(default=timedelta(minutes=1), description="Consents that have ended (JOB-3).")
    purge: Duration | None = Field(default=timedelta(minutes=1), description="Remains of erased data (ERA-3).")
    alert: Duration | None = Field(default=timedelta(minutes=5), description="Alerts (JOB-7).")
    sample: Duration | None = Field(default=timedelta(minutes=10), description="Sample audit and breakers (JOB-6).")
    budget: Duration | None = Field(default=timedelta(minutes=10), description="Promotions over budget (JOB-10).")
    backfill: Duration | None = Field(default=timedelta(minutes=1), description="Ontology backfill (JOB-8).")
    embed: Duration | None = Field(default=timedelta(minutes=10), description="A change of embedder (JOB-11).")
    expire: Duration | None = Field(default=timedelta(hours=1), description="Expiry and collection (JOB-2).")
    calibrate: Duration | None = Field(default=timedelta(hours=6), description="Calibration of sources (JOB-5).")
    scan: Duration | None = Field(default=timedelta(hours=1), description="Personal data left unmasked (MET-4).")
    compact: Duration | None = Field(default=timedelta(days=1), description="Captures to archives (JOB-4).")
