"""The installed package: version, stubs, exceptions."""

import pathlib
import re
import subprocess
import sys

import tarsus

ROOT = pathlib.Path(__file__).parents[2]


def test_version_is_that_of_cmake():
    stated = re.search(r"project\(tarsus VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert tarsus.__version__ == stated


def test_type_stubs_are_installed_and_name_what_the_module_has():
    package = pathlib.Path(tarsus.__file__).parent
    assert (package / "py.typed").is_file()
    stub = (package / "_core.pyi").read_text()
    for name in vars(tarsus._core):
        if not name.startswith("_"):
            assert re.search(rf"\b{name}\b", stub), f"_core.pyi does not mention {name}"


def test_errors_have_one_root():
    for error in (tarsus.InputError, tarsus.ShapeError, tarsus.ValueError):
        assert issubclass(error, tarsus.Error)
    assert issubclass(tarsus.Error, Exception)


def test_instruction_set_can_be_lowered_by_the_environment():
    code = "import tarsus; print(tarsus.isa_level())"
    run = subprocess.run([sys.executable, "-c", code], env={"TARSUS_ISA_LEVEL": "baseline"}, capture_output=True, text=True)
    assert run.stdout.strip() == "baseline", run.stderr
    assert tarsus.isa_level() in ("baseline", "avx2", "avx512")


def test_nanobinds_state_is_shared_with_no_other_extension():
    """The state includes the switch for warnings of leaks, which our extension turns off."""
    code = """if True:
        import ctypes, tarsus
        state, states = ctypes.pythonapi.PyInterpreterState_Get, ctypes.pythonapi.PyInterpreterState_GetDict
        state.restype, states.restype, states.argtypes = ctypes.c_void_p, ctypes.py_object, [ctypes.c_void_p]
        print(*(key for key in states(state()) if "nb_internals" in str(key)))"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert re.fullmatch(r"\S+_tarsus_+", run.stdout.strip()), run.stdout + run.stderr


def test_a_wrong_level_is_an_error_that_names_it():
    code = "import tarsus; tarsus.isa_level()"
    run = subprocess.run([sys.executable, "-c", code], env={"TARSUS_ISA_LEVEL": "mmx"}, capture_output=True, text=True)
    assert run.returncode != 0 and "ValueError" in run.stderr and "mmx" in run.stderr


def test_what_the_environments_need_is_named():
    code = "import sys; sys.modules['gymnasium'] = None; import tarsus.gym"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1 and "tarsus.gym needs gymnasium: pip install 'tarsus[gym]'" in run.stderr
