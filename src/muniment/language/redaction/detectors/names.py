"""Finds names of persons and places with Presidio and a spaCy pipeline (the extra `presidio`).

Where no pipeline is named and the extra is not installed, the trained tagger finds them (the extra `models`); it alone
finds addresses.

Only Presidio's recogniser over the entities of the pipeline is used. Its other recognisers, which would fetch a list
of domains from the network, are never made, and no pipeline is ever downloaded.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from muniment.errors import PackInvalid, PackProblem
from muniment.language.readers.weights import PACKAGE
from muniment.language.redaction.normalised import Span

_USUAL_PIPELINE = "en_core_web_sm"
_ENTITIES = {"person": "PERSON", "location": "LOCATION"}
_LANGUAGE = "en"


def detector_of(detector: str, model: str | None, index: int) -> Callable[[str], Iterable[Span]]:
    """Return what finds persons or locations beside the tagger.

    Raises `PackInvalid` where neither extra, or not the pipeline, is installed; `index` is the index of the rule in the
    pack, for the error.
    """
    pipeline = model or _USUAL_PIPELINE
    path = f"policy_layer.guardrails.redaction_rules.{index}"
    tagger = find_spec(PACKAGE) is not None
    presidio = find_spec("presidio_analyzer") is not None and find_spec("spacy") is not None
    if detector not in _ENTITIES or not presidio or (tagger and model is None and not _is_installed(pipeline)):
        if tagger and model is None:
            return _find_nothing
        extra = "presidio" if detector in _ENTITIES and (model is not None or not tagger) else "models"
        message = f"detector {detector} needs the extra {extra}; expected it installed: pip install 'muniment[{extra}]'"
        raise PackInvalid([PackProblem(None, f"{path}.detector", message)])
    missing = f"there is no spaCy pipeline {pipeline}; expected the name of an installed one, or its path"
    if not _is_installed(pipeline):
        raise PackInvalid([PackProblem(None, f"{path}.model", missing)])
    try:
        analyzer = _analyzer(pipeline)
    except (OSError, ValueError) as error:
        # A folder without a pipeline is reported like a missing one.
        raise PackInvalid([PackProblem(None, f"{path}.model", missing)]) from error
    entity = _ENTITIES[detector]

    def find(text: str) -> Iterable[Span]:
        if not text.strip():
            return []
        results = analyzer.analyze(text=text, language=_LANGUAGE, entities=[entity])
        return [(result.start, result.end) for result in results if result.start < result.end]

    return find


def _find_nothing(_text: str) -> Iterable[Span]:
    return ()


def _is_installed(pipeline: str) -> bool:
    named: Any = import_module("spacy.util").is_package(pipeline)
    return bool(named) or (Path(pipeline).is_absolute() and Path(pipeline).is_dir())


@lru_cache(maxsize=4)
def _analyzer(pipeline: str) -> Any:
    # Imported by name, as it may not be installed.
    presidio: Any = import_module("presidio_analyzer")
    engines: Any = import_module("presidio_analyzer.nlp_engine")
    recognizers: Any = import_module("presidio_analyzer.predefined_recognizers")
    engine = engines.SpacyNlpEngine(models=[{"lang_code": _LANGUAGE, "model_name": pipeline}])
    recognizer = recognizers.SpacyRecognizer(supported_language=_LANGUAGE, supported_entities=[*_ENTITIES.values()])
    # A registry that is not empty is taken as it is: nothing predefined joins it.
    registry = presidio.RecognizerRegistry(recognizers=[recognizer], supported_languages=[_LANGUAGE])
    return presidio.AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[_LANGUAGE])
