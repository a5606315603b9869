"""Backups of tenants in tests: written from one fabric's database, restored through another's."""

import io
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from muniment import Fabric
from muniment.opening import Opened
from muniment.transfer import tenant_backup
from muniment.transfer.backup_format import check_signature

RECEIVER = X25519PrivateKey.generate()


def opened(fabric: Fabric) -> Opened:
    found = fabric._fabric._opened
    assert found is not None
    return found


def backup(fabric: Fabric, tenant: str, to: X25519PrivateKey = RECEIVER) -> tuple[bytes, tenant_backup.TenantBackup]:
    """A tenant's backup as bytes, and what it holds."""
    parts, stream = opened(fabric), io.BytesIO()
    written = fabric._portal.call(
        tenant_backup.write_backup, parts.context, parts.address, tenant, "ada", to.public_key(), stream
    )
    return stream.getvalue(), written


def restore(
    fabric: Fabric,
    tenant: str,
    content: bytes,
    signed_by: str,
    secret: X25519PrivateKey = RECEIVER,
    **options: Any,
) -> tenant_backup.TenantBackup:
    """Restore a tenant as the command does: the signature first, then all else."""
    parts = opened(fabric)
    signed = check_signature(io.BytesIO(content), signed_by)
    return fabric._portal.call(
        lambda: tenant_backup.restore(
            parts.context, parts.address, tenant, "ada", io.BytesIO(content), signed, secret, **options
        )
    )
