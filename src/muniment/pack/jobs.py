"""The pack's schedule: how often each job runs in a tenant."""

from datetime import timedelta

from muniment.pack.durations import Duration
from muniment.pack.fields import Section, setting


class Schedule(Section):
    """Pause between two runs of a job in a tenant; null turns it off. The first four run only after new events.

    In a tenant that nobody writes to, the others rest for a sixteenth of the time since the last write, up to an hour.
    """

    consolidate: Duration | None = setting(timedelta(seconds=2), "Captures to candidates (JOB-1).")
    deliver: Duration | None = setting(timedelta(seconds=2), "Events to webhooks (EVT-1).")
    notify: Duration | None = setting(timedelta(seconds=10), "Alerts and summaries to people (EVT-2).")
    seal: Duration | None = setting(timedelta(minutes=1), "Audit batches (JOB-9).")
    sweep: Duration | None = setting(timedelta(minutes=1), "Consents that have ended (JOB-3).")
    purge: Duration | None = setting(timedelta(minutes=1), "Remains of erased data (ERA-3).")
    alert: Duration | None = setting(timedelta(minutes=5), "Alerts (JOB-7).")
    sample: Duration | None = setting(timedelta(minutes=10), "Sample audit and breakers (JOB-6).")
    budget: Duration | None = setting(timedelta(minutes=10), "Promotions over budget (JOB-10).")
    backfill: Duration | None = setting(timedelta(minutes=1), "Ontology backfill (JOB-8).")
    embed: Duration | None = setting(timedelta(minutes=10), "A change of embedder (JOB-11).")
    expire: Duration | None = setting(timedelta(hours=1), "Expiry and collection (JOB-2).")
    calibrate: Duration | None = setting(timedelta(hours=6), "Calibration of sources (JOB-5).")
    scan: Duration | None = setting(timedelta(hours=1), "Personal data left unmasked (MET-4).")
    compact: Duration | None = setting(timedelta(days=1), "Captures to archives (JOB-4).")
