"""Every example of the pages runs as it stands, against one running product. README has a test of its own."""

from pathlib import Path

import pytest

from tests.e2e.reader import Reader, terminal
from tests.e2e.up_process import UpProcess
from tests.pages import Page, pages

pytestmark = pytest.mark.milvus

ELSEWHERE = {"README.md": "test_readme.py", "README.zh-CN.md": "equal to README.md: tests/unit/test_pages.py"}
DAILY = {"docs/quickstart.md", "docs/cookbook.md"}
EXAMPLES = [
    pytest.param(page, id=page.name, marks=() if page.name in DAILY else pytest.mark.slow)
    for page in pages()
    if page.name not in ELSEWHERE and any(block.runs for block in page.blocks)
]


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_run(page: Page, running: UpProcess, tmp_path: Path) -> None:
    tenant = running.tenant()
    keys = {
        "PALIMPSEST_KEY": tenant.key,
        "PALIMPSEST_OPERATOR_KEY": running.operator_key,
        "TENANT": tenant.id,
    }
    Reader(tmp_path, terminal(running) | keys).read(page)
