"""Plug-ins: any function of an installed package, run in a process of its own; errors are reported only by class."""

import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from muniment.candidates.extractors import Extracted, Extractor, extractors_of, plugins
from muniment.errors import ExtractorFailed
from muniment.model.capture import Capture, TypedFact
from muniment.pack import load_pack
from tests.language.captures import capture, extracted

FACT = Extracted(TypedFact(write_class="statement", text="a ticket"))


def plain(of: Capture) -> list[Extracted]:
    return [FACT]


async def awaited(of: Capture) -> list[Extracted]:
    return [FACT, FACT]


def raising(of: Capture) -> list[Extracted]:
    raise RuntimeError(f"secret {of.content}")


def nonsense(of: Capture) -> Any:
    return ["text"]


def endless(of: Capture) -> list[Extracted]:
    return [FACT] * 1000


class Object:
    version = "2.1"

    def reads(self, of: Capture) -> bool:
        return of.kind == "message"

    def extract(self, of: Capture) -> list[Extracted]:
        return [FACT]


THING = Object()


class Unsure:
    asked = 0

    def reads(self, of: Capture) -> bool:
        self.asked += 1
        if of.content is not None and of.content.text == "raise":
            raise KeyError("Jane Doe")
        return True

    def extract(self, of: Capture) -> list[Extracted]:
        return [FACT]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions above as if a package offered them."""
    module = ModuleType("acme_extractors")
    for name in ("plain", "awaited", "raising", "nonsense", "endless", "THING"):
        setattr(module, name, globals()[name])
    monkeypatch.setitem(sys.modules, "acme_extractors", module)
    offered = {
        name.lower(): EntryPoint(name.lower(), f"acme_extractors:{name}", plugins.GROUP)
        for name in ("plain", "awaited", "raising", "nonsense", "endless", "THING", "gone")
    }
    monkeypatch.setattr(plugins, "entry_points", lambda group, name: [offered[name]] if name in offered else [])


def plugin(name: str) -> Extractor:
    return plugins.load_plugin(name)


@pytest.mark.rule("CAN-2")
@pytest.mark.usefixtures("installed")
def test_plain_functions_coroutines_and_objects_are_extractors() -> None:
    assert extracted(plugin("plain"), capture("x")) == [FACT]
    assert extracted(plugin("awaited"), capture("x")) == [FACT, FACT]
    assert extracted(plugin("thing"), capture("x")) == [FACT]
    assert (plugin("plain").name, plugin("thing").name) == ("plain@0", "thing@2.1")
    assert plugin("plain").reads(capture("x", kind="effect"))
    assert not plugin("thing").reads(capture("x", kind="effect"))
    assert len(extracted(plugin("endless"), capture("x"))) == 256


@pytest.mark.rule("CAN-3")
@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("raising", "RuntimeError"),
        ("nonsense", "Extracted"),
        ("gone", "AttributeError"),
        ("absent", "no installed package"),
    ],
)
def test_one_that_fails_or_is_missing_is_reported_without_what_the_capture_says(name: str, result: str) -> None:
    broken = plugin(name)
    assert broken.reads(capture("x"))
    with pytest.raises(ExtractorFailed) as failed:
        extracted(broken, capture("Jane Doe"))
    assert result in str(failed.value)
    assert "Jane" not in str(failed.value)
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__ or failed.value.__context__ is None


@pytest.mark.rule("CAN-3")
def test_a_plug_in_is_asked_once_what_it_reads_and_its_error_is_that_of_the_extraction() -> None:
    thing = Unsure()
    one = plugins.PluginExtractor("unsure", thing, "1")
    assert one.reads(capture("raise"))
    with pytest.raises(ExtractorFailed, match="the plug-in unsure@1 raised KeyError"):
        extracted(one, capture("raise"))
    assert one.reads(capture("x"))
    assert extracted(one, capture("x")) == [FACT]
    assert thing.asked == 2


@pytest.mark.rule("CAN-2")
@pytest.mark.usefixtures("installed")
def test_a_pack_names_its_plug_ins() -> None:
    pack = load_pack("pack_meta: {id: plugged, version: 1.0.0}\nmemory_layer: {extraction: {plugins: [thing, absent]}}")
    assert [one.name for one in extractors_of(pack)][-2:] == ["thing@2.1", "absent@0"]
