"""Become an ordinary user who can still pass private folders, and run a program.

PostgreSQL refuses to run as root, and an ordinary user could reach neither a home folder of mode 700 nor a package
installed below /root. The capability CAP_DAC_OVERRIDE, kept in the ambient set, lets it pass without opening any folder
to others. Linux only, standard library only; `postmaster` runs it as

    python -I -S unprivileged.py UID GID -- PROGRAM ARGUMENT...

It exits with 77 if the kernel forbids the change: a container without the capability, an unmapped user.
"""

import ctypes
import os
import sys

NOT_ALLOWED = 77

_CAP_DAC_OVERRIDE = 1
_CAPABILITY_VERSION_3 = 0x20080522
_PR_SET_KEEPCAPS = 8
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def become(user: int, group: int) -> None:
    """Change this process to `user` and `group`; raises OSError if the kernel does not allow it."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *arguments: object) -> None:
        if getattr(libc, name)(*arguments) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")

    call("prctl", _PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    kept = 1 << _CAP_DAC_OVERRIDE
    sets = (_Sets * 2)(_Sets(kept, kept, kept))
    call("capset", ctypes.byref(_Header(_CAPABILITY_VERSION_3, 0)), ctypes.byref(sets))
    call("prctl", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE, 0, 0)
    call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def main() -> None:
    """Change user, then execute the program; does not return."""
    user, group, _, program, *arguments = sys.argv[1:]
    try:
        become(int(user), int(group))
    except OSError as error:
        sys.stderr.write(f"cannot become user {user}: {error}\n")
        sys.exit(NOT_ALLOWED)
    # LD_* may be what this interpreter needed to start; it is not for the program
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    os.execve(program, [program, *arguments], environment)


if __name__ == "__main__":
    main()
