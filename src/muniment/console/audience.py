"""Who sees a fact, in the words of a reviewer: a line for each filter that asks something."""

from collections.abc import Iterator

from markupsafe import Markup

from muniment.console.formats import duration, validity
from muniment.model.audience import Audience
from muniment.model.explanation import FilterName

Line = tuple[FilterName, Markup]


def seen_by(audience: Audience) -> list[Line]:
    """Return what a run, and the time, must meet to see a fact: all of these lines."""
    who = Markup("runs of user <code>{}</code>").format(audience.user_id) if audience.user_id else Markup("every run")
    return [("user", who), *((name, _words(name, audience)) for name in audience.filters if name != "user")]


def _words(name: FilterName, audience: Audience) -> Markup:
    match name:
        case "session" if audience.session_id is None:
            return Markup("outside of any session")
        case "session":
            return Markup("in session <code>{}</code>").format(audience.session_id)
        case "session_end":
            return Markup("until that session ends")
        case "workflow":
            return Markup("in workflow <code>{}</code>").format(audience.workflow_id)
        case "intent" if audience.intent_id is not None and audience.intent_id.endswith(".*"):
            return Markup("with an intent under <code>{}</code>").format(audience.intent_id.removesuffix(".*"))
        case "intent":
            return Markup("with intent <code>{}</code>").format(audience.intent_id)
        case "classification" if audience.roles is None:
            return Markup("cleared for <code>{}</code>").format(audience.classification)
        case "classification":
            roles = Markup(" or ").join(Markup("<code>{}</code>").format(one) for one in audience.roles or ())
            if not roles:
                return Markup("cleared for <code>{}</code>, which the pack allows in no role").format(
                    audience.classification
                )
            return Markup("cleared for <code>{}</code>, in the role {}").format(audience.classification, roles)
        case "qualifiers":
            return Markup("; ").join(_qualifiers(audience))
        case "consent" if audience.consent_id is not None:
            return Markup("while consent <code>{}</code> or its renewal covers it").format(audience.consent_id)
        case "consent":
            return Markup("while a consent covers it: none does now")
        case "expired":
            return Markup("for {} after its promotion, then it expires").format(duration(audience.lifetime))
        case "freshness":
            return Markup("for {} after its promotion, as the pack recalls its tier").format(
                duration(audience.fresh_for)
            )
        case "validity":
            return Markup("asked about a time at which it holds: {}").format(
                validity(audience.valid_from, audience.valid_until)
            )
        case _:
            return Markup("unless the filter {} hides it").format(name)


def _qualifiers(audience: Audience) -> Iterator[Markup]:
    for name, value in audience.required.items():
        yield Markup("with <code>{}={}</code>").format(name, value)
    for name, value in audience.qualifiers.items():
        if name not in audience.required:
            yield Markup("with <code>{0}={1}</code> or without <code>{0}</code>").format(name, value)
