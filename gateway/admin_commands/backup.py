"""`palimpsest-admin backup` and `restore`: an installation as of one moment, in a folder, and back."""

import base64
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from gateway.admin_commands import tables
from gateway.admin_commands.installation import (
    FAILED,
    DataDir,
    Graph,
    Installation,
    Tenant,
    end,
    run,
)
from gateway.credits.audit import audit
from gateway.errors import GraphNotFound
from gateway.store.graphs import GraphRow
from palimpsest.v1.graph_pb2 import GraphSettings
from services.domain.ids import Revision
from services.domain.instants import Instant, moment
from services.upkeep.archive import ArchiveIn, ArchiveOut, GraphEntry, Manifest
from services.upkeep.backup import StoresNotEmpty, back_up_graph, check_empty, restore_graph, scope_of
from services.upkeep.verify import Verifier


def backup_command(
    folder: Annotated[Path, typer.Argument(help="A new folder, or an empty one.")],
    tenant: Tenant = None,
    graph: Graph = None,
    vectors: Annotated[
        bool, typer.Option(help="Keep vectors; without them they are embedded anew at a restore.")
    ] = True,
    data_dir: DataDir = None,
) -> None:
    """Writes an installation as of one moment into a folder, server up or not; nobody waits for it.

    Tenants, hashed keys, ledger and jobs, and every graph as it was published then. With --tenant or --graph:
    those graphs alone. The folder holds texts of users: it is readable by its owner only. Exit code 0: it is
    whole. 1: it was refused, or the folder can't be written. 2: a store could not be reached.
    """

    async def write(installation: Installation) -> Manifest:
        whole = tenant is None and graph is None
        with ArchiveOut(folder) as archive:
            dumped = await tables.dump(installation.gateway, archive) if whole else None
            at = installation.stores.now() if dumped is None else dumped.at
            entries = []
            for row in await installation.graphs(tenant, graph):
                entry = await back_up_graph(
                    installation.stores,
                    row.scope,
                    at,
                    archive,
                    at_least=Revision(0) if dumped is None else dumped.revisions.get(row.scope, Revision(0)),
                    with_vectors=vectors,
                    settings=_settings_out(row),
                )
                typer.echo(f"{entry.tenant}/{entry.graph}  revision {entry.revision}")
                entries.append(entry)
            embedder = installation.stores.embedder
            manifest = Manifest(
                at=at,
                product=version("palimpsest-memory"),
                embedder=embedder.name,
                dimension=embedder.dimension,
                with_vectors=vectors,
                graphs=tuple(entries),
                files=archive.files,
                revisions=tables.revisions() if whole else {},
            )
            archive.finish(manifest)
        return manifest

    manifest = run(data_dir, write)
    lines = sum(entry.lines for entry in manifest.files.values())
    typer.echo(f"as of {moment(Instant(manifest.at))}: {len(manifest.graphs)} graphs, {lines} rows", err=True)


def restore_command(
    folder: Annotated[Path, typer.Argument(help="What `backup` wrote.")],
    vectors: Annotated[
        bool, typer.Option(help="Take kept vectors; otherwise, and with another embedder, embed anew.")
    ] = True,
    data_dir: DataDir = None,
) -> None:
    """Writes a backup into empty stores, checks it, and verifies what is there then. The server must be down.

    Every file is checked against its hash before anything is written. Exit code 0: all is there. 1: it was
    refused (damaged, stores not empty), or differences were found. 2: a store could not be reached.
    """

    async def write(installation: Installation) -> int:
        archive = ArchiveIn(folder)
        await _check(installation, archive)
        verifier = Verifier(installation.stores, installation.vocabulary)
        left = 0
        for entry in archive.manifest.graphs:
            items = await restore_graph(installation.stores, archive, entry, vectors)
            report = await verifier.verify(scope_of(entry))
            left += report.left
            told = f", {report.left} differences" if report.left else ""
            typer.echo(f"{entry.tenant}/{entry.graph}  revision {entry.revision}, {items} items{told}")
        # Last: until a key works, nobody reads half an installation.
        if archive.manifest.revisions:
            await tables.load(installation.gateway, archive)
            findings = await audit(installation.gateway.ledger_database, installation.gateway.clock)
            for finding in findings:
                typer.echo(f"{finding.invariant}  {finding.subject}")
            left += len(findings)
        else:
            for entry in archive.manifest.graphs:
                await installation.gateway.graphs.create(scope_of(entry), _settings_in(entry))
        return left

    if left := run(data_dir, write):
        end(f"{left} differences; `palimpsest-admin verify` and `audit` tell which", FAILED)


async def _check(installation: Installation, archive: ArchiveIn) -> None:
    """Refuses before anything is written. Raises ArchiveUnknown, StoresNotEmpty."""
    if archive.manifest.revisions:
        tables.check_revisions(archive)
        await tables.check_empty(installation.gateway)
    else:
        for entry in archive.manifest.graphs:
            await _check_settings(installation, entry)
    for entry in archive.manifest.graphs:
        await check_empty(installation.stores, scope_of(entry))


async def _check_settings(installation: Installation, entry: GraphEntry) -> None:
    """Raises StoresNotEmpty for a graph that is known, empty perhaps, with other settings."""
    try:
        known = await installation.gateway.graphs.get(scope_of(entry))
    except GraphNotFound:
        return
    if known.settings != _settings_in(entry):
        raise StoresNotEmpty(f"{entry.tenant}/{entry.graph} is there already, with other settings")


def _settings_in(entry: GraphEntry) -> GraphSettings:
    return GraphSettings.FromString(base64.b64decode(entry.settings))


def _settings_out(row: GraphRow) -> str:
    return base64.b64encode(row.settings.SerializeToString(deterministic=True)).decode()
