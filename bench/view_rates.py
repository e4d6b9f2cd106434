"""The viewer's rates: first frame, frames a second in the page, and the cost of the viewer to the simulation. `make view-rates`.

The page is drawn by Chromium without a display; `renderer` says by what. Where that is SwiftShader, a program draws instead of a
graphics card: frames a second are then this machine's processor's, and `page_ms` (the page's own work for each picture, JavaScript,
without the drawing) is what a machine with a card would have to spend besides.

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
    row |= {"cores": os.cpu_count(), "load": os.getloadavg()[0]}  # what else the machine was doing
    print(json.dumps(row), flush=True)
    print("  ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), file=sys.stderr, flush=True)


def new_page(browser):
    return browser.new_page(viewport={"width": 1280, "height": 720}, bypass_csp=True)  # Playwright waits by eval


def first_frame(browser):
    """Seconds from the command to its address, to a frame at a client, and to a picture in a browser that runs already."""
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
    """Chromium at an address; gives a function that evaluates an expression in the page.

    As a browser runs where there is no graphics card. Not by Playwright: it takes a copy of every frame that the page gets, and half
    of the pictures are lost by it.
    """
    flags = ["--headless=new", "--disable-gpu", "--enable-unsafe-swiftshader", "--remote-debugging-port=0", "--window-size=1280,863", 
             "--hide-scrollbars"]  # 1280 x 720 within
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
    """Frames a second that a page shows of a scene that plays.

    `most_per_s` is how many pictures there are when it draws each time that the browser lets it, whether or not a frame has come.
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
    """A page that takes every frame at once, in a process of its own."""
    code = ("import asyncio, sys\nfrom websockets.asyncio.client import connect\nasync def go():\n"
            "    async with connect(sys.argv[1], max_size=None) as s:\n        n = 0\n        async for m in s:\n"
            "            n += isinstance(m, bytes)\n            print(n, flush=True)\nasyncio.run(go())")
    return subprocess.Popen([sys.executable, "-c", code, url.replace("http", "ws") + "socket"], stdout=subprocess.PIPE, text=True)


def run(source, update):
    """Steps, elapsed time and processor time of the whole process [s]."""
    begin, used, steps = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() < begin + 0.5:
        if error := source.step():
            raise RuntimeError(error)
        update()
        steps += 1
    return steps, time.perf_counter() - begin, time.process_time() - used


def slowing(name):
    """Steps a second as fast as they go, not shown and shown to a client, in turns; the best of each.

    `slower` is by the clock, and on a busy machine by chance. `frame_ms` is the processor time that a frame costs the process, whatever
    else runs; `slower_by_frames` is that times the frames a second that the viewer sends at most: what a core of its own would lose.
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
