"""Python and JSON in the documentation work when they are copied: the blocks of each page, in their order."""

import json
import pathlib
import re
import shutil
import subprocess

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


# The surroundings of a page's C++: headers, and names that the page does not declare.
CPP = {
    "contact.md": (["io/model_file", "sim/rigid_model"], "int k = 0; std::vector<double> qpos, qvel;"),
    "add_a_constraint.md": (
        ["constraint/equality"],
        "Model model = compile({}); EqualitySet set(model); const int crank = 0, slide = 1;",
    ),
    "force_limits.md": (
        ["sim/step"],
        "Model model = compile({}); Data data(model); Stepper<double> stepper(model, data, {}); AlignedVector<double> target;",
    ),
    "geometry.md": (
        ["geometry/convex_hull", "geometry/narrow_phase"],
        "std::vector<Vec3d> corners; Vec3d position{}; Mat3d rotation = identity3<double>();",
    ),
    "particles.md": (["io/md_system", "particles/builtin", "particles/verlet"], ""),
}


def test_every_page_with_cpp_is_known():
    assert {page.name for page in PAGES if blocks(page, "cpp")} - {"README.md"} == set(CPP)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.parametrize("name", CPP)
def test_the_pages_cpp_compiles(name):
    headers, given = CPP[name]
    body = "\n".join(blocks(ROOT / "docs" / name, "cpp"))
    source = "".join(f'#include "tarsus/{header}.hpp"\n' for header in headers)
    source += f"using namespace tarsus;\nvoid page() {{\n{given}\n{body}\n}}\n"
    command = ["g++", "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", "-x", "c++", "-"]
    run = subprocess.run(command, input=source, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[:2000]


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
