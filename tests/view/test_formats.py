"""Files written by the viewer, read by other programs: `make view-test` installs them."""

import json
import pathlib
import subprocess

import ase.io
import MDAnalysis
import numpy as np
import pytest
from mcap.reader import make_reader

from tarsus.view import ParticleSource
from tarsus.view.formats import write_dcd, write_gltf, write_mcap, write_xyz
from tarsus.view.gallery import open_scene
from tarsus.view.page import record

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", ["walk", "cards", "stewart", "c60"])
def test_gltf_passes_the_validator_of_khronos(name, tmp_path):
    path = tmp_path / f"{name}.glb"
    write_gltf(path, record(open_scene(name), 0.2))
    program = """const v = require('gltf-validator'), fs = require('fs');
      v.validateBytes(new Uint8Array(fs.readFileSync(process.argv[1]))).then(r => console.log(JSON.stringify(r)))"""
    run = subprocess.run(["node", "-e", program, path], capture_output=True, text=True, cwd=ROOT / "build/page")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["issues"]["numErrors"] == report["issues"]["numWarnings"] == 0, report["issues"]["messages"][:3]
    assert report["info"]["animationCount"] == 1 and report["info"]["drawCallCount"] > 0


def test_mdanalysis_and_ase_read_particles(tmp_path):
    recording = record(ParticleSource("water1"), 0.05)
    write_xyz(tmp_path / "w.xyz", recording)
    write_dcd(tmp_path / "w.dcd", recording)
    universe = MDAnalysis.Universe(str(tmp_path / "w.xyz"), str(tmp_path / "w.dcd"))
    found = np.array([step.positions.copy() for step in universe.trajectory])
    assert np.array_equal(found, recording.poses[:, :, :3])
    images = ase.io.read(str(tmp_path / "w.xyz"), ":")
    assert np.allclose([image.positions for image in images], recording.poses[:, :, :3], rtol=1e-6)
    assert images[0].get_chemical_symbols() == ["O", "H", "H"]


def test_mdanalysis_and_ase_read_the_periodic_box(tmp_path):
    recording = record(ParticleSource("water216"), 0.02)
    write_xyz(tmp_path / "w.xyz", recording)
    write_dcd(tmp_path / "w.dcd", recording)
    box = recording.scene["box"]
    assert min(box) > 0
    universe = MDAnalysis.Universe(str(tmp_path / "w.xyz"), str(tmp_path / "w.dcd"))
    assert np.allclose([step.dimensions for step in universe.trajectory], [*box, 90, 90, 90])
    image = ase.io.read(str(tmp_path / "w.xyz"))
    assert np.allclose(image.cell.lengths(), box) and image.pbc.all()


def test_mcap_reads_back(tmp_path):
    recording = record(open_scene("walk"), 0.3)
    write_mcap(tmp_path / "run.mcap", recording)
    with open(tmp_path / "run.mcap", "rb") as file:
        messages = [(channel.topic, json.loads(message.data)) for _, channel, message in make_reader(file).iter_messages()]
    transforms = [message for topic, message in messages if topic == "/tf"]
    assert len(transforms) == len(recording.frames)
    for row, pose in zip(transforms[-1]["transforms"], recording.poses[-1].astype(float)):
        assert np.allclose([row["translation"][c] for c in "xyz"] + [row["rotation"][c] for c in "wxyz"], pose)
