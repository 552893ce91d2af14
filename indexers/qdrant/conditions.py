"""Filters as Qdrant's conditions. Every one of them begins with the tenant; there is no way to make one without."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qdrant_client import models

from indexers.filters import Condition, Exists, Filter, MatchAny, Range
from indexers.payload import payload_value
from indexers.types import FieldType
from indexers.values import words

NEVER = models.Filter(must=[models.HasIdCondition(has_id=[])])
"""Passes nothing: what is written over it is written where nothing is."""

FIELDS = "fields"  # the payload key under which declared fields stand

INDEXES = {
    FieldType.KEYWORD: models.PayloadSchemaType.KEYWORD,
    FieldType.TEXT: models.PayloadSchemaType.KEYWORD,  # of words
    FieldType.BOOL: models.PayloadSchemaType.KEYWORD,
    FieldType.INTEGER: models.PayloadSchemaType.INTEGER,
    FieldType.FLOAT: models.PayloadSchemaType.FLOAT,
    FieldType.DATETIME: models.PayloadSchemaType.DATETIME,
}


def field_indexes(fields: Mapping[str, FieldType]) -> dict[str, models.PayloadSchemaType]:
    """Returns the payload indexes of the declared fields."""
    return {f"{FIELDS}.{name}": INDEXES[declared] for name, declared in fields.items()}


def of_tenant(tenant: str, *more: models.Condition) -> models.Filter:
    """Returns a filter that the tenant's points pass which also meet the other conditions."""
    return models.Filter(must=[keyword("tenant", tenant), *more])


def within(tenant: str, filter: Filter | None, fields: Mapping[str, FieldType]) -> models.Filter:
    """Returns the tenant's part of a coerced filter; no filter is all of the tenant's points."""
    return of_tenant(tenant) if filter is None else of_tenant(tenant, _filter(filter, fields))


def keyword(key: str, value: str) -> models.FieldCondition:
    """Returns the condition that a keyword equals."""
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def any_keyword(key: str, values: Iterable[str]) -> models.FieldCondition:
    """Returns the condition that a keyword is one of several."""
    return models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))


def at_least(key: str, bound: int) -> models.FieldCondition:
    """Returns the condition that a number is not below a bound."""
    return models.FieldCondition(key=key, range=models.Range(gte=bound))


def number(key: str, value: int) -> models.FieldCondition:
    """Returns the condition that a whole number equals."""
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def older_than(tenant: str, key: str, version: int) -> models.Filter:
    """Returns the filter that the tenant's points pass whose version, if they say one, is below another."""
    unversioned = models.IsEmptyCondition(is_empty=models.PayloadField(key=key))
    older = models.FieldCondition(key=key, range=models.Range(lt=version))
    return of_tenant(tenant, models.Filter(should=[unversioned, older]))


def _filter(filter: Filter, fields: Mapping[str, FieldType]) -> models.Filter:
    return models.Filter(
        must=[_condition(one, fields) for one in filter.must] or None,
        should=[_condition(one, fields) for one in filter.should] or None,
        must_not=[_condition(one, fields) for one in filter.must_not] or None,
    )


def _condition(condition: Condition, fields: Mapping[str, FieldType]) -> models.Condition:
    if isinstance(condition, Filter):
        return _filter(condition, fields)
    key, declared = f"{FIELDS}.{condition.field}", fields[condition.field]
    if isinstance(condition, Exists):
        return models.Filter(must_not=[models.IsEmptyCondition(is_empty=models.PayloadField(key=key))])
    if isinstance(condition, Range):
        return _range(key, condition, declared)
    if not condition.values:
        return models.HasIdCondition(has_id=[])
    return _match(key, condition, declared)


def _match(key: str, condition: MatchAny, declared: FieldType) -> models.Condition:
    if declared is FieldType.TEXT:
        asked = [words(str(value)) for value in condition.values]
        return models.Filter(should=[models.Filter(must=[keyword(key, word) for word in one]) for one in asked])
    if declared in (FieldType.FLOAT, FieldType.DATETIME):
        equal = [Range(condition.field, gte=value, lte=value) for value in condition.values]
        return models.Filter(should=[_range(key, one, declared) for one in equal])
    if declared is FieldType.INTEGER:
        return models.FieldCondition(key=key, match=models.MatchAny(any=[int(str(one)) for one in condition.values]))
    return any_keyword(key, (str(payload_value(value)) for value in condition.values))


def _range(key: str, bounds: Range, declared: FieldType) -> models.FieldCondition:
    asked = {"gt": bounds.gt, "gte": bounds.gte, "lt": bounds.lt, "lte": bounds.lte}
    if declared is FieldType.DATETIME:
        return models.FieldCondition(key=key, range=models.DatetimeRange.model_validate(asked))
    return models.FieldCondition(key=key, range=models.Range.model_validate(asked))
