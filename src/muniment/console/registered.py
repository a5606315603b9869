"""Registered packs: none ever changes, so each is asked for once."""

from collections import OrderedDict

from muniment.console.visitors import Visitor
from muniment.pack import Pack

MOST = 64
_KNOWN: OrderedDict[tuple[str, str], Pack] = OrderedDict()


async def registered(visitor: Visitor, ref: str) -> Pack:
    """A pack of the visitor's tenant, to be read; raises `NotFound`, and `RoleMissing` for who may not read packs."""
    await visitor.fabric.access.allow(visitor.principal, "read_packs")
    known = (visitor.principal.tenant_id, ref)
    if known not in _KNOWN:
        _KNOWN[known] = (await visitor.fabric.packs.get(visitor.principal, ref)).pack
        while len(_KNOWN) > MOST:
            _KNOWN.popitem(last=False)
    _KNOWN.move_to_end(known)
    return _KNOWN[known]
