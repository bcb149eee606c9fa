"""Writes docs/api.md: the public API as its protos tell it, every comment, limit and error reason.

    python scripts/api_page.py

A test holds the page in step with protos/.
"""

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.duration_pb2 import Duration

if __name__ == "__main__":  # as a script, the folder of this file is what Python looks in
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from palimpsest.buf_validate import validate_pb2

# Imported for its extensions: without it the shared limits would be unknown bytes.
from palimpsest.v1 import rules_pb2  # noqa: F401
from scripts import protos

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "api.md"
PACKAGE: Final = "palimpsest.v1"
# In the order in which one meets them; what is not named here comes last.
SERVICES: Final = (
    "GraphService",
    "MemoryService",
    "RecallService",
    "JobService",
    "CreditService",
    "PrivacyService",
    "AdminService",
)
SCALARS: Final = {
    FieldDescriptorProto.TYPE_DOUBLE: "double",
    FieldDescriptorProto.TYPE_FLOAT: "float",
    FieldDescriptorProto.TYPE_INT32: "int32",
    FieldDescriptorProto.TYPE_INT64: "int64",
    FieldDescriptorProto.TYPE_UINT32: "uint32",
    FieldDescriptorProto.TYPE_UINT64: "uint64",
    FieldDescriptorProto.TYPE_BOOL: "bool",
    FieldDescriptorProto.TYPE_STRING: "string",
    FieldDescriptorProto.TYPE_BYTES: "bytes",
}
WORDS: Final = {
    "min_len": "at least {} characters",
    "max_len": "at most {} characters",
    "gte": "at least {}",
    "lte": "at most {}",
    "gt": "more than {}",
    "lt": "less than {}",
    "min_items": "at least {} items",
    "max_items": "at most {} items",
    "min_pairs": "at least {} pairs",
    "max_pairs": "at most {} pairs",
    "pattern": "matches `{}`",
}
PLAIN: Final = re.compile(r"(Request|Response) of \w+\.")
"""A comment that says no more than the heading."""
CODE: Final = re.compile(rf"\b({'|'.join(code.name for code in grpc.StatusCode)})\b")
FLAGS: Final = {"required": "required", "unique": "all different", "defined_only": "", "finite": "finite"}
HEAD: Final = """\
# The API

Generated from `protos/palimpsest/v1` by `python scripts/api_page.py`. Stubs for other languages are made from
the same files.
"""


@dataclass(frozen=True, slots=True)
class Told:
    """All files of the package, and what is said of each thing by its full name."""

    files: tuple[FileDescriptorProto, ...]
    comments: Mapping[str, str]

    def services(self) -> list[ServiceDescriptorProto]:
        """In the order of `SERVICES`."""
        found = [service for file in self.files for service in file.service]
        known = {name: place for place, name in enumerate(SERVICES)}
        return sorted(found, key=lambda service: known.get(service.name, len(known)))

    def messages(self) -> dict[str, DescriptorProto]:
        """By name, nested ones left out: the public API nests nothing but maps."""
        return {message.name: message for file in self.files for message in file.message_type}

    def enums(self) -> dict[str, EnumDescriptorProto]:
        """By name."""
        return {enum.name: enum for file in self.files for enum in file.enum_type}


def read() -> Told:
    """What protoc reads from the sources, comments included."""
    names = [name for name in protos.sources() if name.startswith("palimpsest/v1/")]
    with tempfile.TemporaryDirectory() as folder:
        foreign, out = Path(folder) / "foreign.binpb", Path(folder) / "ours.binpb"
        foreign.write_bytes(protos.third_party().SerializeToString(deterministic=True))
        protos.run_protoc(
            f"--descriptor_set_in={foreign}",
            f"--proto_path={protos.SOURCES}",
            "--include_source_info",
            f"--descriptor_set_out={out}",
            *names,
        )
        files = FileDescriptorSet.FromString(out.read_bytes()).file
    return Told(tuple(files), dict(comment for file in files for comment in _comments(file)))


def _comments(file: FileDescriptorProto) -> Iterator[tuple[str, str]]:
    """Name and comment of everything in a file; the file itself by its path."""
    for location in file.source_code_info.location:
        text = location.leading_comments
        if list(location.path) == [FileDescriptorProto.SYNTAX_FIELD_NUMBER]:
            text = text or "".join(location.leading_detached_comments)
            yield file.name, text
        elif text and (name := _named(file, location.path)):
            yield name, " ".join(text.split())


def _named(file: FileDescriptorProto, path: Iterable[int]) -> str:
    """What a path of source info leads to, as names joined by dots; empty for what has none."""
    at: Any = file
    names: list[str] = []
    steps = iter(path)
    for number in steps:
        field = at.DESCRIPTOR.fields_by_number.get(number)
        place = next(steps, None)
        if field is None or place is None or not field.is_repeated:
            return ""
        at = getattr(at, field.name)[place]
        if not hasattr(at, "name"):
            return ""
        names.append(at.name)
    return ".".join(names)


def page() -> str:
    """docs/api.md as it should read."""
    told = read()
    parts = [HEAD, *_conventions(told), *_index(told)]
    shown: set[str] = set()
    for service in told.services():
        parts += _service(service, told, shown)
    parts += _values(told, shown)
    parts += _enums(told)
    return "\n".join(parts)


def _conventions(told: Told) -> list[str]:
    _, *items = re.split(r"^\s*- ", told.comments["palimpsest/v1/common.proto"], flags=re.MULTILINE)
    shown = [" ".join(item.split()).replace("errors.proto", "[ErrorReason](#errorreason)") for item in items]
    return ["## Conventions", "", *(f"* {item}" for item in shown), ""]


def _index(told: Told) -> list[str]:
    rows = [
        f"| [{service.name}](#{service.name.lower()}) | "
        + " · ".join(f"[{method.name}](#{method.name.lower()})" for method in service.method)
        + " |"
        for service in told.services()
    ]
    more = "[Values](#values) · [Enums](#enums) · [Reasons of errors](#errorreason)"
    return ["## Calls", "", "| service | calls |", "|---|---|", *rows, "", more, ""]


def _service(service: ServiceDescriptorProto, told: Told, shown: set[str]) -> list[str]:
    parts = [f"## {service.name}", "", told.comments[service.name], ""]
    for method in service.method:
        parts += [f"### {method.name}", "", told.comments[f"{service.name}.{method.name}"], ""]
        parts += [_signature(method), ""]
        for kind in (method.input_type, method.output_type):
            name = kind.rpartition(".")[2]
            if name not in shown:
                shown.add(name)
                parts += _message(told.messages()[name], told, level="####")
    return parts


def _signature(method: MethodDescriptorProto) -> str:
    asked, answered = (kind.rpartition(".")[2] for kind in (method.input_type, method.output_type))
    stream = ["", "stream "]
    return f"`{stream[method.client_streaming]}{asked}` → `{stream[method.server_streaming]}{answered}`"


def _values(told: Told, shown: set[str]) -> list[str]:
    parts = ["## Values", "", "What requests and answers are made of.", ""]
    for name, message in sorted(told.messages().items()):
        if name not in shown:
            parts += _message(message, told, level="###")
    return parts


def _message(message: DescriptorProto, told: Told, level: str) -> list[str]:
    comment = told.comments[message.name]
    parts = [f"{level} {message.name}", ""]
    if not PLAIN.fullmatch(comment):
        parts += [comment, ""]
    if message.field:
        parts += ["| field | type | what |", "|---|---|---|"]
        parts += [_field(field, message, told) for field in message.field] + [""]
    else:
        parts += ["No fields.", ""]
    rules = [rule.message for rule in message.options.Extensions[validate_pb2.message].cel]
    if rules:
        parts += ["Rules: " + "; ".join(rules) + ".", ""]
    return parts


def _field(field: FieldDescriptorProto, message: DescriptorProto, told: Told) -> str:
    words = [told.comments[f"{message.name}.{field.name}"]]
    if limits := ", ".join(_limits(field, told)):
        words.append(f"*{limits[0].upper()}{limits[1:]}.*")
    if field.HasField("oneof_index") and not field.proto3_optional:
        oneof = message.oneof_decl[field.oneof_index].name
        words.append(f"(One of `{oneof}`.)")
    return f"| `{field.name}` | {_type(field, message)} | {_cell(' '.join(words))} |"


def _type(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    for nested in message.nested_type:
        if nested.options.map_entry and field.type_name.endswith(f".{message.name}.{nested.name}"):
            key, value = (_type(part, nested) for part in nested.field)
            return f"map of {key} to {value}"
    name = SCALARS.get(field.type) or _link(field.type_name)
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"list of {name}"
    return f"optional {name}" if field.proto3_optional else name


def _link(full: str) -> str:
    name = full.removeprefix(".")
    if name.startswith(f"{PACKAGE}."):
        short = name.removeprefix(f"{PACKAGE}.")
        return f"[{short}](#{short.lower()})"
    return f"`{name}`"


def _limits(field: FieldDescriptorProto, told: Told) -> Iterator[str]:
    """Lower ones first."""
    enum = told.enums().get(field.type_name.rpartition(".")[2])
    names = {value.number: f"`{value.name}`" for value in enum.value} if enum else {}
    rules = _rules(field.options.Extensions[validate_pb2.field], names)
    yield from sorted(rules, key=lambda rule: not rule.startswith(("at least", "more than")))


def _rules(rules: Any, names: Mapping[int, str]) -> Iterator[str]:
    """Every limit that a rule sets, in words. Raises KeyError for a kind that no field had so far."""
    for field, value in rules.ListFields():
        if field.is_extension:
            yield field.GetOptions().Extensions[validate_pb2.predefined].cel[0].message
        elif field.name in ("in", "not_in"):
            listed = ", ".join(names[number] for number in value if number)
            if listed:
                yield f"{'one of' if field.name == 'in' else 'none of'} {listed}"
        elif field.name in ("items", "keys", "values"):
            if inner := ", ".join(_rules(value, names)):
                yield f"{field.name}: {inner}"
        elif isinstance(value, Duration):
            yield WORDS[field.name].format(f"{value.seconds:,} s")
        elif field.type == field.TYPE_MESSAGE:
            yield from _rules(value, names)
        elif field.name in FLAGS:
            if FLAGS[field.name]:
                yield FLAGS[field.name]
        else:
            words = WORDS[field.name].format(f"{value:,}" if isinstance(value, int) else value)
            yield words.removesuffix("s") if value == 1 else words


def _enums(told: Told) -> list[str]:
    parts = ["## Enums", ""]
    for name, enum in sorted(told.enums().items()):
        parts += [f"### {name}", "", told.comments[name], ""]
        parts += _reasons(enum, told) if name == "ErrorReason" else _numbers(enum, told)
    return parts


def _numbers(enum: EnumDescriptorProto, told: Told) -> list[str]:
    rows = [
        f"| `{value.name}` | {value.number} | {_cell(told.comments[f'{enum.name}.{value.name}'])} |"
        for value in enum.value
    ]
    return ["| name | number | what |", "|---|---|---|", *rows, ""]


def _reasons(enum: EnumDescriptorProto, told: Told) -> list[str]:
    """As a caller meets them: `reason` of ErrorInfo, then the gRPC code."""
    _, _, about = told.comments["palimpsest/v1/errors.proto"].partition("\n\n")
    rows = []
    for value in enum.value[1:]:
        comment = told.comments[f"{enum.name}.{value.name}"]
        found = CODE.search(comment)
        assert found is not None, f"{value.name} does not say its gRPC code"
        what = comment[found.end() :].removeprefix(", here and below").lstrip(".: ")
        rows.append(f"| `{value.name.removeprefix('ERROR_REASON_')}` | {found[0]} | {_cell(what)} |")
    return [" ".join(about.split()), "", "| reason | code | what |", "|---|---|---|", *rows, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
