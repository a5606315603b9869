"""Packs put in force in a test's tenant, by two admins where that takes two."""

from muniment import Fabric
from muniment.errors import NotFound
from muniment.model.activation import Activation
from muniment.model.context import Principal
from muniment.pack import Pack, load_pack

# A pack that leaves nothing out for having little to do with the query (REC-13).
WITHOUT_FLOOR = load_pack(
    'pack_meta: {id: without.floor, version: "1.0.0"}\nmemory_layer: {recall_policy: {relevance_floor: 0.0}}'
)


def acme(version: str, text: str = "", **meta: object) -> Pack:
    """A version of the pack `acme` with that content."""
    more = "".join(f", {name}: {value}" for name, value in meta.items())
    return load_pack(f'pack_meta: {{id: acme, version: "{version}"{more}}}\n{text}')


def admin(tenant_id: str, name: str = "ada") -> Principal:
    """An admin of that tenant."""
    return Principal(tenant_id=tenant_id, id=name, kind="operator", roles={"admin"})


def register(fabric: Fabric, tenant_id: str, pack: Pack) -> str:
    """Register a pack, as the admin `ada`; gives its reference."""
    return fabric.packs.register(admin(tenant_id), pack).ref


def activate(fabric: Fabric, tenant_id: str, ref: str) -> Activation:
    """Put a registered version in force, as the admin `zoe`, who registers nothing."""
    return fabric.packs.activate(admin(tenant_id, "zoe"), ref, reason="for the test")


def put_in_force(fabric: Fabric, tenant_id: str, pack: Pack) -> str:
    """Register a pack and put it in force, unless it is; gives its reference."""
    ref = register(fabric, tenant_id, pack)
    if in_force(fabric, tenant_id) != ref:
        activate(fabric, tenant_id, ref)
    return ref


def in_force(fabric: Fabric, tenant_id: str) -> str | None:
    """The version in force; None where there is none yet."""
    try:
        return fabric.packs.in_force(admin(tenant_id)).pack
    except NotFound:
        return None
