"""Consent and the rights of whom facts are about, as a pack sets them."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from muniment.pack.durations import Duration
from muniment.pack.fields import Flag, PositiveCount, Section, Unique, Word, setting

_BASES = ("user_opt_in", "contract", "legal_obligation", "legitimate_interest", "public_task", "vital_interest")


class ConsentPolicy(Section):
    """Settings of consent."""

    revocation_note_limit: PositiveCount = setting(
        100, "A revocation that removes more memories than this also emits a note."
    )
    ask: Literal["nobody", "subject"] = setting(
        "nobody", "Who is asked about a fact that was refused only for lack of consent: nobody, or its subject."
    )
    ask_for: Duration = setting(timedelta(days=30), "How long such a request can be answered.")
    bases: Annotated[Unique[Word], Field(max_length=64)] = setting(
        _BASES, "On what a consent can be based: what `consent.terms` and the console offer. Others are recorded too."
    )


class SubjectPolicy(Section):
    """What end users may do about themselves without anybody else."""

    confirms: Flag = setting(
        False, "Whether the confirmation of a fact by whom it is about can take the place of a second person."
    )
    erasure: Literal["officer", "at_once"] = setting(
        "officer",
        "Who releases the erasure of everything that a person asks for: a privacy officer, or this pack at once.",
    )
