"""Whatever Python and JSON the documentation shows works when it is copied: each page's blocks, in their order."""

import json
import pathlib
import re

import pytest

import tarsus

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]


def test_the_pages_are_found():
    names = {page.name for page in WITH_PYTHON}
    assert names >= {"python.md", "constraints.md", "contact.md", "geometry.md", "ground.md", "force_limits.md"}


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_the_pages_python_runs(page, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    names = {}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), names)


def test_the_pages_json_is_json():
    count = 0
    for page in PAGES:
        for block in blocks(page, "json"):
            assert isinstance(json.loads(block), dict), page
            count += 1
    assert count >= 3


def test_the_setup_of_particles_md_is_read(tmp_path):
    (setup,) = blocks(ROOT / "docs" / "particles.md", "json")
    (tmp_path / "water.json").write_text(setup)
    water = tarsus.ParticleSystem.load("water216", units="nm_ps", setup=str(tmp_path / "water.json"))
    assert tarsus.VelocityVerlet(water).step(2)
