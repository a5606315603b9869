"""The pages, one file for each part of the menu."""

from types import ModuleType

PAGES: tuple[ModuleType, ...] = ()
