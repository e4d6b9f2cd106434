"""The documentation's site, opened from disk without a network: `make view-test`."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from playwright import sync_api

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    build = tmp_path_factory.mktemp("build")
    (build / "python").mkdir()
    shutil.copy(ROOT / "build/python/_core.pyi", build / "python")
    run = subprocess.run([sys.executable, str(ROOT / "tools/docs_site.py"), "--build", str(build)], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return build / "site/html"


def test_search_finds_pages_from_disk(site):
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = chromium.new_page()
        asked, complaints = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.goto((site / "docs/learning.html").as_uri())
        page.fill(".md-search__input", "spook")
        page.wait_for_selector(".md-search-result__item")
        assert page.locator(".md-search-result__item", has_text="SPOOK").count() > 0
        assert complaints == [] and all(url.startswith(("file:", "data:", "blob:")) for url in asked)
        chromium.close()
