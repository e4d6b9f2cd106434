"""Exchange of recordings: numpy reads what the command line writes, and `tarsus info` reads what numpy writes."""

import json
import os
import pathlib
import pickle
import signal
import subprocess
import time

import numpy as np
import pytest

import tarsus as tarsus_library

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLI = pathlib.Path(os.environ.get("TARSUS_CLI", ROOT / "build" / "bin" / "tarsus"))

pytestmark = pytest.mark.skipif(not CLI.exists(), reason=f"{CLI} is not built")


def tarsus(*arguments):
    return subprocess.run([str(CLI), *map(str, arguments)], capture_output=True, text=True, timeout=60)


def info(path):
    result = tarsus("info", path, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def meta(frames, **changes):
    fields = {"format": "tarsus-recording", "version": 1, "model": "m", "nq": 2, "nv": 2, "joints": ["a", "b"], "joint_types": ["hinge", "slide"], "frames": frames}
    return np.frombuffer(json.dumps(fields | changes).encode(), dtype=np.uint8)


def arrays(frames=3):
    rng = np.random.default_rng(1)
    return {"time": np.arange(frames) / 30, "qpos": rng.normal(size=(frames, 2)), "qvel": rng.normal(size=(frames, 2))}


def test_numpy_reads_a_run(tmp_path):
    out = tmp_path / "run.npz"
    result = tarsus("run", ROOT / "models" / "double_pendulum.xml", "--dt", "0.01", "--duration", "0.5", "--out", out, "--quiet", "--json")
    assert result.returncode == 0, result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]
    with np.load(out, allow_pickle=False) as npz:
        notes = json.loads(npz["meta"].tobytes())
        n = notes["frames"]
        assert n >= 50
        assert npz["time"].shape == (n,) and npz["time"].dtype == np.dtype("<f8")
        assert npz["qpos"].shape == (n, notes["nq"]) and npz["qvel"].shape == (n, notes["nv"])
        assert npz["qpos"].flags.c_contiguous
        assert np.allclose(np.diff(npz["time"]), 0.01, rtol=1e-9)
        assert all(np.isfinite(npz[k]).all() for k in ("time", "qpos", "qvel"))
        shown = info(out)
        assert shown["frames"] == n and shown["model"] == notes["model"]
        for k in ("time", "qpos", "qvel"):
            assert shown["arrays"][k]["shape"] == list(npz[k].shape)
            assert shown["arrays"][k]["range"] == {"min": npz[k].min(), "max": npz[k].max()}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numpys_files_are_read(tmp_path, save, dtype):
    path, values = tmp_path / "numpy.npz", {k: v.astype(dtype) for k, v in arrays().items()}
    save(path, meta=meta(3), extra=np.arange(4), **values)
    shown = info(path)
    assert shown["kind"] == "recording" and shown["unused"] == ["extra"]
    for k, v in values.items():
        assert shown["arrays"][k]["range"] == {"min": float(v.min()), "max": float(v.max())}


def test_an_npz_that_is_no_recording_is_listed(tmp_path):
    path = tmp_path / "numpy.npz"
    np.savez(path, a=np.zeros((2, 3)), b=np.array([True]), c=np.int16(3))
    assert info(path)["arrays"] == {"a": {"type": "float64", "shape": [2, 3]}, "b": {"type": "bool", "shape": [1]}, "c": {"type": "int16", "shape": []}}


REFUSED = {
    "pickled": lambda a: a | {"qpos": np.array([[None, 1]] * 3, dtype=object)},
    "Fortran": lambda a: a | {"qpos": np.asfortranarray(a["qpos"])},
    "big-endian": lambda a: a | {"qpos": a["qpos"].astype(">f8")},
    "complex": lambda a: a | {"qpos": a["qpos"].astype(complex)},
    "int64": lambda a: a | {"qpos": np.zeros((3, 2), dtype=np.int64)},
    "expected (3, 2)": lambda a: a | {"qpos": np.zeros((3, 3))},
    "is nan": lambda a: a | {"qpos": np.full((3, 2), np.nan)},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_refused_is_named(tmp_path, reason):
    path = tmp_path / "numpy.npz"
    np.savez(path, meta=meta(3), **REFUSED[reason](arrays()))
    result = tarsus("info", path)
    assert result.returncode == 1
    assert "numpy.npz" in result.stderr and "qpos" in result.stderr
    assert ("c16" if reason == "complex" else reason) in result.stderr, result.stderr


def test_clips_of_every_kind_are_shown(tmp_path):
    still = np.zeros((4, 34))
    (tmp_path / "stand.pkl").write_bytes(pickle.dumps({"loop_mode": 0, "fps": 30, "frames": still.tolist()}))
    np.savez(tmp_path / "amass.npz", trans=np.zeros((4, 3)), poses=np.zeros((4, 156)), mocap_framerate=30.0)
    (tmp_path / "acclaim.asf").write_text(
        ":units\n  length 0.45\n  angle deg\n:root\n  order TX TY TZ RX RY RZ\n  axis XYZ\n  position 0 0 0\n"
        "  orientation 0 0 0\n:bonedata\n  begin\n    id 1\n    name leg\n    direction 0 -1 0\n    length 8\n"
        "    axis 0 0 0 XYZ\n    dof rx\n    limits (-20 120)\n  end\n:hierarchy\n  begin\n    root leg\n  end\n")
    (tmp_path / "acclaim.amc").write_text("# a comment\n:DEGREES\n" + "".join(f"{i}\nroot 0 0 0 0 0 0\nleg {i}\n" for i in range(1, 5)))
    for name, kind in (("stand.pkl", "mimickit_humanoid"), ("amass.npz", "amass"), ("acclaim.amc", "amc")):
        shown = info(tmp_path / name)
        assert (shown["kind"], shown["format"], shown["frames"]) == ("clip", kind, 4)
    (tmp_path / "notes.txt").write_text("# no motion\nbut a text\n")
    assert "this is not a motion clip" in tarsus("info", tmp_path / "notes.txt").stderr


def test_a_folder_of_recordings_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").write_text("")
    words = ["run", ROOT / "models" / "pendulum.xml", "--duration", "0.1"]
    refused = tarsus(*words)
    assert refused.returncode == 1 and "out, the folder of recordings, cannot be created: Not a directory; --out writes" in refused.stderr
    assert tarsus(*words, "--no-record").returncode == 0


def test_a_file_cut_off_is_refused(tmp_path):
    path = tmp_path / "numpy.npz"
    np.savez(path, meta=meta(3), **arrays())
    whole = path.read_bytes()
    for n in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n])
        result = tarsus("info", path)
        assert result.returncode == 1 and "numpy.npz" in result.stderr, n


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("arguments", [("run", ROOT / "models/humanoid.xml", "--duration", "1e5", "--out"),
                                       ("scene", ROOT / "models/scenes/card_house.xml", "--duration", "1e5", "--out")])
def test_an_interrupted_run_keeps_its_recording(tmp_path, arguments, number):
    out = tmp_path / "out.npz"
    run = subprocess.Popen([str(CLI), *map(str, arguments), str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    run.send_signal(number)
    text, errors = run.communicate(timeout=60)
    assert run.returncode == 128 + number and "interrupted at" in errors, errors
    assert "steps" in text
    with np.load(out) as recording:
        assert 1 <= len(recording["time"]) == len(recording["qpos"]) < 1e5 * 1000
        assert np.isfinite(recording["qpos"]).all()


def test_an_interrupted_fluid_is_reported_up_to_its_last_step(tmp_path):
    frames, table = tmp_path / "water.xyz", tmp_path / "table.csv"
    run = subprocess.Popen([str(CLI), "md", "water1", "--steps", "1000000000", "--json", "--out", str(frames), "--energies", str(table)],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not table.exists():
        time.sleep(0.01)
    time.sleep(0.2)
    run.send_signal(signal.SIGINT)
    report = json.loads(run.communicate(timeout=60)[0])
    last = report["energy"]["last"]
    assert report["interrupted"] and last["step"] == report["steps"] > 0
    assert int(table.read_text().splitlines()[-1].split(",")[0]) == report["steps"]
    assert f"step={report['steps']} " in frames.read_text()


def test_a_fluid_that_settles_is_interrupted(tmp_path):
    out = tmp_path / "water.xyz"
    run = subprocess.Popen([str(CLI), "md", "water:1728", "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "settling" in run.stderr.readline()
    run.send_signal(signal.SIGINT)
    errors = run.communicate(timeout=60)[1]
    assert run.returncode == 130 and "interrupted at 0 s" in errors and " 90 %" not in errors and not out.exists(), errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("another_process", [False, True])
def test_an_interrupted_benchmark_ends(another_process, number):
    words = ["bench", "batch", ROOT / "models/humanoid.xml", "--worlds", "16", "--threads", "1"]
    if another_process:
        words += ["--isa", json.loads(tarsus(*words, "--steps", "1", "--json").stdout)["rows"][0]["isa"]]
    run = subprocess.Popen([str(CLI), *map(str, words), "--steps", "1000000", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, start_new_session=True)
    time.sleep(1.5)
    if number == signal.SIGINT:
        os.killpg(run.pid, number)  # as a terminal does
    else:
        run.send_signal(number)
    try:
        report = json.loads(run.communicate(timeout=60)[0])
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == 128 + number and report["interrupted"] and report["rows"] == []


def test_a_benchmark_whose_process_fails_has_an_error_in_json():
    result = tarsus("bench", "batch", ROOT / "models/humanoid.xml", "--isa", "baseline", "--gains", "nosuch.json", "--json")
    assert result.returncode != 0 and "--isa" in json.loads(result.stdout)["error"], result.stderr


def test_an_interrupted_replay_says_so_in_json(tmp_path):
    out = tmp_path / "balls.npz"
    assert tarsus("run", "balls:8:8", "--duration", "6", "--quiet", "--out", out).returncode == 0
    run = subprocess.Popen([str(CLI), "replay", str(out), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    run.send_signal(signal.SIGINT)
    report = json.loads(run.communicate(timeout=60)[0])
    assert run.returncode == report["exit_status"] == 130 and report["error"].startswith("interrupted at frame ")


def test_a_profile_has_the_documented_stages_and_all_the_time(tmp_path):
    documented = (ROOT / "docs/architecture.md").read_text().split("## A step, in run order")[1].split("##")[0]
    stages = [line.split("|")[1].strip() for line in documented.splitlines() if line.startswith("|")][2:]
    model = tarsus_library.Model.load(ROOT / "models/humanoid.xml")
    data = tarsus_library.Data(model)
    stepper = tarsus_library.Stepper(data, 1 / 60, contacts=True, joint_limits=True, profile=True)
    began = time.perf_counter()
    for _ in range(300):
        stepper.step()
    whole = time.perf_counter() - began
    seconds = stepper.stage_seconds
    assert list(seconds) == stages
    for stage in ("drive", "solve", "collide", "prepare", "terms", "integrate", "check"):
        assert seconds[stage] > 0, stage
    assert 0.2 * whole < sum(seconds.values()) <= whole
    assert not any(tarsus_library.Stepper(data, 1 / 60).stage_seconds.values())

    run = tarsus("run", ROOT / "models/humanoid.xml", "--duration", "2", "--profile", "--json", "--no-record")
    report = json.loads(run.stdout)
    assert 0.5 * report["seconds"] < sum(report["stage_seconds"].values()) <= report["seconds"]
    assert set(report["stage_seconds"]) <= set(stages)
    table = tarsus("run", ROOT / "models/humanoid.xml", "--duration", "1", "--profile", "--no-record").stdout
    assert "terms" in table and "share" in table
    scene = json.loads(tarsus("scene", "balls:4:4", "--duration", "0.5", "--profile", "--json").stdout)
    assert set(scene["stage_seconds"]) == {"collide", "match", "prepare", "terms", "integrate"}
