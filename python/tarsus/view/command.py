"""The command line: `tarsus view …`, `tarsus demo …`, `python -m tarsus.view …`."""

import argparse
import math
import re
import signal
import sys
import tempfile
import threading
import warnings
from pathlib import Path

VIEW = """Show a model, a recording, a clip or a scene in the browser, or write pages, pictures and films of it.

  tarsus view models/humanoid.xml                                         falls; drag a body to push it
  tarsus view models/humanoid.xml --clip models/clips/humanoid_walk.json  follows the clip, 30 steps a second
  tarsus view out/demo_walk.npz                                           plays a recording of `tarsus run`
  tarsus view balls:20:20                                                 a scene of `tarsus scene --list`
  tarsus view water216                                                    a system of `tarsus md`
  tarsus view out/demo_walk.npz --export walk.html                        one file that plays anywhere, no network
  tarsus view out/demo_walk.npz --screenshot walk.png --at 2.5            without a display; needs Chromium
  tarsus view out/demo_walk.npz --video walk.mp4                          needs Chromium and ffmpeg
  tarsus view out/demo_walk.npz --export walk.glb                         glTF; also .mcap, .xyz, .dcd

More: docs/viewer.md."""
DEMO = """The gallery: lists the scenes, or opens one in the browser.

  tarsus demo              the list
  tarsus demo walk         opens that scene; the others are in the page's panel"""


class Once(argparse.Action):
    """Stores a value. A second one would replace the first."""

    def __call__(self, usage, arguments, value, option=None):
        if getattr(arguments, self.dest) is not None:
            raise argparse.ArgumentError(self, "is given twice, expected once")
        setattr(arguments, self.dest, value)


class Parser(argparse.ArgumentParser):
    """Says so if its help cannot be written."""

    def print_help(self, file=None):
        print(self.format_help(), end="", file=file, flush=True)


def parser():
    main = Parser(prog="tarsus", description="The viewer.")
    commands = main.add_subparsers(dest="command", required=True)
    as_written = argparse.RawDescriptionHelpFormatter
    view = commands.add_parser("view", description=VIEW, formatter_class=as_written)
    view.register("action", None, Once)
    view.add_argument("what", help="model (MJCF, URDF), recording (.npz), clip, particle file, or a scene's name")
    view.add_argument("--clip", help="motion that the model follows by stable PD drives")
    view.add_argument("--mapping", help="mapping from the clip's channels to the joints")
    view.add_argument("--model", help="model of a recording or a clip")
    view.add_argument("--keyframe", help="keyframe of the model to start from: name or number")
    view.add_argument("--dt", type=float, help="time step [s] (default: with a clip 1/30; otherwise the file's timestep, but at least "
                      "1/480 and at most 1/60, unlike `tarsus run`)")
    view.add_argument("--gains", type=gains, help="gains of the drives that hold the start pose or follow the clip: KP,KD or KP,KD,ROOT_KP,ROOT_KD or a JSON file")
    view.add_argument("--force-limit", type=force_limit, help='largest drive force [N m], or "model" for the limits of the file')
    view.add_argument("--plain", action="store_true", default=None, help="drives with the paper's law, which is unstable at large steps")
    view.add_argument("--contacts", choices=("on", "off"), help="contacts and joint limits (default: on without a clip)")
    view.add_argument("--worlds", type=int, help="number of worlds, shown side by side")
    view.add_argument("--lenient", action="store_true", default=None, help="warn of a missing mesh instead of failing, if no inertia depends on it")
    view.add_argument("--floating-base", action="store_true", default=None, help="URDF: let the root link float")
    view.add_argument("--package-path", dest="package_paths", action="extend", nargs="+", metavar="DIR",
                      help="URDF: folders in which package://NAME/ is looked up")
    view.add_argument("--fix", choices=("balance",), help="balance: repair inertias that no real body can have")
    view.add_argument("--export", metavar="FILE", action="append",
                      help="write a page (.html), glTF (.glb), .mcap, .xyz or .dcd instead; may be given several times")
    view.add_argument("--screenshot", metavar="FILE", help="write a picture (.png, .jpg) instead")
    view.add_argument("--video", metavar="FILE", help="write a film (.mp4) instead")
    _common(view)
    demo = commands.add_parser("demo", description=DEMO, formatter_class=as_written)
    demo.register("action", None, Once)
    demo.add_argument("scene", nargs="?", help="name of a scene")
    demo.add_argument("--export", metavar="FILE", action="append", help="as for view")
    demo.add_argument("--screenshot", metavar="FILE", help="as for view")
    demo.add_argument("--video", metavar="FILE", help="as for view")
    _common(demo)
    return main


def seconds(text):
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"is {text}, expected at least 0 seconds")
    return value


def positive_seconds(text):
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"is {text}, expected more than 0 seconds")
    return value


def gains(text):
    if Path(text).is_file():
        return text
    try:
        values = tuple(float(x) for x in text.split(","))
    except ValueError:
        values = ()
    if len(values) not in (2, 4):
        raise argparse.ArgumentTypeError(f"is {text}, expected KP,KD or KP,KD,ROOT_KP,ROOT_KD or the name of a file")
    return values


def force_limit(text):
    try:
        return text if text == "model" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'is {text}, expected a number of N m or "model"') from None


MOST_PIXELS = 8192  # SwiftShader's largest surface


def pixels(text):
    size = re.fullmatch(r"(\d{1,9})[xX](\d{1,9})", text, re.ASCII)
    width, height = map(int, size.groups()) if size else (0, 0)
    if not (1 <= width <= MOST_PIXELS and 1 <= height <= MOST_PIXELS):
        raise argparse.ArgumentTypeError(f"is {text}, expected two numbers of pixels, each 1 to {MOST_PIXELS}")
    return width, height


def port(text):
    value = int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else -1
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"is {text}, expected 1 to 65535, or 0 for a free port")
    return value


def _common(command):
    command.add_argument("--duration", type=positive_seconds, help="duration of the file [s] (default: 10, or the whole recording)")
    command.add_argument("--at", type=seconds, metavar="T", help="time of the picture [s] (default: the start)")
    command.add_argument("--size", type=pixels, metavar="WxH", help="size of pictures and films (default: 1280x720)")
    command.add_argument("--theme", choices=("light", "dark"), help="theme of pictures and films (default: light)")
    command.add_argument("--host", help="address to listen on (default: 127.0.0.1, for this machine only; with another address, "
                         "other machines can push bodies and stop the simulation)")
    command.add_argument("--port", type=port, help="port to listen on (default: a free port)")
    command.add_argument("--paused", action="store_true", default=None, help="start paused")


#: Files that are written instead of serving a page; options of only some of them, with their defaults; and the options of the
#: server.
FILES = ("export", "screenshot", "video")
OF_FILES = {"duration": (None, FILES), "at": (None, ["screenshot"]), "size": ((1280, 720), FILES[1:]), "theme": ("light", FILES[1:])}
OF_SERVER = {"host": "127.0.0.1", "port": 0, "paused": False}


def fill_in(usage, arguments):
    """Fills in the defaults. An option that was given but has no effect is an error."""
    a = vars(arguments)
    written = [name for name in FILES if a[name] is not None]
    if arguments.command == "demo" and arguments.scene is None:
        for name in [*FILES, *OF_FILES, *OF_SERVER]:
            if a[name] is not None:
                usage.error(f"--{name}: is given, expected together with the name of a scene")
    for name, (default, files) in OF_FILES.items():
        if a[name] is not None and not set(files) & set(written):
            usage.error(f"--{name}: is given, expected together with --{' or --'.join(files)}")
        a[name] = default if a[name] is None else a[name]
    if a["video"] and min(a["size"]) < 2:
        usage.error(f"--size: is {'x'.join(map(str, a['size']))}, expected at least 2x2 pixels for a film")
    for name, default in OF_SERVER.items():
        if a[name] is not None and written:
            usage.error(f"--{name}: is given, expected without --{written[0]}: no server runs then")
        a[name] = default if a[name] is None else a[name]


def progress(label):
    last = [-1]

    def show(fraction):
        percent = int(100 * min(fraction, 1))
        if percent // 10 != last[0] // 10:
            print(f"{label} {percent:3d} %", file=sys.stderr)
        last[0] = percent

    return show


def source_options(arguments):
    names = ("clip", "mapping", "model", "dt", "worlds", "plain", "force_limit", "lenient", "floating_base", "package_paths")
    out = {key: value for key in names if (value := getattr(arguments, key)) is not None}
    if arguments.fix:
        out["fix_balance"] = True
    if arguments.contacts:
        out["contacts"] = arguments.contacts == "on"
    if arguments.keyframe is not None:
        out["keyframe"] = int(arguments.keyframe) if re.fullmatch(r"\d+", arguments.keyframe, re.ASCII) else arguments.keyframe
    if arguments.gains:
        out["gains"] = arguments.gains
    return out


def check_output(path):
    """Opens the file before the work for it starts; keeps its content. Raises OSError if it cannot be written."""
    from ..files import partial

    there = Path(path).exists()
    file, part = partial(path)
    with open(path, "ab"):
        pass
    if not there:
        file.unlink()
    if part != file:
        with open(part, "ab"):
            pass
        part.unlink()


def first_error(tools):
    """The error of the first tool that is not installed, or None."""
    try:
        for find in tools:
            find()
    except (FileNotFoundError, ImportError) as error:
        return error


def write_files(source, arguments, duration):
    """Runs --export, --screenshot and --video on one recording. The paths go to standard output. Files whose tools are not
    installed are left out, and an error at the end names them."""
    from .capture import find_browser, find_encoder, find_protocol, screenshot, video
    from .formats import OF_PARTICLES, WRITERS, mcap_writer
    from .page import record, write_page
    from .sources import ParticleSource

    width, height = arguments.size
    exports = {file: Path(file).suffix.lower() for file in arguments.export or ()}
    for file, suffix in exports.items():
        if suffix not in (".html", *WRITERS):
            raise ValueError(f"--export: is {file!r}, expected a file that ends in .html, {', '.join(WRITERS)}")
        if suffix in OF_PARTICLES and not isinstance(source, ParticleSource):
            others = ", ".join([".html", *(ending for ending in WRITERS if ending not in OF_PARTICLES)])
            raise ValueError(f"--export: {file!r} is a particle file, expected a particle system as the source, or a file that ends in one of {others}")
    for option, file, endings in (("--screenshot", arguments.screenshot, (".png", ".jpg", ".jpeg")),
                                  ("--video", arguments.video, (".mp4",))):
        if file is not None and Path(file).suffix.lower() not in endings:
            raise ValueError(f"{option}: is {file!r}, expected a file that ends in {' or '.join(endings)}")
    taken = {Path(file).resolve(): "an input" for name in ("what", "clip", "mapping", "model") if (file := getattr(arguments, name, None))}
    for option, file in [*(("--export", file) for file in arguments.export or ()), ("--screenshot", arguments.screenshot), ("--video", arguments.video)]:
        if file:
            if why := taken.get(Path(file).resolve()):
                raise ValueError(f"{option}: is {file!r}, which is {why}, expected another file")
            taken[Path(file).resolve()] = "an output already"
            check_output(file)
    needs = {file: [mcap_writer] * (suffix == ".mcap") for file, suffix in exports.items()}
    needs |= {arguments.screenshot: [find_browser, find_protocol], arguments.video: [find_browser, find_protocol, find_encoder]}
    needs.pop(None, None)
    lacks = {file: error for file, tools in needs.items() if (error := first_error(tools))}
    if len(lacks) == len(needs):
        raise next(iter(lacks.values()))
    shot, film = (None if file in lacks else file for file in (arguments.screenshot, arguments.video))
    exports = {file: suffix for file, suffix in exports.items() if file not in lacks}
    only_picture = shot and not exports and not film
    start = source.time
    at = start if arguments.at is None else arguments.at
    if at < start - 1e-6:
        raise ValueError(f"--at: is {at:g} s, expected at least {start:g} s, the start of the recording")
    recording = record(source, max(at - start, source.dt) if only_picture else duration, progress=progress("recording"))
    if at > recording.times[-1] + (1e-6 if source.at_end else source.dt):
        raise ValueError(f"--at: is {at:g} s, expected at most {recording.times[-1]:g} s, the end of the recording")
    for file, suffix in exports.items():
        (write_page if suffix == ".html" else WRITERS[suffix])(file, recording)
        print(file)
    if shot or film:
        with tempfile.TemporaryDirectory(prefix="tarsus-view-") as folder:
            page = Path(folder) / "page.html"
            write_page(page, recording)
            if shot:
                screenshot(page, shot, time=at, width=width, height=height, theme=arguments.theme)
                print(shot)
            if film:
                video(page, film, width=width, height=height, theme=arguments.theme, progress=progress("film"))
                print(film)
    if lacks:
        raise RuntimeError("; ".join(f"{file} is not written: {error}" for file, error in lacks.items()))


def serve(what, arguments, reload_from=None, **more):
    from .viewer import Viewer

    with Viewer(what, host=arguments.host, port=arguments.port, playing=not arguments.paused, reload_from=reload_from,
                **more) as viewer:
        print(f"{viewer.source.scene['name']}: {viewer.url}   (Ctrl-C ends)", flush=True)
        viewer.run()
        raise KeyboardInterrupt  # for main(): run() returns at Ctrl-C


def tell_hidden(scene):
    """Says how to see what is hidden, if most bodies that have shapes show none."""
    shapes = [shape for shape in scene["shapes"] if shape["body"] > 0]
    bodies, shown = {shape["body"] for shape in shapes}, {shape["body"] for shape in shapes if not shape.get("hidden")}
    if 2 * len(shown) < len(bodies):
        print(f"note: {len(bodies) - len(shown)} of {len(bodies)} bodies have only shapes of groups 3 to 5, which are hidden at first: "
              '"collision shapes" under "Show" in the page shows them', file=sys.stderr)


def run_view(arguments):
    from .sources import open_source

    def opened():
        return open_source(arguments.what, **source_options(arguments))

    source = opened()
    tell_hidden(source.scene)
    if any(getattr(arguments, name) is not None for name in FILES):
        times = getattr(source, "times", None)
        whole = 10.0 if times is None else max(float(times[-1] - times[0]), source.dt)
        return write_files(source, arguments, arguments.duration or whole)
    serve(source, arguments, reload_from=(arguments.what, opened) if Path(arguments.what).is_file() else None)


def run_demo(arguments):
    from .gallery import SCENES, THUMBNAILS, open_scene

    if arguments.scene is None:
        for name, scene in SCENES.items():
            print(f"  {name:<10} {scene.line}")
        print("\ntarsus demo NAME opens one.")
        return
    source = open_scene(arguments.scene)
    if any(getattr(arguments, name) is not None for name in FILES):
        return write_files(source, arguments, arguments.duration or SCENES[arguments.scene].seconds)
    files = {f"/thumbnails/{name}.jpg": (THUMBNAILS / f"{name}.jpg", "image/jpeg") for name in SCENES
             if (THUMBNAILS / f"{name}.jpg").exists()}
    gallery = [{"name": name, "line": scene.line, "picture": f"/thumbnails/{name}.jpg" in files}
               for name, scene in SCENES.items()]
    serve(source, arguments, files=files, gallery=gallery, on_open=open_scene)


def end(number, frame):
    """Ends the program as Ctrl-C does. The same signal again ends it at once."""
    signal.signal(number, signal.SIG_DFL)
    sys.exit(128 + number)


def show_warning(message, *_, **__):
    """Prints a warning as the other commands do, without the line of Python that gave it."""
    print(message if ": warning: " in str(message) else f"warning: {message}", file=sys.stderr)


def main(words=None):
    usage = parser()
    try:
        arguments = usage.parse_args(words)
    except BrokenPipeError:
        return 0
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    fill_in(usage, arguments)
    import tarsus
    from .page import SimulationFailed

    if getattr(sys.stdout, "errors", "") == "strict":  # a file's name may have bytes that are not text
        sys.stdout.reconfigure(errors="backslashreplace")
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, end)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            {"view": run_view, "demo": run_demo}[arguments.command](arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0
    except (tarsus.Error, ValueError, TypeError, ImportError, OSError, RuntimeError) as error:
        print(error if isinstance(error, tarsus.InputError) else f"error: {error}", file=sys.stderr)
        return 3 if isinstance(error, SimulationFailed) else 2 if isinstance(error, ValueError) else 1
    return 0
