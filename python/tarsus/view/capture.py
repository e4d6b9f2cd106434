"""Pictures and films of a page, made by headless Chromium through its debugging protocol."""

import base64
import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
import time as clock
from contextlib import suppress
from pathlib import Path

from ..errors import ValueError  # noqa: A004 (the C++ name)
from ..files import complete

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ("--headless=new", "--no-first-run", "--no-default-browser-check", "--hide-scrollbars", "--mute-audio",
         "--disable-background-networking", "--disable-extensions", "--disable-sync", "--disable-component-update",
         "--enable-unsafe-swiftshader", "--use-angle=swiftshader", "--remote-debugging-port=0")


def find_browser():
    for name in BROWSERS:
        path = shutil.which(name)
        if path:
            return path
    raise FileNotFoundError("pictures and films need Chromium: apt-get install chromium")


def find_encoder():
    path = shutil.which("ffmpeg")
    if path:
        return path
    raise FileNotFoundError("films need ffmpeg: apt-get install ffmpeg")


def find_protocol():
    """Function that opens a connection to the browser, and the exception raised when it closes."""
    try:
        from websockets.exceptions import ConnectionClosed
        from websockets.sync.client import connect
    except ImportError as error:
        raise ImportError('pictures and films need the package "websockets": pip install "tarsus[view]"') from error
    return connect, ConnectionClosed


class Chromium:
    """One page in a headless browser."""

    def __init__(self, width=1280, height=720):
        connect, self.ended = find_protocol()
        self.profile = tempfile.TemporaryDirectory(prefix="tarsus-view-", ignore_cleanup_errors=True)
        # Chromium's sandbox does not run as root, as in containers.
        sandbox = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
        self.process = subprocess.Popen([find_browser(), *FLAGS, *sandbox, f"--user-data-dir={self.profile.name}",
                                         "--window-size=1280,720", "about:blank"],  # in a window below 128 px it takes no picture
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.numbers = itertools.count(1)
        try:
            self.socket = connect(self._address(), max_size=None, origin=None, compression=None, open_timeout=60)
            target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
            self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
            self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        except BaseException:
            self.close()
            raise

    session = None

    def _address(self):
        deadline = clock.monotonic() + 60
        for line in self.process.stderr:
            found = re.search(r"DevTools listening on (ws://\S+)", line)
            if found:
                return found[1]
            if clock.monotonic() > deadline:
                break
        raise RuntimeError("Chromium did not start")

    def call(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        try:
            self.socket.send(json.dumps(message))
            return self._answer(method, number)
        except self.ended as error:
            raise RuntimeError(f"Chromium ended: {error}") from error

    def _answer(self, method, number):
        while True:
            answer = json.loads(self.socket.recv(timeout=120))
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "error in the page"))
        return answer["result"].get("value")

    def open(self, address, seconds=60):
        self.call("Page.navigate", url=address)
        deadline = clock.monotonic() + seconds
        while not self.evaluate("!!(window.tarsus && window.tarsus.ready)"):
            if clock.monotonic() > deadline:
                raise RuntimeError(f"{address}: the page shows nothing after {seconds} s")
            clock.sleep(0.05)

    def picture(self, kind="png"):
        quality = {"quality": 92} if kind == "jpeg" else {}
        return base64.b64decode(self.call("Page.captureScreenshot", format=kind, **quality)["data"])

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        if hasattr(self, "socket"):
            self.socket.close()
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def address_of(page, time=0.0, theme="light"):
    return f"{Path(page).resolve().as_uri()}#bare&quality=high&theme={theme}&t={time}"


def screenshot(page, path, *, time=0.0, width=1280, height=720, theme="light"):
    """A PNG (or, by its name, JPEG) of a page written by write_page(), at a time of its recording."""
    kind = "jpeg" if str(path).lower().endswith((".jpg", ".jpeg")) else "png"
    with Chromium(width, height) as browser:
        browser.open(address_of(page, time, theme))
        browser.evaluate(f"window.tarsus.seek({float(time)})")
        with complete(path) as part:
            part.write_bytes(browser.picture(kind))


def video(page, path, *, fps=30, width=1280, height=720, theme="light", progress=None):
    """An MP4 of a whole page, frame by frame, so that a slow machine makes the same film."""
    if min(width, height) < 2:
        raise ValueError(f"size: is {width}x{height}, expected at least 2x2 pixels for a film")
    width, height = width // 2 * 2, height // 2 * 2  # as the encoder requires
    command = [find_encoder(), "-y", "-loglevel", "error", "-f", "image2pipe", "-framerate", str(fps), "-c:v", "mjpeg", "-i", "-",
               "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", "-movflags", "+faststart", "-f", "mp4"]
    with complete(path) as part, Chromium(width, height) as browser:
        browser.open(address_of(page, 0.0, theme))
        start, end = browser.evaluate("[window.tarsus.source.start, window.tarsus.source.end]")
        count = max(1, round((end - start) * fps))
        run = subprocess.Popen([*command, str(part)], stdin=subprocess.PIPE)
        try:
            with suppress(BrokenPipeError):  # ffmpeg has ended: its status gives the reason
                for i in range(count):
                    browser.evaluate(f"window.tarsus.seek({start + i / fps})")
                    run.stdin.write(browser.picture("jpeg"))
                    if progress:
                        progress((i + 1) / count)
                run.stdin.close()
            if status := run.wait():
                raise RuntimeError(f"{path}: ffmpeg failed with exit status {status}")
        finally:
            run.kill()
            with suppress(BrokenPipeError):
                run.stdin.close()
            run.wait()
    return count
