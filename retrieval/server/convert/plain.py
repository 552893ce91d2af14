"""Messages of `headrace.v1` as plain values, for JSON: field names as in the .proto files, every key always there.

Unlike in protobuf's own JSON, integers stay numbers, enums are short words, and metadata values are just values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
    from google.protobuf.message import Message


def plain(message: Message) -> Any:
    """Returns a message as dicts, lists and scalars; an absent message or optional field is None."""
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        return message.ToJsonString()  # type: ignore[attr-defined]
    if name == "headrace.v1.MetadataValue":
        kind = message.WhichOneof("kind")
        return next((_value(message, field) for field in _fields(message) if field.name == kind), None)
    if name == "headrace.v1.MetadataList":
        return [plain(value) for value in message.values]  # type: ignore[attr-defined]
    return {field.name: _value(message, field) for field in _fields(message)}


def word(enum: EnumDescriptor, number: int) -> str:
    """Returns an enum's value as a word: `STAGE_EMBED` of `Stage` is `embed`; unknown numbers are left as they are."""
    value = enum.values_by_number.get(number)
    if value is None:
        return str(number)
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return value.name.removeprefix(prefix).lower()


def _fields(message: Message) -> list[FieldDescriptor]:
    return list(message.DESCRIPTOR.fields)  # type: ignore[arg-type]


def _value(message: Message, field: FieldDescriptor) -> Any:
    value = getattr(message, field.name)
    inner = _map_value(field)
    if inner is not None:
        return {key: _single(value[key], inner) for key in sorted(value)}
    if field.is_repeated:
        return [_single(item, field) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _single(value, field)


def _single(value: Any, field: FieldDescriptor) -> Any:
    if field.message_type is not None:
        return plain(value)
    if field.enum_type is not None:
        return word(field.enum_type, value)
    return value


def _map_value(field: FieldDescriptor) -> FieldDescriptor | None:
    """Returns what the values of a map are; None when the field is none."""
    entry = field.message_type
    return entry.fields_by_name["value"] if entry is not None and entry.GetOptions().map_entry else None
