"""Particle systems from Python: an independent integrator, the reference frames, users' constraints, errors."""

import pathlib
import threading
import warnings

import numpy as np
import pytest
import tarsus

REFERENCE = pathlib.Path(__file__).parents[2] / ".." / "shared" / "reference" / "md"


# -- an integrator of the textbook's, dense and slow -------------------------------------------------------------------


class Textbook:
    """RATTLE in dense matrices, with independently written forces over all pairs."""

    def __init__(self, mass, box, pairs, lengths, setup, types, molecule):
        self.m, self.box, self.pairs, self.d = mass, box, np.asarray(pairs), np.asarray(lengths)
        self.setup, self.types, self.molecule = setup, types, molecule

    def sigma(self, x):
        e = x[self.pairs[:, 0]] - x[self.pairs[:, 1]]
        return 0.5 * ((e * e).sum(1) - self.d**2)

    def jacobian(self, x):
        jac = np.zeros((len(self.d), x.size))
        for k, (i, j) in enumerate(self.pairs):
            e = x[i] - x[j]
            jac[k, 3 * i : 3 * i + 3], jac[k, 3 * j : 3 * j + 3] = e, -e
        return jac

    def lennard_jones(self, r, epsilon, sigma):
        lj = self.setup["lennard_jones"]
        rc, rs = lj["cutoff"], lj.get("switch_from")
        if r >= rc:
            return 0.0, 0.0
        u = force = 0.0
        for p, c in ((12, 4 * epsilon * sigma**12), (6, -4 * epsilon * sigma**6)):
            a = b = k = t = 0.0
            if lj["form"] == "force_switch":
                a = -p * ((p + 4) * rc - (p + 1) * rs) / (rc ** (p + 2) * (rc - rs) ** 2)
                b = p * ((p + 3) * rc - (p + 1) * rs) / (rc ** (p + 2) * (rc - rs) ** 3)
                k = rc**-p - a / 3 * (rc - rs) ** 3 - b / 4 * (rc - rs) ** 4
                t = max(r - rs, 0.0)
            elif lj["form"] == "shifted":
                k = rc**-p
            u += c * (r**-p - a / 3 * t**3 - b / 4 * t**4 - k)
            force += c * (p * r ** -(p + 1) + a * t * t + b * t**3)
        return u, force

    def coulomb(self, r, qq):
        c = self.setup["coulomb"]
        rc = c["cutoff"]
        if r >= rc:
            return 0.0, 0.0
        if c["form"] == "shifted_force":
            return qq * (1 / r - 2 / rc + r / rc**2), qq * (1 / r**2 - 1 / rc**2)
        e = c["epsilon_outside"]
        k = (0.5 if e == 0 else (e - 1) / (2 * e + 1)) / rc**3
        return qq * (1 / r + k * r * r - 1 / rc - k * rc * rc), qq * (1 / r**2 - 2 * k * r)

    def forces(self, x):
        force, energy, kind = np.zeros_like(x), 0.0, self.setup["types"]
        for i in range(len(x)):
            for j in range(i):
                if self.molecule[i] == self.molecule[j]:
                    continue
                a, b = kind[self.types[i]], kind[self.types[j]]
                e = x[i] - x[j]
                e -= self.box * np.round(e / self.box)
                r = np.sqrt(e @ e)
                u, f = self.lennard_jones(r, np.sqrt(a["epsilon"] * b["epsilon"]), 0.5 * (a["sigma"] + b["sigma"]))
                v, g = self.coulomb(r, self.setup["coulomb"]["constant"] * a["charge"] * b["charge"])
                energy += u + v
                force[i] += (f + g) / r * e
                force[j] -= (f + g) / r * e
        return force, energy

    def run(self, x, v, dt, steps):
        x, v, w = x.copy(), v.copy(), np.repeat(1 / self.m, 3)
        f, energy = self.forces(x)
        old = self.jacobian(x)
        for _ in range(steps):
            v += 0.5 * dt * f / self.m[:, None]
            free = x + dt * v
            x = free.copy()
            for _ in range(8):
                step = np.linalg.solve(self.jacobian(x) * w @ old.T, self.sigma(x))
                x -= (w * (old.T @ step)).reshape(x.shape)
            v += (x - free) / dt
            f, energy = self.forces(x)
            v += 0.5 * dt * f / self.m[:, None]
            old = self.jacobian(x)
            for _ in range(2):
                v -= (w * (old.T @ np.linalg.solve(old * w @ old.T, old @ v.ravel()))).reshape(v.shape)
        return x, v, energy


SHAPES = {
    "dumbbells": ([(0, 0, 0), (0.9, 0, 0)], [(0, 1)]),
    "triangles": ([(0, 0, 0), (1, 0, 0), (0.3, 0.8, 0)], [(0, 1), (0, 2), (1, 2)]),
    "chains": ([(0, 0, 0), (0.8, 0, 0), (1.2, 0.7, 0), (1.3, 0.8, 0.8)], [(0, 1), (1, 2), (2, 3)]),
    "stars": ([(0, 0, 0), (0.8, 0, 0), (0, 0.8, 0), (0, 0, 0.8)], [(0, 1), (0, 2), (0, 3)]),
    "rings": ([(0, 0, 0), (0.9, 0, 0), (0.9, 0.9, 0.2), (0, 0.9, 0)], [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "rigid": ([(0, 0, 0), (0.9, 0, 0), (0.4, 0.8, 0), (0.4, 0.3, 0.8)], [(a, b) for a in range(4) for b in range(a)]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "lj, coulomb",
    [
        ({"form": "plain"}, {"form": "shifted_force"}),
        ({"form": "shifted"}, {"form": "reaction_field", "epsilon_outside": 0}),
        ({"form": "force_switch", "switch_from": 1.7}, {"form": "reaction_field", "epsilon_outside": 20.0}),
    ],
)
def test_follows_an_independent_integrator(shape, lj, coulomb):
    rng = np.random.default_rng(7)
    place, bonds = SHAPES[shape]
    place, k = np.array(place, float), len(place)
    centres = np.array([(a, b, c) for a in range(2) for b in range(2) for c in range(2)]) * 2.6
    x = np.concatenate([c + place @ np.linalg.qr(rng.normal(size=(3, 3)))[0] for c in centres])
    n, molecule = len(x), np.arange(8 * k) // k
    names = [("A", "B", "C")[i % 3] for i in range(k)]
    kinds = {"A": (1.0, 0.9, 0.4, 2.0), "B": (0.5, 0.8, -0.3, 1.0), "C": (0.0, 1.0, 0.2, 0.7)}
    setup = {
        "molecule": names,
        "types": {t: dict(epsilon=e, sigma=s, charge=q) for t, (e, s, q, _) in kinds.items()},
        "lennard_jones": {"cutoff": 2.3, **lj},
        "coulomb": {"cutoff": 2.5, "constant": 1.5, "corrections": False, **coulomb},
        "distances": [[i, j, float(np.linalg.norm(place[i] - place[j]))] for i, j in bonds],
    }
    mass = np.array([kinds[names[i % k]][3] for i in range(n)])
    box = np.array([5.2, 5.4, 5.6])
    system = tarsus.ParticleSystem(mass, x, rng.normal(size=(n, 3)) * 0.3, box=box)
    system.setup(setup)
    system.prepare(1e-14)
    x, v = system.position.copy(), system.velocity.copy()
    pairs = [(m * k + i, m * k + j) for m in range(8) for i, j in bonds]
    book = Textbook(mass, box, pairs, [d for _ in range(8) for *_, d in setup["distances"]], setup, names * 8, molecule)
    xb, vb, energy = book.run(x, v, 0.004, 30)
    verlet = tarsus.VelocityVerlet(system, 0.004, tolerance=1e-15)
    report = verlet.step(30)
    assert report, report.message
    assert np.abs(xb - x).max() > 1e-2
    assert np.abs(system.position - xb).max() < 1e-12
    assert np.abs(system.velocity - vb).max() < 1e-11
    assert abs(verlet.energies["potential"] - energy) < 1e-11 * (1 + abs(energy))


# -- reference frames ------------------------------------------------------------------------------------------------


def frames(name):
    out, rows = {}, []
    for line in (REFERENCE / name).read_text().splitlines():
        if line.startswith("frame"):
            rows = out[int(line.split()[1])] = []
        elif not line.startswith("#"):
            rows.append([float(word) for word in line.split()])
    return {step: np.array(rows) for step, rows in out.items()}


@pytest.mark.skipif(not REFERENCE.exists(), reason="no reference data")
@pytest.mark.parametrize(
    "system, file, forces, dt, last",
    [
        ("water1.sys", "water1.lammps_rattle.frames", "", 2.0, 1000),
        ("water216.sys", "water216.lammps_dsf.frames", "spce-lammps-dsf", 2.0, 100),
        ("chain128.sys", "chain128.gromacs_shake.frames", "", 0.002, 1000),
    ],
)
def test_reference_frames(system, file, forces, dt, last):
    particles = tarsus.ParticleSystem.load(str(REFERENCE / system), forces=forces)
    verlet = tarsus.VelocityVerlet(particles, dt, tolerance=1e-14)
    compared = 0
    for step, rows in frames(file).items():
        if not 0 < step <= last:
            continue
        assert verlet.step(step - verlet.steps)
        assert np.abs(particles.position - rows[:, :3]).max() < 1e-10
        compared += 1
    assert compared


# -- the interface ---------------------------------------------------------------------------------------------------


def pendulum():
    system = tarsus.ParticleSystem(np.ones(2), np.array([[0.0, 0, 0], [1, 0, 0]]))
    system.pinned = [0]
    system.setup({"gravity": [0, 0, -9.81]})
    return system


def test_users_rows_hold_and_agree_with_the_built_in_ones():
    def circle(x):
        e = x[1] - x[0]
        return 0.5 * (e @ e - 1), np.stack([-e, e])

    ends = []
    for own in (True, False):
        system = pendulum()
        if own:
            assert system.add_user([0, 1], circle, 1.0, "circle") == 0
            assert "circle" in system.describe(0)
        else:
            system.add_distance(0, 1, 1.0)
        system.prepare()
        verlet = tarsus.VelocityVerlet(system, 0.01)
        assert verlet.step(199)
        e, v2 = system.position[1].copy(), (system.velocity[1] ** 2).sum()
        assert abs(0.5 * v2 + 9.81 * e[2]) < 1e-2
        assert verlet.step()
        assert system.violation() < 1e-12
        ends.append(system.position.copy())
        if not own:  # centripetal force and weight along the rod at the step's start, to first order in dt
            assert abs(verlet.tensions[0] / (v2 - 9.81 * e[2]) - 1) < 0.05
    assert np.abs(ends[0] - ends[1]).max() < 1e-11


def test_an_error_in_a_users_row_comes_out_and_leaves_the_state():
    system = pendulum()
    calls = [0]

    def row(x):
        calls[0] += 1
        if calls[0] > 30:
            raise RuntimeError("enough")
        e = x[1] - x[0]
        return 0.5 * (e @ e - 1), np.stack([-e, e])

    system.add_user([0, 1], row, 1.0)
    verlet = tarsus.VelocityVerlet(system, 0.01)
    with pytest.raises(RuntimeError, match="enough"):
        verlet.step(1000)
    assert np.isfinite(system.position).all() and abs(np.linalg.norm(system.position[1]) - 1) < 1e-12
    system = pendulum()
    system.add_user([0, 1], lambda x: 1.0, 1.0)
    with pytest.raises(TypeError, match="gradient"):
        system.prepare()


def test_a_users_row_cannot_change_its_own_system():
    def beads():
        return tarsus.ParticleSystem(np.ones(3), np.array([[0.0, 0, 0], [1, 0, 0], [2, 0.1, 0]]))

    changes = [lambda s: s.add_distance(1, 2, 1.0), lambda s: s.setup({"gravity": [0, 0, -1]}), lambda s: s.prepare(),
               lambda s: s.set_temperature(1.0), lambda s: s.violation(), lambda s: setattr(s, "pinned", [2])]
    uses = [lambda s: s.prepare(), lambda s: s.violation(), lambda s: s.set_temperature(1.0)]
    for change in changes:
        for use in uses:
            s = beads()

            def function(x):
                change(s)
                return x[0, 0], np.array([[1.0, 0, 0]])

            s.add_user([0], function, 1.0)
            with pytest.raises(tarsus.ValueError, match="system: is in use by the function of one of its constraints"):
                use(s)
            assert s.constraints == 1
            s.add_distance(1, 2, 1.0)  # and free again


def test_a_failed_step_is_a_report_and_leaves_the_state():
    system = tarsus.ParticleSystem.load("chain:20")
    before = system.position.copy()
    report = tarsus.VelocityVerlet(system, 10.0).step(5)
    assert not report and not report.ok and "dt*omega_max" in report.message
    assert (system.position == before).all() and not report.position.ok and report.position.status != "converged"


@pytest.mark.parametrize("at_a_time", [1, 20])
def test_a_failed_step_leaves_the_energies_of_the_state(at_a_time):
    """Two particles fall side by side and meet after eight steps, where the force is infinite. After seven, z = -g t²/2."""
    s = tarsus.ParticleSystem(np.ones(2), np.array([[0.0, 0, 0], [4, 0, 0]]), np.array([[0.0, 0, 0], [-0.5, 0, 0]]))
    s.setup({"molecule": ["A"], "exclude": "none", "types": {"A": {"epsilon": 1, "sigma": 0.1}}, "lennard_jones": {"cutoff": 0.25},
             "gravity": [0, 0, -1]})
    verlet = tarsus.VelocityVerlet(s, 1.0)
    report = verlet.step(at_a_time)
    while report:
        report = verlet.step(at_a_time)
    assert "not finite" in report.message and verlet.steps == 7
    assert verlet.energies["gravity"] == verlet.energies["potential"] == 2 * -0.5 * 7**2


def test_a_failed_step_leaves_the_tensions_of_the_state():
    """A bead on a rod moves ten rods' lengths in a step. The tension at its start is m g + m v²/L, to (v h)² of the short
    step that measures it."""
    s = tarsus.ParticleSystem(np.array([0.0, 1]), np.array([[0.0, 0, 0], [0, 0, -1]]), np.array([[0.0, 0, 0], [100, 0, 0]]))
    s.add_distance(0, 1, 1.0)
    s.setup({"gravity": [0, 0, -10]})
    verlet = tarsus.VelocityVerlet(s, 0.1)
    assert not verlet.step() and np.array_equal(s.position[1], [0, 0, -1])
    assert np.isclose(verlet.tensions[0], 10 + 100**2, rtol=1e-3)
    assert np.allclose(verlet.constraint_forces[1], [0, 0, 10 + 100**2], rtol=1e-3)


def test_a_spring_without_length_has_no_force_at_its_rest():
    s = tarsus.ParticleSystem(np.ones(3), np.array([[1.0, 2, 3], [1, 2, 3], [1, 2, 5]]))
    s.setup({"bonds": [[0, 1, 7.0, 0.0], [1, 2, 7.0, 0.0]]})
    force, energies, _ = s.forces()
    assert np.array_equal(force, [[0, 0, 0], [0, 0, 14], [0, 0, -14]]) and energies["bonds"] == 0.5 * 7 * 2**2


@pytest.mark.parametrize("wrong", [[True, False, True], np.array([True, False, True]), [0.5], ["0"], "0", 1, None])
def test_pins_are_indices(wrong):
    s = tarsus.ParticleSystem(np.ones(3), np.eye(3))
    s.pinned = [2]
    with pytest.raises(TypeError, match="^pinned: .*, expected indices of particles, 0 to 2"):
        s.pinned = wrong
    assert s.pinned == [2]
    for right in ((0, 2), np.array([0, 2]), {2, 0}, range(0, 3, 2)):
        s.pinned = right
        assert s.pinned == [0, 2]


def test_a_users_row_has_particles():
    s = tarsus.ParticleSystem(np.ones(1), np.zeros((1, 3)))
    with pytest.raises(tarsus.ValueError, match="user constraint's particles: is none, expected at least one"):
        s.add_user([], lambda x: (0.0, x), 1.0)
    assert s.constraints == 0


def test_a_thermostat_says_what_it_cannot_keep():
    verlet = tarsus.VelocityVerlet(tarsus.ParticleSystem.load("water1"))
    for temperature in (0.0, -1.0, np.nan):
        with pytest.raises(tarsus.ValueError, match="^temperature: is "):
            verlet.set_thermostat(temperature, 100.0)
    alone = tarsus.ParticleSystem(np.ones(1), np.zeros((1, 3)))
    with pytest.raises(tarsus.ValueError, match="thermostat's degrees of freedom: is 0"):
        tarsus.VelocityVerlet(alone).set_thermostat(300.0, 1.0)


def test_pinned_particles_stay_whatever_velocity_they_are_given():
    s = tarsus.ParticleSystem(np.ones(2), np.array([[0.0, 0, 0], [1, 0, 0]]))
    s.add_distance(0, 1, 1.0)
    s.pinned = [0]
    s.prepare()
    verlet = tarsus.VelocityVerlet(s, 0.001)
    s.velocity = np.array([[0.0, 1, 0], [0, 1, 0]])
    assert verlet.step(100)
    assert np.array_equal(s.position[0], np.zeros(3)) and abs(s.kinetic_energy() - 0.5) < 1e-9


def test_particles_on_top_of_each_other_are_named():
    s = tarsus.ParticleSystem(np.ones(3), np.array([[5.0, 0, 0], [0, 0, 0], [0, 0, 0]]))
    s.setup({"molecule": ["A"], "exclude": "none", "types": {"A": {"epsilon": 1, "sigma": 1}}, "lennard_jones": {"cutoff": 2.5}})
    report = tarsus.VelocityVerlet(s, 0.001).step()
    assert not report and "not finite at particle 1: particles overlap" in report.message


def test_forces_that_are_not_finite_are_refused():
    s = tarsus.ParticleSystem(np.ones(3), np.array([[5.0, 0, 0], [0, 0, 0], [0, 0, 0]]))
    s.setup({"molecule": ["A"], "exclude": "none", "types": {"A": {"epsilon": 1, "sigma": 1}}, "lennard_jones": {"cutoff": 2.5}})
    with pytest.raises(ValueError, match="forces: is not finite at particle 1, expected particles that neither coincide"):
        s.forces()
    s.position[2, 0] = 1.0  # at r = sigma u is minus the shift, and -u' = 24 epsilon
    force, energies, _ = s.forces()
    assert np.allclose(force, [[0, 0, 0], [-24, 0, 0], [24, 0, 0]]) and np.isclose(energies["potential"], -4 * (2.5**-12 - 2.5**-6))


@pytest.mark.parametrize("speed", [1e140, 1e200])
def test_a_step_with_an_energy_that_overflows_fails(speed):
    """½ m v² is finite at 1e140, and beyond the largest double at 1e200."""
    s = tarsus.ParticleSystem(np.ones(2), np.array([[0.0, 0, 0], [4, 0, 0]]), np.array([[speed, 0, 0], [-speed, 0, 0]]))
    s.setup({"gravity": [0, 0, -1]})
    report = tarsus.VelocityVerlet(s, 0.001).step()
    assert report.ok == np.isfinite(s.kinetic_energy()) == (speed == 1e140)
    assert report or "not finite at particle 0" in report.message


def test_forth_and_back():
    system = tarsus.ParticleSystem.load("c60")
    start = system.position.copy()
    verlet = tarsus.VelocityVerlet(system, 0.001, tolerance=1e-15)
    assert verlet.step(200) and np.abs(system.position - start).max() > 1e-3
    verlet.reverse()
    assert verlet.step(200) and np.abs(system.position - start).max() < 1e-12


def test_results_of_a_hanging_chain():
    x = np.array([[0.0, 0, -k] for k in range(4)])
    system = tarsus.ParticleSystem(np.array([0.0, 1, 1, 1]), x)  # mass 0: pinned
    for k in range(3):
        system.add_distance(k, k + 1, 1.0)
    system.setup({"gravity": [0, 0, -10]})
    verlet = tarsus.VelocityVerlet(system, 0.001)
    assert verlet.step(3)
    assert np.allclose(verlet.tensions, [30, 20, 10], atol=1e-6)
    assert np.allclose(verlet.constraint_forces[1:, 2], 10, atol=1e-6)
    assert np.isclose(verlet.constraint_virial[2, 2], -60, atol=1e-5)
    assert system.degrees_of_freedom() == 6 and system.pinned == [0]
    for fixed in (system.mass, system.box):  # copies: what is written to them would be lost
        with pytest.raises(ValueError, match="read-only"):
            fixed[0] = 2


def test_the_virial_of_a_fixed_place_is_the_sum_that_it_is_called():
    system = tarsus.ParticleSystem(np.ones(1), np.array([[1.0, 2, 3]]), np.array([[1.0, 0, 0]]))
    system.add_sphere(0, [1, 2, 0], 3.0)
    verlet = tarsus.VelocityVerlet(system, 0.001)
    assert verlet.step()
    assert np.allclose(verlet.constraint_forces, [[0, 0, -1 / 3]], atol=1e-6)
    assert np.allclose(verlet.constraint_virial, [[0, 0, -1 / 3], [0, 0, -2 / 3], [0, 0, -1]], atol=1e-6)


@pytest.mark.parametrize("bond", ({"bonds": [[0, 1, 100, 0.1]]}, {"distances": [[0, 1, 0.1]]}, None))
def test_molecules_that_the_box_cuts_are_made_whole(bond):
    system = tarsus.ParticleSystem(np.ones(4), np.array([[0.0, 5, 5], [9.9, 5, 5], [5, 9.95, 0], [5, 0.05, 0]]), box=[10, 10, 0])
    with pytest.warns(UserWarning, match="are made whole: 2 particles moved"):
        if bond:
            system.setup({"molecule": ["A", "A"], **bond})
        else:
            system.add_distance(0, 1, 0.1), system.add_distance(2, 3, 0.1)
            system.prepare()
    assert np.allclose(system.position, [[0, 5, 5], [-0.1, 5, 5], [5, 9.95, 0], [5, 10.05, 0]])
    assert abs(system.forces()[1]["potential"]) < 1e-9 and system.violation() < 1e-12


def test_views_are_of_the_state_after_a_setup_too():
    system = tarsus.ParticleSystem(np.ones(2), np.array([[0.0, 0, 0], [1, 0, 0]]))
    position = system.position
    system.setup({"gravity": [0, 0, -1], "pinned": [0], "distances": [[0, 1, 1.0]]})
    position[1] = [0, 1, 0]
    assert np.array_equal(system.position, [[0, 0, 0], [0, 1, 0]]) and system.pinned == [0]


def test_redundant_rows_are_named():
    system = tarsus.ParticleSystem.load("c60-rigid")
    done = system.prepare()
    assert len(done.redundant) == 96 and done.rank == 174 and "particles" in done.redundant[0]


def test_thermostat_and_temperature():
    system = tarsus.ParticleSystem.load("chain:40")
    system.set_temperature(100.0)
    assert np.isclose(system.temperature(), 100)
    verlet = tarsus.VelocityVerlet(system, 0.004)
    verlet.set_thermostat(300.0, 0.02)
    mean = np.mean([(verlet.step(50), system.temperature())[1] for _ in range(400)])
    assert 285 < mean < 315
    assert verlet.exchanged != 0


def test_save_and_load(tmp_path):
    system = tarsus.ParticleSystem.load("ring:8")
    system.save(tmp_path / "ring.sys")  # paths are objects too, as for models and clips
    back = tarsus.ParticleSystem.load(tmp_path / "ring.sys")
    assert (back.position == system.position).all() and (back.velocity == system.velocity).all()
    assert back.constraints == 8 and back.units == "nm_ps"
    system.save(str(tmp_path / "ring.xyz"))
    assert tarsus.ParticleSystem.load(str(tmp_path / "ring.xyz")).units == "nm_ps"  # the file states it
    (tmp_path / "plain.xyz").write_text("1\n\nAr 0 0 0\n")
    assert tarsus.ParticleSystem.load(str(tmp_path / "plain.xyz")).units == "angstrom_fs"
    with pytest.raises(tarsus.ValueError, match="xyz"):
        system.save(str(tmp_path / "ring.pdb"))
    with pytest.raises(tarsus.Error, match="cannot be written"):
        system.save(str(tmp_path / "no" / "ring.sys"))
    system.add_angle(0, 1, 2, 2.0)
    kept = (tmp_path / "ring.sys").read_bytes()
    with pytest.raises(tarsus.Error):
        system.save(str(tmp_path / "ring.sys"))
    assert (tmp_path / "ring.sys").read_bytes() == kept
    for name in ("rope.sys", "rope.xyz"):
        with pytest.warns(UserWarning, match=f"{name}: the format does not store pins: 1 pinned particles are free in it"):
            tarsus.ParticleSystem.load("rope:4").save(str(tmp_path / name))


def test_particles_of_mass_0_are_pinned_and_not_written(tmp_path):
    system = tarsus.ParticleSystem(np.array([1.0, 0, 1]), np.eye(3))
    assert system.pinned == [1]
    system.pinned = [2]
    assert system.pinned == [1, 2]
    for name in ("pins.sys", "pins.xyz"):
        with pytest.raises(ValueError, match="mass of particle 1: is 0"):
            system.save(str(tmp_path / name))
        assert not (tmp_path / name).exists()


def test_a_setup_without_forces_leaves_those_that_are_there(tmp_path):
    (tmp_path / "pins.json").write_text('{"pinned": [0]}')
    (tmp_path / "fall.json").write_text('{"gravity": [0, 0, -1]}')
    pins, fall = tmp_path / "pins.json", str(tmp_path / "fall.json")
    whole = tarsus.ParticleSystem.load("water216").forces()[1]["potential"]
    assert tarsus.ParticleSystem.load("water216", setup=pins).forces()[1]["potential"] == whole
    assert tarsus.ParticleSystem.load("water216", forces="spce-reaction-field", setup=pins).forces()[1]["potential"] != whole
    assert tarsus.ParticleSystem.load("water216", setup=fall).forces()[1]["coulomb"] == 0
    with pytest.raises(tarsus.ValueError, match="forces: is spce-smooth, expected none, because the setup file defines"):
        tarsus.ParticleSystem.load("water216", forces="spce-smooth", setup=fall)
    with pytest.raises(tarsus.ValueError, match="units: is nm_ps, expected --forces or --setup as well"):
        tarsus.ParticleSystem.load("water216", units="nm_ps", setup=pins)


def test_bad_arguments_are_named():
    with pytest.raises(tarsus.ShapeError, match="position"):
        tarsus.ParticleSystem(np.ones(2), np.zeros((3, 3)))
    with pytest.raises(TypeError, match="position"):
        tarsus.ParticleSystem(np.ones(2), np.zeros((2, 3), np.float32))
    with pytest.raises(tarsus.ValueError, match="mass of particle 1"):
        tarsus.ParticleSystem(np.array([1.0, np.nan]), np.zeros((2, 3)))
    with pytest.raises(tarsus.ValueError, match="nm_ps"):
        tarsus.ParticleSystem(np.ones(1), np.zeros((1, 3)), units="furlong")
    with pytest.raises(tarsus.ValueError, match="water216"):
        tarsus.ParticleSystem.load("nosuch")
    system = pendulum()
    with pytest.raises(tarsus.ValueError):
        system.add_distance(0, 2, 1.0)
    with pytest.raises(tarsus.ValueError):
        system.add_distance(0, 1, -1.0)
    with pytest.raises(tarsus.ValueError):
        system.pinned = [5]
    with pytest.raises(tarsus.ValueError, match="row"):
        system.describe(0)
    with pytest.raises(tarsus.InputError, match="gravty"):
        system.setup({"gravty": [0, 0, 0]})
    for take in (lambda: tarsus.VelocityVerlet(system, 0.0), lambda: system.prepare(timestep=0.0)):
        with pytest.raises(tarsus.ValueError, match="timestep: is 0, expected a"):
            take()
    chain = tarsus.ParticleSystem.load("chain:4")
    assert tarsus.VelocityVerlet(chain).timestep == tarsus.VelocityVerlet(chain, None).timestep == 0.002
    for bad in (dict(timestep=np.nan), dict(solver="magic"), dict(tolerance=0.0), dict(max_iterations=-1)):
        with pytest.raises(tarsus.ValueError):
            tarsus.VelocityVerlet(system, **{"timestep": 0.01, **bad})
    verlet = tarsus.VelocityVerlet(system, 0.01)
    with pytest.raises(tarsus.ValueError, match="steps"):
        verlet.step(0)
    with pytest.raises(tarsus.ValueError):
        verlet.set_thermostat(300.0, -1.0)


def test_an_integrator_does_not_go_on_with_a_system_that_changed():
    system = pendulum()
    system.add_distance(0, 1, 1.0)
    verlet = tarsus.VelocityVerlet(system, 0.01)
    assert verlet.step()
    system.position[1] = [0, 1, 0]
    with pytest.raises(tarsus.ValueError, match="new VelocityVerlet"):
        verlet.step()
    verlet = tarsus.VelocityVerlet(system, 0.01)
    system.velocity[:] = 0  # velocities are read anew in every step
    assert verlet.step()
    system.add_plane(1, [0, 0, 0], [0, 0, 1])
    for look in (verlet.step, lambda: verlet.tensions, lambda: verlet.constraint_forces, lambda: verlet.stability):
        with pytest.raises(tarsus.ValueError, match="new VelocityVerlet"):
            look()


def test_a_system_at_work_is_not_for_another_integrator():
    s = tarsus.ParticleSystem.load("water216")
    verlet, refused = tarsus.VelocityVerlet(s), []
    worker = threading.Thread(target=lambda: verlet.step(400))
    worker.start()
    while worker.is_alive() and not refused:
        for use in (lambda: tarsus.VelocityVerlet(s), lambda: verlet.tensions):
            try:
                use()
            except tarsus.ValueError as error:
                refused.append(str(error))
    worker.join()
    assert refused and all("in use by another thread" in text for text in refused), refused


def test_views_keep_the_system_alive():
    position = tarsus.ParticleSystem.load("chain:8").position
    assert position.shape == (8, 3) and np.isfinite(position).all()


def test_lists_name_what_load_takes():
    names = [name for name, _ in tarsus.builtin_particle_systems()]
    assert "water216" in " ".join(names) and any("spce" in name for name, _ in tarsus.particle_force_fields())


def test_any_number_of_threads_gives_the_same_bits():
    states = []
    for threads in (1, 2):
        system = tarsus.ParticleSystem.load("chain:3000")
        system.prepare()
        verlet = tarsus.VelocityVerlet(system, threads=threads)
        assert verlet.step(20)
        states.append((system.position.copy(), system.velocity.copy()))
    assert (states[0][0] == states[1][0]).all() and (states[0][1] == states[1][1]).all()
    with pytest.raises(tarsus.ValueError, match="threads"):
        tarsus.VelocityVerlet(tarsus.ParticleSystem.load("water1"), threads=0)


@pytest.mark.parametrize("off", [1e-6, 0.1])
def test_a_start_off_its_constraints_is_refused_until_it_is_prepared(off):
    system = tarsus.ParticleSystem(np.ones(2), np.array([[0, 0, 0], [1 + off, 0, 0]]))
    system.add_distance(0, 1, 1.0)
    before = system.position.copy()
    with pytest.raises(tarsus.ValueError, match=r"start: is off the constraints by .*prepare\(\)"):
        tarsus.VelocityVerlet(system, 0.01)
    assert np.array_equal(system.position, before)
    assert system.prepare().moved_max == pytest.approx(off / 2)
    assert tarsus.VelocityVerlet(system, 0.01).step()


def test_a_run_goes_on_from_its_file(tmp_path):
    """The run continues to the bit without pair forces. With them it continues to rounding, because a new neighbour list sums
    them in another order."""
    for name, forces, most in (("chain:64", "", 0.0), ("water216", "spce-smooth", 1e-11)):
        there = tarsus.ParticleSystem.load(name)
        verlet = tarsus.VelocityVerlet(there)
        assert verlet.step(40)
        there.save(tmp_path / "half.sys")
        back = tarsus.ParticleSystem.load(tmp_path / "half.sys", forces=forces)
        back.prepare()
        assert np.array_equal(back.position, there.position) and np.array_equal(back.velocity, there.velocity)
        assert verlet.step(20) and tarsus.VelocityVerlet(back).step(20)
        assert np.abs(back.position - there.position).max() <= most and np.abs(back.velocity - there.velocity).max() <= most


def test_molecules_that_nothing_holds_are_warned_of(tmp_path):
    water = tarsus.ParticleSystem.load("water216")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        water.prepare()
        tarsus.ParticleSystem.load("butane125").prepare()
    water.save(tmp_path / "water.xyz")  # which has no bonds
    loose = tarsus.ParticleSystem.load(tmp_path / "water.xyz", forces="spce-smooth")
    with pytest.warns(UserWarning, match="particles 0 and 1 are excluded from pair forces"):
        loose.prepare()


@pytest.mark.parametrize("dt", (1e-2, 1e-8))
def test_redundant_constraints_are_named_and_no_smaller_step_is_advised(dt):
    system = tarsus.ParticleSystem(np.ones(2), np.eye(3)[:2])
    system.add_distance(0, 1, 2**0.5)
    system.add_distance(1, 0, 2**0.5)
    system.velocity[:] = [[0, 0, 1], [0, 0, -1]]
    report = tarsus.VelocityVerlet(system, dt).step(10)
    assert not report and "smaller timestep" not in report.message
    assert "depend on the others: distance 1 (particles 1, 0)" in report.message and "prepare()" in report.message
    assert system.prepare().redundant == ["distance 1 (particles 1, 0)"]
    assert tarsus.VelocityVerlet(system, dt).step(10)
