"""The types of the Context Pack: frozen sections with the defaults of the specification."""

import hashlib
import json
from datetime import timedelta
from functools import cache, cached_property
from typing import Annotated, Any, Literal, cast

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import DictSchema

from muniment.errors import UnknownLabel
from muniment.model.fields import WriteClass
from muniment.pack.consistency import inconsistencies
from muniment.pack.durations import format_duration
from muniment.pack.fields import (
    BUILTIN_LABELS,
    Attribute,
    ClassificationName,
    Flag,
    KeepLast,
    Mask,
    Namespace,
    OntologyVersion,
    PackId,
    PackRef,
    PredicateWord,
    RoleName,
    Section,
    Semver,
    Unique,
    setting,
    with_defaults,
)
from muniment.pack.guardrails import PolicyLayer, raise_rules_to
from muniment.pack.memory_layer import MemoryLayer
from muniment.pack.write_classes import ClassPolicy

SCHEMA_ID = "urn:muniment:schema:context-pack:1"

Activation = Literal["one_person", "four_eyes"]
Cardinality = Literal["one", "many"]
ValueType = Literal["string", "number", "boolean", "date", "ceid", "object", "any"]


class PackMeta(Section):
    """Which pack this is."""

    id: PackId = Field(description="Name of the pack.")
    version: Semver = Field(description="Version of the pack: MAJOR.MINOR.PATCH, in quotes where YAML sees a number.")
    ontology_version: OntologyVersion = setting(
        "1.0.0", "Version of the ontology; captures record it, and a backfill runs when it changes."
    )
    may_pin: Unique[PackRef] = setting(
        (), "Versions, such as acme@1.2.0, that runs may pin for recall and compile while this is in force."
    )
    activation: Activation = setting(
        "one_person", "Who puts it, or another in its place, in force: any admin, or one who did not register it."
    )


class Classification(Section):
    """One label of the rising order."""

    name: ClassificationName = Field(description="The label.")
    sensitive: Flag = setting(False, "Whether it needs consent and a named approver.")


CLASSIFICATIONS: tuple[Classification, ...] = tuple(
    Classification(name=name, sensitive=sensitive) for name, sensitive in BUILTIN_LABELS.items()
)


class RoleRule(Section):
    """What a role is cleared for."""

    classifications_allowed: Unique[ClassificationName] | None = setting(
        None, "Classifications a run in this role may recall; null is all that the pack declares."
    )


# What these roles may do is fixed; a pack narrows what they may see.
ROLES: dict[str, RoleRule] = dict.fromkeys(
    ("agent", "reviewer", "correction_writer", "privacy_officer", "auditor", "admin"), RoleRule()
)


class ClassifiedAttribute(Section):
    """How an attribute of that name is classified and masked in any value."""

    label: ClassificationName | None = setting(None, "Least classification of what holds it.")
    mask: Mask | None = setting(None, "What replaces it, such as [NAME].")
    keep_last: KeepLast | None = setting(None, "Instead of a mask: how many last characters stay readable.")


class Identity(Section):
    """Whom facts can be about, and which of their attributes are classified."""

    namespaces: Unique[Namespace] = setting(
        (), "Namespaces that subjects and entities may have, beside user_namespace and aliases; none listed is any."
    )
    aliases: dict[Namespace, Namespace] = setting(
        dict, "Other names of namespaces, each with the namespace that it means and that is stored instead."
    )
    user_namespace: Namespace = setting(
        "user", "Namespace of end users: what was captured with a user and no subject is about namespace:user_id."
    )
    classified_attributes: dict[Attribute, ClassifiedAttribute] = setting(
        dict, "Attributes that are classified or masked by name."
    )

    def resolve(self, ceid: str) -> str:
        """The entity under the namespace that its own is an alias of; itself if it is none."""
        namespace, _, local = ceid.partition(":")
        target = self.aliases.get(namespace)
        return ceid if target is None else f"{target}:{local}"

    def spellings(self, ceid: str) -> list[str]:
        """The entity under every namespace that means the same: as it is given, resolved, then the other aliases."""
        if not self.aliases:
            return [ceid]
        namespace, _, local = ceid.partition(":")
        return [f"{one}:{local}" for one in self._meaning(namespace)]

    def knows_namespace(self, ceid: str) -> bool:
        """Whether the entity's namespace is declared; true for any if the pack lists none."""
        if not self.namespaces:
            return True
        namespace = ceid.partition(":")[0]
        return namespace in self.namespaces or namespace in self.aliases or namespace == self.user_namespace

    @property
    def users(self) -> str:
        """The namespace under which end users are stored."""
        return self.aliases.get(self.user_namespace, self.user_namespace)

    @property
    def users_spelled(self) -> list[str]:
        """The namespace of end users and its aliases."""
        return self._meaning(self.users)

    def _meaning(self, namespace: str) -> list[str]:
        target = self.aliases.get(namespace, namespace)
        others = sorted(alias for alias, other in self.aliases.items() if other == target)
        return list(dict.fromkeys((namespace, target, *others)))


class Predicate(Section):
    """What is known of a predicate."""

    cardinality: Cardinality = setting(
        "one", "Whether an entity has one value of it, so that another one contradicts it, or many."
    )
    type: ValueType = setting("any", "What its value is; a fact with a value of another type is refused.")
    label: ClassificationName | None = setting(None, "Least classification of its facts.")
    renamed_from: Unique[PredicateWord] = setting(
        (), "Names it had in earlier ontology versions; facts with one of them are stored under the new name."
    )


class Ontology(Section):
    """The predicates; one that is not declared holds one value of any type."""

    predicates: dict[PredicateWord, Predicate] = setting(dict, "Declared predicates by name.")
    dropped: Unique[PredicateWord] = setting(
        (), "Predicates of earlier versions that are no more: new facts are refused, a backfill withdraws the others."
    )

    def current_name(self, predicate: str) -> str:
        """The name that the predicate has now; itself if it was not renamed."""
        return self._successors.get(predicate, predicate)

    def knows(self, predicate: str) -> bool:
        """Whether the pack names the predicate: as one it declares, as an earlier name, or as dropped."""
        return predicate in self.predicates or predicate in self._successors or predicate in self.dropped

    def names_of(self, predicate: str) -> list[str]:
        """The predicate's present name and those it had before."""
        name = self.current_name(predicate)
        declared = self.predicates.get(name)
        return [name, *(declared.renamed_from if declared is not None else ())]

    @cached_property
    def _successors(self) -> dict[str, str]:
        return {old: name for name, one in self.predicates.items() for old in one.renamed_from}


class Pack(Section):
    """The policy document under which everything is decided. Packs with equal digests decide alike."""

    meta: PackMeta = Field(alias="pack_meta", description="Name and version of the pack.")
    classifications: Annotated[tuple[Classification, ...], Field(min_length=1, max_length=64)] = setting(
        CLASSIFICATIONS, "Labels in rising order."
    )
    roles: Annotated[dict[RoleName, RoleRule], with_defaults(ROLES)] = setting(
        ROLES, "Clearance by role. The six built-in roles always exist; left out, they see all labels."
    )
    identity: Identity = setting(Identity, "Entities and their attributes.")
    ontology: Ontology = setting(Ontology, "Predicates.")
    memory_layer: MemoryLayer = setting(MemoryLayer, "Writing, promotion, recall.")
    # INVARIANT: after classifications, whose lowest sensitive label its validator uses.
    policy_layer: PolicyLayer = setting(PolicyLayer, "Guardrails: what is masked.", validate_default=True)

    @field_validator("policy_layer")
    @classmethod
    def _raise_to_sensitive(cls, layer: PolicyLayer, info: ValidationInfo) -> PolicyLayer:
        declared: tuple[Classification, ...] = info.data.get("classifications", ())
        return raise_rules_to(layer, next((label.name for label in declared if label.sensitive), None))

    @model_validator(mode="after")
    def _sections_agree(self) -> "Pack":
        found = [
            InitErrorDetails(type=PydanticCustomError("inconsistent", "{text}", {"text": text}), loc=path, input=None)
            for path, text in inconsistencies(self.document())
        ]
        if found:
            raise ValidationError.from_exception_data("Pack", found)
        return self

    @property
    def ref(self) -> str:
        """The reference by which a run pins the pack: `id@version`."""
        return f"{self.meta.id}@{self.meta.version}"

    @property
    def digest(self) -> str:
        """SHA-256, in hex, over what differs from the defaults, in canonical JSON: sorted keys, no spaces, UTF-8.

        Defaults are left out so that a release which adds a field does not change the digest of a registered pack.
        """
        changed = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        canonical = json.dumps(changed, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def document(self) -> dict[str, Any]:
        """The whole pack with its defaults, as a new JSON-safe dict that loads to an equal pack."""
        return self.model_dump(mode="json", by_alias=True)

    @property
    def labels(self) -> tuple[str, ...]:
        """The classifications in rising order."""
        return tuple(label.name for label in self.classifications)

    def has_label(self, label: str) -> bool:
        """Whether the pack declares the classification."""
        return any(declared.name == label for declared in self.classifications)

    def rank(self, label: str) -> int:
        """Position of the classification in the rising order, from 0; raises `UnknownLabel` if undeclared."""
        if (position := self._ranks.get(label)) is None:
            raise UnknownLabel(
                f"the pack does not declare it; expected one of {', '.join(self.labels)}", field="classification"
            )
        return position

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {label: position for position, label in enumerate(self.labels)}

    def at_least(self, label: str, other: str) -> bool:
        """Whether a classification is as high as another; false if the other is not declared."""
        return self.has_label(other) and self.rank(label) >= self.rank(other)

    def is_sensitive(self, label: str) -> bool:
        """Whether the classification is sensitive; raises `UnknownLabel` if undeclared."""
        return self.classifications[self.rank(label)].sensitive

    @property
    def sensitive_labels(self) -> list[str]:
        """The classifications that need consent, whatever pack a memory was promoted under."""
        return [label.name for label in self.classifications if label.sensitive]

    def labels_for(self, role: str) -> tuple[str, ...]:
        """The classifications that the role may see, in rising order; none for an unknown role."""
        rule = self.roles.get(role)
        if rule is None:
            return ()
        allowed = rule.classifications_allowed
        return self.labels if allowed is None else tuple(label for label in self.labels if label in allowed)

    def is_single_valued(self, predicate: str) -> bool:
        """Whether an entity has one value of the predicate; true for one that is not declared."""
        declared = self.ontology.predicates.get(predicate)
        return declared is None or declared.cardinality == "one"

    @property
    def default_label(self) -> str:
        """The classification of what comes without one: as the pack says, else the highest that is not sensitive."""
        if (named := self.memory_layer.imports.classification) is not None:
            return named
        plain = [label.name for label in self.classifications if not label.sensitive]
        return plain[-1] if plain else self.classifications[0].name

    def policy_for(self, write_class: WriteClass) -> ClassPolicy:
        """The policy of a write class, with the defaults for what the pack leaves out."""
        return self.memory_layer.classes[write_class]


class _PackSchema(GenerateJsonSchema):
    """Writes defaults as a pack would, refuses keys that match no pattern, and adds no titles."""

    def dict_schema(self, schema: DictSchema) -> JsonSchemaValue:
        generated = super().dict_schema(schema)
        return generated | {"additionalProperties": False} if "patternProperties" in generated else generated

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        return super().encode_default(_as_written(dft))


def _as_written(default: Any) -> Any:
    if isinstance(default, timedelta):
        return format_duration(default)
    if isinstance(default, dict):
        return {key: _as_written(value) for key, value in cast("dict[Any, Any]", default).items()}
    return default


@cache
def _generated_schema() -> str:
    generated = Pack.model_json_schema(by_alias=True, schema_generator=_PackSchema)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID}
    return json.dumps(head | generated | {"title": "Muniment Context Pack"})


def pack_schema() -> dict[str, Any]:
    """The published JSON Schema (2020-12) of a pack; it does not express the checks between sections."""
    return json.loads(_generated_schema())
