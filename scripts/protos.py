"""Generates the Python stubs from protos/, and the image that buf lints; needs nothing but installed wheels.

The .proto files of third parties that ours import are kept nowhere as text: protoc reads them as descriptors,
which the packages googleapis-common-protos, protobuf and protovalidate carry. buf lints the image that
protoc wrote, so it resolves no import either and asks no registry.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from google.protobuf import descriptor_pb2, duration_pb2, field_mask_pb2, struct_pb2, timestamp_pb2
from google.protobuf.descriptor import FileDescriptor
from google.rpc import error_details_pb2, status_pb2
from grpc_tools import protoc

# The package has no public name for its own descriptor; the lock pins the version that has this one.
from protovalidate._gen.buf.validate import validate_pb

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "protos"
IMAGE = ROOT / "build" / "protos.binpb"
VALIDATE = "buf/validate/validate.proto"
# Where stubs live: a path below protos/ is the same path below the root; buf.validate is the exception.
OWNED = (Path("palimpsest/v1"), Path("palimpsest/internal/v1"), Path("palimpsest/buf_validate"))
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")


def third_party() -> descriptor_pb2.FileDescriptorSet:
    """Every foreign file that ours may import, dependencies first."""
    files: dict[str, descriptor_pb2.FileDescriptorProto] = {}

    def add(file: FileDescriptor) -> None:
        if file.name in files:
            return
        for dependency in file.dependencies:
            add(dependency)
        proto = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(proto)
        files[file.name] = proto

    for module in (descriptor_pb2, duration_pb2, field_mask_pb2, struct_pb2, timestamp_pb2):
        add(module.DESCRIPTOR)
    for module in (status_pb2, error_details_pb2):
        add(module.DESCRIPTOR)
    binary = validate_pb.desc().proto.to_binary()
    files[VALIDATE] = descriptor_pb2.FileDescriptorProto.FromString(binary)
    return descriptor_pb2.FileDescriptorSet(file=files.values())


def run_protoc(*arguments: str) -> None:
    """Runs the protoc that grpcio-tools carries; exits with its code when it complains."""
    code = protoc.main(["protoc", *arguments])
    if code:
        sys.exit(code)


def sources() -> list[str]:
    """Our files, relative to protos/, in a fixed order."""
    return sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.proto"))


def generate(out: Path, image: Path) -> None:
    """Writes all stubs below `out` as they belong below the root, and the image of ours to `image`."""
    image.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        foreign = Path(folder) / "third_party.binpb"
        foreign.write_bytes(third_party().SerializeToString(deterministic=True))
        raw = Path(folder) / "raw"
        raw.mkdir()
        inputs = [f"--descriptor_set_in={foreign}", f"--proto_path={SOURCES}"]
        bin_folder = Path(sys.executable).parent
        run_protoc(
            *inputs,
            f"--plugin=protoc-gen-mypy={bin_folder / 'protoc-gen-mypy'}",
            f"--plugin=protoc-gen-mypy_grpc={bin_folder / 'protoc-gen-mypy_grpc'}",
            f"--python_out={raw}",
            f"--grpc_python_out={raw}",
            f"--mypy_out=quiet:{raw}",
            f"--mypy_grpc_out=quiet:{raw}",
            *sources(),
        )
        run_protoc(inputs[0], f"--python_out={raw}", VALIDATE)
        run_protoc(
            *inputs, "--include_imports", "--include_source_info", f"--descriptor_set_out={image}", *sources()
        )
        for path in raw.rglob("*"):
            if path.is_file():
                settle(path, raw, out)


def settle(path: Path, raw: Path, out: Path) -> None:
    """Moves one generated file to its place, its import of buf.validate pointed at the client's own room."""
    place = path.relative_to(raw)
    text = path.read_text(encoding="utf-8")
    if "_pb2_grpc." in place.name and "def add_" not in text:
        return  # the plugins write one for a file without services too
    if place.parts[0] == "buf":
        place = Path("palimpsest/buf_validate") / place.name
    elif path.suffix == ".py":
        text = text.replace(
            "from buf.validate import validate_pb2 as", "from palimpsest.buf_validate import validate_pb2 as"
        )
    target = out / place
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def generated(root: Path) -> dict[str, str]:
    """The generated files below `root`, by path."""
    found: Iterable[Path] = (path for room in OWNED for path in (root / room).rglob("*"))
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in found
        if GENERATED.search(path.name)
    }


def main() -> None:
    """Generates in place, or with --check tells which committed stubs are not what the sources give."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write only the image; fail on stale stubs")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), IMAGE)
        fresh, present = generated(Path(folder)), generated(ROOT)
    stale = sorted(name for name in fresh.keys() | present.keys() if fresh.get(name) != present.get(name))
    if check:
        if stale:
            sys.exit("Stale stubs; run `make protos`:\n  " + "\n  ".join(stale))
        return
    for name in stale:
        if name in fresh:
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / name).write_text(fresh[name], encoding="utf-8")
        else:
            (ROOT / name).unlink()
        print(("wrote   " if name in fresh else "removed ") + name)


if __name__ == "__main__":
    main()
