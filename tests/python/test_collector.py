"""Python's garbage collector meets the extension's objects in every state: before, in and after their constructors."""

import gc
import warnings
import weakref

import numpy as np
import pytest

import tarsus

BALL = """<mujoco><worldbody><geom type='plane' size='0 0 1'/><body name='ball' pos='0 0 1'><freejoint/>
  <geom type='sphere' size='.1' mass='2'/></body></worldbody></mujoco>"""
CLASSES = [c for c in vars(tarsus).values() if isinstance(c, type) and c.__module__.startswith("tarsus") and not issubclass(c, BaseException)]


def pendulum():
    return tarsus.Model.from_xml_string("""<mujoco><worldbody><body name='rod'><joint name='hinge' axis='0 1 0'/>
      <geom type='capsule' fromto='0 0 0 0 0 -1' size='.05' mass='1'/></body></worldbody></mujoco>""")


@pytest.fixture
def eager():
    """A collection at nearly every allocation, of the objects that the test makes; earlier objects are frozen."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(1, 1, 1)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def gone(make):
    """Whether the result of make() is collected after all references to it are gone."""
    class Witness:
        pass

    witness = Witness()
    dead = weakref.ref(witness)
    made = make(witness)
    del witness
    assert dead() is not None  # the cycle keeps it
    del made
    gc.collect()
    return dead() is None


def test_the_classes_are_found():
    assert {tarsus.Stepper, tarsus.Equalities, tarsus.ParticleSystem, tarsus.VelocityVerlet, tarsus.Data} <= set(CLASSES)


@pytest.mark.parametrize("base", CLASSES, ids=lambda c: c.__name__)
def test_objects_that_were_never_initialised(base):
    """In a cycle, so that the collector both traverses and clears them."""
    try:
        own = type("Own", (base,), {})
    except TypeError:
        return  # a class that cannot be derived from cannot be in a cycle before it is initialised

    def make(witness):
        try:
            made = own.__new__(own)
        except TypeError:
            made = base.__new__(base)
            return made
        made.me, made.witness = made, witness
        return made

    try:
        assert gone(make)
    except TypeError:
        pytest.skip("has no __new__")


FAILING = {
    tarsus.Stepper: (1, "x"), tarsus.Equalities: ("no model",), tarsus.ParticleSystem: (np.ones(2), np.zeros((3, 3))),
    tarsus.VelocityVerlet: ("no system",), tarsus.Data: ("no model",), tarsus.RigidWorld: (3,),
}


@pytest.mark.parametrize("base", FAILING, ids=lambda c: c.__name__)
def test_constructors_that_throw(base, eager):
    class Own(base):
        def __init__(self, witness):
            self.me, self.witness = self, witness
            super().__init__(*FAILING[base])

    def make(witness):
        made = Own.__new__(Own)
        with pytest.raises(Exception):
            made.__init__(witness)
        return made

    for _ in range(20):
        assert gone(make)


def test_a_stepper_whose_options_are_wrong(eager):
    model = pendulum()
    for _ in range(50):
        for wrong in ({"dt": -1.0}, {"integrator": "nosuch"}, {"loops": "nosuch"},
                      {"equalities": tarsus.Equalities(pendulum())}):
            with pytest.raises((tarsus.Error, ValueError)):
                tarsus.Stepper(tarsus.Data(model), **wrong)
    gc.collect()


def row(stepper_of):
    """A constraint that runs the collector in each call and leads back to its stepper."""
    def hold(qpos, qvel):
        gc.collect()
        return np.array([qpos[0]]), np.ones((1, 1)), np.zeros(1)

    hold.leads_to = stepper_of
    return hold


def test_collections_inside_callbacks_and_cycles_through_them(eager):
    model = pendulum()

    def make(witness):
        data, back = tarsus.Data(model), {"witness": witness}
        equalities = tarsus.Equalities(model)
        equalities.add_user("hold", row(back))
        stepper = tarsus.Stepper(data, equalities=equalities)
        back["stepper"], back["equalities"] = stepper, equalities
        assert stepper.step() == 0
        return stepper

    for _ in range(5):
        assert gone(make)


def test_a_cycle_through_a_steppers_data():
    model = pendulum()

    class Own(tarsus.Data):
        pass

    def make(witness):
        data = Own(model)
        data.stepper, data.witness = tarsus.Stepper(data), witness
        return data

    assert gone(make)


def test_collections_inside_constructors(eager):
    class Eager:
        """Converts itself to the requested type, and runs a collection while it does so."""

        def __init__(self, value):
            self.value = value

        def __len__(self):
            gc.collect()
            return len(self.value)

        @property
        def dtype(self):
            gc.collect()
            return np.dtype("float32")

    model = pendulum()
    for _ in range(10):
        assert tarsus.Data(model, dtype=Eager(None)).dtype == np.float32
        with pytest.raises(TypeError):
            tarsus.ParticleSystem(Eager([1.0]), np.zeros((1, 3)))


def test_particles_and_their_integrators(eager):
    def make(witness):
        system, back = tarsus.ParticleSystem(np.ones(2), np.array([[0.0, 0, 0], [1, 0, 0]])), {"witness": witness}

        def bond(x):
            gc.collect()
            d = x[1] - x[0]
            return float(d @ d - 1), np.stack([-2 * d, 2 * d])

        bond.leads_to = back
        system.add_user([0, 1], bond, 1.0)
        verlet = tarsus.VelocityVerlet(system, 0.01)
        back["verlet"] = verlet
        assert verlet.step()
        return verlet

    for _ in range(5):
        assert gone(make)


def test_a_function_that_looks_at_its_owner_when_it_dies():
    model = pendulum()
    seen = []

    def make(witness):
        equalities = tarsus.Equalities(model)

        class Function:
            def __call__(self, qpos, qvel):
                return np.array([qpos[0]]), np.ones((1, 1)), np.zeros(1)

            def __del__(self):
                seen.append(len(equalities))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        equalities.rows(tarsus.Data(model), model.qpos0)
                    except Exception as error:  # whatever it raises is an answer
                        seen.append(repr(error))

        function = Function()
        function.witness, function.owner = witness, equalities
        equalities.add_user("hold", function)
        return equalities

    assert gone(make) and seen
