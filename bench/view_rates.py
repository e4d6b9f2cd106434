"""The viewer's rates: first frame, frames a second in the page, and what showing costs the simulation. `make view-rates`.

The page is drawn by Chromium without a display; `renderer` says by what. Where that is SwiftShader, a program draws instead of a
graphics card: frames a second are then this machine's processor's, and `page_ms` (the page's own work for each picture, JavaScript,
without the drawing) is what a machine with a card would have to spend besides.

JSON lines on standard output, a table on standard error. Needs the packages of python/requirements-view.txt and Chromium.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

from playwright import sync_api

import tarsus
from tarsus.view.gallery import open_scene

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = [str(ROOT / "build/bin/tarsus"), "view", "models/humanoid.xml", "--clip", "models/clips/humanoid_walk.json"]
FLAGS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-gpu-vsync", "--disable-frame-rate-limit"]
SECONDS, ROUNDS = 5.0, 5


def say(**row):
    print(json.dumps(row), flush=True)
    print("  ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), file=sys.stderr, flush=True)


def first_frame(browser):
    """Seconds from the command to its address, and to a picture in a browser that runs already."""
    for _ in range(3):
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        begin = time.perf_counter()
        run = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "TARSUS_PYTHON": sys.executable})
        try:
            url = re.search(r"http://\S+", run.stdout.readline())[0]
            address = time.perf_counter() - begin
            page.goto(url, wait_until="commit")
            page.wait_for_function("window.tarsus && window.tarsus.ready", timeout=60_000)
            drawn = time.perf_counter() - begin
        finally:
            run.terminate(), run.wait()
            page.close()
        say(what="first frame", address_s=address, drawn_s=drawn)


def rates(browser, name):
    """Frames a second that a page shows of a scene that plays."""
    with tarsus.Viewer(open_scene(name), playing=True) as viewer:
        viewer.start()
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(viewer.url, wait_until="commit")
        page.wait_for_function("window.tarsus && window.tarsus.ready", timeout=300_000)
        renderer = page.evaluate("""() => { const g = window.tarsus.stage.renderer.getContext();
          return g.getParameter(g.getExtension('WEBGL_debug_renderer_info').UNMASKED_RENDERER_WEBGL); }""")
        page.wait_for_timeout(2000)
        read = "() => [window.tarsus.frames, window.tarsus.cost.drawn, window.tarsus.cost.busy, performance.now()]"
        begin, simulated = page.evaluate(read), viewer.source.time
        page.wait_for_timeout(1000 * SECONDS)
        end, simulated = page.evaluate(read), viewer.source.time - simulated
        frames, drawn, busy, elapsed = (b - a for a, b in zip(begin, end))
        say(what="page", scene=name, frames_per_s=1e3 * frames / elapsed, pictures_per_s=1e3 * drawn / elapsed,
            page_ms=busy / max(drawn, 1), real_time=simulated / (elapsed / 1e3), renderer=renderer)
        page.close()


def client(url):
    """A page that takes every frame at once, in a process of its own."""
    code = ("import asyncio, sys\nfrom websockets.asyncio.client import connect\nasync def go():\n"
            "    async with connect(sys.argv[1], max_size=None) as s:\n        n = 0\n        async for m in s:\n"
            "            n += isinstance(m, bytes)\n            print(n, flush=True)\nasyncio.run(go())")
    return subprocess.Popen([sys.executable, "-c", code, url.replace("http", "ws") + "socket"], stdout=subprocess.PIPE, text=True)


def steps_per_second(source, update):
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() < begin + 1.5:
        if error := source.step():
            raise RuntimeError(error)
        update()
        steps += 1
    return steps / (time.perf_counter() - begin)


def slowing(name):
    """Steps a second as fast as they go, without a viewer and with one that a client watches, in turns; the best of each."""
    source = open_scene(name)
    alone, shown, frames = 0.0, 0.0, 0.0
    for _ in range(ROUNDS):
        source.reset()
        alone = max(alone, steps_per_second(source, lambda: None))
        with tarsus.Viewer(source, playing=False) as viewer:
            watcher = client(viewer.url)
            watcher.stdout.readline()  # connected
            counted = [0]

            def count():
                for line in watcher.stdout:
                    counted[0] = int(line)

            thread = threading.Thread(target=count)
            thread.start()
            source.reset()
            begin, before = time.perf_counter(), counted[0]
            shown = max(shown, steps_per_second(source, lambda: viewer.update(apply_push=False)))
            frames = max(frames, (counted[0] - before) / (time.perf_counter() - begin))
            watcher.terminate(), watcher.wait(), thread.join()
    say(what="slowing", scene=name, steps_per_s=alone, shown_steps_per_s=shown, slower=alone / shown - 1, frames_per_s=frames)


def main():
    os.chdir(ROOT)
    flags = FLAGS + (["--no-sandbox"] if os.geteuid() == 0 else [])
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        first_frame(browser)
        for name in ("walk", "crowd"):
            rates(browser, name)
        browser.close()
    for name in ("walk", "crowd"):
        slowing(name)


if __name__ == "__main__":
    main()
