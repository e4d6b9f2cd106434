"""The viewer's rates: time to the first frame, frames per second in the page, and the viewer's cost to the simulation. `make view-rates`.

Chromium draws the page without a display; `renderer` names its renderer. If this is SwiftShader, the processor draws instead of a
graphics card, and the frames per second are those of this machine's processor. `page_ms` is the page's JavaScript time for each picture,
without the drawing; a machine with a graphics card spends it too.

JSON lines on standard output, a table on standard error. Needs the packages of python/requirements-view.txt and Chromium.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from playwright import sync_api
from websockets.sync.client import connect

import tarsus
from tarsus.view.gallery import open_scene
from tarsus.view.viewer import SPARING_FRAME_SPACING

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = [str(ROOT / "build/bin/tarsus"), "view", "models/humanoid.xml", "--clip", "models/clips/humanoid_walk.json"]
ROOT_FLAGS = ["--no-sandbox"] if os.geteuid() == 0 else []
FLAGS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", *ROOT_FLAGS]
SECONDS, ROUNDS = 5.0, 20


def say(**row):
    row |= {"cores": os.cpu_count(), "load": os.getloadavg()[0]}  # load by other programs
    print(json.dumps(row), flush=True)
    print("  ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), file=sys.stderr, flush=True)


def new_page(browser):
    return browser.new_page(viewport={"width": 1280, "height": 720}, bypass_csp=True)  # Playwright's wait uses eval


def first_frame(browser):
    """Times [s] from the command to its address, to a frame at a client, and to a picture in a browser that is already running."""
    for _ in range(3):
        page = new_page(browser)
        begin = time.perf_counter()
        run = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "TARSUS_PYTHON": sys.executable})
        try:
            url = re.search(r"http://\S+", run.stdout.readline())[0]
            address = time.perf_counter() - begin
            with connect(url.replace("http", "ws") + "socket", max_size=None) as socket:
                while not isinstance(socket.recv(), bytes):
                    pass
            frame = time.perf_counter() - begin
            page.goto(url, wait_until="commit")
            page.wait_for_function("window.tarsus && window.tarsus.ready", timeout=300_000)
            drawn = time.perf_counter() - begin
        finally:
            run.terminate(), run.wait()
            page.close()
        say(what="first frame", address_s=address, frame_s=frame, drawn_s=drawn)


@contextlib.contextmanager
def open_page(url):
    """Opens an address in Chromium. Yields a function that evaluates an expression in the page.

    Chromium runs as on a machine without a graphics card. Playwright is not used: it copies every frame that the page receives, which
    loses half of the pictures.
    """
    flags = ["--headless=new", "--disable-gpu", "--enable-unsafe-swiftshader", "--remote-debugging-port=0", "--window-size=1280,863", 
             "--hide-scrollbars"]  # page area 1280 x 720
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        chromium = subprocess.Popen([shutil.which("chromium"), *ROOT_FLAGS, *flags, f"--user-data-dir={profile}", url],
                                    stderr=subprocess.PIPE, text=True)
        try:
            port = next(m[1] for m in (re.search(r"ws://[\d.]+:(\d+)/", line) for line in chromium.stderr) if m)
            while not (pages := [page for page in json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
                                 if page["type"] == "page"]):
                time.sleep(0.1)
            with connect(pages[0]["webSocketDebuggerUrl"], max_size=None) as devtools:
                def evaluate(expression):
                    devtools.send(json.dumps({"id": 1, "method": "Runtime.evaluate",
                                              "params": {"expression": expression, "returnByValue": True}}))
                    return json.loads(devtools.recv())["result"]["result"].get("value")

                yield evaluate
        finally:
            chromium.terminate(), chromium.wait()


def rates(name):
    """Frames per second that a page shows of a playing scene.

    `most_per_s`: pictures per second if the page draws at every opportunity of the browser, with or without a new frame.
    """
    with tarsus.Viewer(open_scene(name), playing=True) as viewer:
        viewer.start()
        with open_page(viewer.url) as evaluate:
            while not evaluate("!!(window.tarsus && window.tarsus.ready)"):
                time.sleep(0.1)
            renderer = evaluate("""(() => { const g = window.tarsus.stage.renderer.getContext();
              return g.getParameter(g.getExtension('WEBGL_debug_renderer_info').UNMASKED_RENDERER_WEBGL); })()""")
            size = evaluate("[innerWidth, innerHeight]")
            time.sleep(2)
            read = "[window.tarsus.frames, window.tarsus.cost.drawn, window.tarsus.cost.busy, performance.now()]"
            begin, simulated = evaluate(read), viewer.source.time
            time.sleep(SECONDS)
            end, simulated = evaluate(read), viewer.source.time - simulated
            frames, drawn, busy, elapsed = (b - a for a, b in zip(begin, end))
            evaluate("(function again() { window.tarsus.stage.dirty = true; requestAnimationFrame(again); })()")
            time.sleep(1)
            begin = evaluate(read)
            time.sleep(SECONDS)
            most = [b - a for a, b in zip(begin, evaluate(read))]
        say(what="page", scene=name, window=size, frames_per_s=1e3 * frames / elapsed, pictures_per_s=1e3 * drawn / elapsed,
            most_per_s=1e3 * most[1] / most[3], page_ms=busy / max(drawn, 1), real_time=simulated / (elapsed / 1e3), renderer=renderer)


def client(url):
    """A client in a separate process that takes every frame at once."""
    code = ("import asyncio, sys\nfrom websockets.asyncio.client import connect\nasync def go():\n"
            "    async with connect(sys.argv[1], max_size=None) as s:\n        n = 0\n        async for m in s:\n"
            "            n += isinstance(m, bytes)\n            print(n, flush=True)\nasyncio.run(go())")
    return subprocess.Popen([sys.executable, "-c", code, url.replace("http", "ws") + "socket"], stdout=subprocess.PIPE, text=True)


def run(source, update):
    """Number of steps, elapsed time and processor time of the whole process [s]."""
    begin, used, steps = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() < begin + 0.5:
        if error := source.step():
            raise RuntimeError(error)
        update()
        steps += 1
    return steps, time.perf_counter() - begin, time.process_time() - used


def slowing(name):
    """Steps per second at full speed, without and with a client, alternating; the best of each.

    `slower` is from wall time, which is noisy on a busy machine. `frame_ms` is the processor time that a frame costs the process,
    whatever else runs. `slower_by_frames` is `frame_ms` times the viewer's maximum frame rate: the share that an otherwise idle core
    would lose.
    """
    source, alone, shown = open_scene(name), [], []
    with tarsus.Viewer(source, playing=False) as viewer:
        watcher, counted = client(viewer.url), [0]
        watcher.stdout.readline()  # connected

        def count():
            for line in watcher.stdout:
                counted[0] = int(line)

        thread = threading.Thread(target=count)
        thread.start()
        for _ in range(ROUNDS):
            alone.append(run(source, lambda: None))
            before = counted[0]
            shown.append((*run(source, lambda: viewer.update(apply_push=False)), counted[0] - before))
        watcher.terminate(), watcher.wait(), thread.join()
        most = 1 / SPARING_FRAME_SPACING
    step = min(used / steps for steps, _, used in alone)
    frame = min((used - steps * step) / frames for steps, _, used, frames in shown if frames)
    rate, shown_rate = max(n / t for n, t, _ in alone), max(n / t for n, t, _, _ in shown)
    say(what="slowing", scene=name, steps_per_s=rate, shown_steps_per_s=shown_rate, slower=rate / shown_rate - 1,
        frames_per_s=max(frames / t for _, t, _, frames in shown), frame_ms=1e3 * frame, slower_by_frames=most * frame)


def main():
    os.chdir(ROOT)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        first_frame(browser)
        browser.close()
    for name in ("walk", "crowd"):
        rates(name)
    for name in ("walk", "crowd"):
        slowing(name)


if __name__ == "__main__":
    main()
