"""Every example of the pages runs as it stands, against one running product. README has a test of its own."""

from pathlib import Path

import pytest

from tests.e2e.reader import Reader, terminal
from tests.e2e.up_process import UpProcess
from tests.pages import Page, page_of, pages

pytestmark = pytest.mark.milvus

ELSEWHERE = {"README.md": "test_readme.py", "README.zh-CN.md": "equal to README.md: tests/unit/test_pages.py"}
EXAMPLES = [
    page for page in pages() if page.name not in ELSEWHERE and any(block.runs for block in page.blocks)
]
NAMES = [page.name for page in EXAMPLES]


@pytest.fixture
def reader(running: UpProcess, tmp_path: Path) -> Reader:
    """In front of a terminal with keys of a tenant that nobody else has, and the operator's."""
    tenant = running.tenant()
    keys = {"PALIMPSEST_KEY": tenant.key, "PALIMPSEST_OPERATOR_KEY": running.operator_key}
    return Reader(tmp_path, terminal(running) | keys)


@pytest.mark.parametrize("name", ["docs/cookbook.md"])
def test_programs_run(name: str, reader: Reader) -> None:
    """Every day without the commands, each of which starts a process: README's run every day."""
    reader.read(page_of(name), languages={"python"})


@pytest.mark.slow
@pytest.mark.parametrize("page", EXAMPLES, ids=NAMES)
def test_examples_run(page: Page, reader: Reader) -> None:
    reader.read(page)


def test_every_page_with_examples_is_read() -> None:
    assert {"docs/quickstart.md", "docs/cookbook.md", "docs/privacy.md"} <= set(NAMES)
