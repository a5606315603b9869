"""Items: values under a namespace and a key, as agent frameworks keep them."""

import json
from typing import Annotated

import typer

from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.inputs import parse_json
from muniment.cli.options import RUN, WHERE, argument, flag
from muniment.cli.output import Screen, each, format_time
from muniment.model.item import Item, Items, ItemWaiting, ItemWritten, Namespaces

app = typer.Typer()
items = group(app, "items")
_OPTIONS = (*RUN, *WHERE)

Namespace = Annotated[str, argument("NAMESPACE", "Its parts, with / between them, such as memories/ann.")]
Above = Annotated[str, argument("NAMESPACE", "The parts that it begins with; without it all.")]
Key = Annotated[str, argument("KEY", "The key of the item.")]
Origin = Annotated[str | None, flag("--origin NAME", "Such as tool:langgraph, if the agent may speak for it.")]


def _parts(namespace: str) -> tuple[str, ...]:
    return tuple(part for part in namespace.split("/") if part)


def _draw_item(screen: Screen, one: Item) -> None:
    screen.line(f"{'/'.join(one.namespace)}  {one.key}  {one.memory_id}, {format_time(one.updated_at)}")
    screen.line(json.dumps(one.value, ensure_ascii=False), indent=4)
    for other in one.conflicts:
        screen.line(f"contradicted by {json.dumps(other, ensure_ascii=False)}", indent=4)
    if one.pending:
        screen.line(f"{one.pending} more wait for a person", indent=4)


def _draw_written(screen: Screen, one: ItemWritten) -> None:
    ids = " ".join(name for name in (one.memory_id, one.proposal_id) if name)
    why = f"by the gate {one.gate}: {one.reason}" if one.status == "refused" else ids
    screen.line(f"{one.status}  {why}")


def _draw_waiting(screen: Screen, one: ItemWaiting) -> None:
    screen.line(f"{one.proposal_id}  {one.asks}, {format_time(one.at)}")


def _draw_namespaces(screen: Screen, found: Namespaces) -> None:
    for one in found.namespaces:
        screen.line("/".join(one))


def _draw_items(screen: Screen, found: Items) -> None:
    for one in found.items:
        _draw_item(screen, one)


@command(items, "put", options=_OPTIONS)
def put(
    call: Call,
    namespace: Namespace,
    item: Key,
    value: Annotated[str, argument("VALUE", "The value, as JSON.")],
    ttl: Annotated[float | None, flag("--ttl SECONDS", "For how long it holds.")] = None,
    origin: Origin = None,
) -> None:
    """Put a value under a namespace and a key: a proposal, which replaces the value that is there once promoted."""
    run, held = call.run(), parse_json(value, "value")
    with call.open() as fabric:
        done = fabric.items.put(run, _parts(namespace), item, held, ttl=ttl, origin=origin)
    call.show(done, _draw_written)


@command(items, "get", options=_OPTIONS)
def get(call: Call, namespace: Namespace, item: Key) -> None:
    """Get an item, as a recall that is recorded."""
    run = call.run()
    with call.open() as fabric:
        found = fabric.items.get(run, _parts(namespace), item)
    call.show([] if found is None else [found], each(_draw_item))
    if found is None:
        call.note("there is no such item that the run sees")


@command(items, "search", options=_OPTIONS)
def search(
    call: Call,
    namespace: Above = "",
    query: Annotated[str | None, flag("--query TEXT", "What it is about; without it the newest come first.")] = None,
    limit: Annotated[int, flag("--limit N", "The number of items at most.")] = 10,
) -> None:
    """Search the items in a namespace and below it, by whole parts."""
    run = call.run()
    with call.open() as fabric:
        found = fabric.items.search(run, _parts(namespace), query=query, limit=limit)
    call.show(found, _draw_items)
    if found.omitted:
        call.note(f"{found.omitted} more were left out")


@command(items, "namespaces", options=_OPTIONS)
def namespaces(call: Call, namespace: Above = "") -> None:
    """List the namespaces that have an item which the run sees."""
    run = call.run()
    with call.open() as fabric:
        found = fabric.items.namespaces(run, prefix=_parts(namespace))
    call.show(found, _draw_namespaces)


@command(items, "status", options=_OPTIONS)
def status(call: Call, namespace: Above = "") -> None:
    """List what the agent put there, or asked to delete, that waits for a person."""
    run = call.run()
    with call.open() as fabric:
        found = fabric.items.status(run, _parts(namespace))
    call.show(found, each(_draw_waiting))
    if not found:
        call.note("nothing waits")


@command(items, "delete", options=_OPTIONS)
def delete(call: Call, namespace: Namespace, item: Key, origin: Origin = None) -> None:
    """Ask that an item is deleted: a request that a person decides."""
    run = call.run()
    with call.open() as fabric:
        done = fabric.items.delete(run, _parts(namespace), item, origin=origin)
    call.show(done, _draw_written)
