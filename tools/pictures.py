#!/usr/bin/env python3
"""Makes every picture of the documentation and the gallery's thumbnails.

usage: tools/pictures.py [NAME…]     names of gallery scenes; without any, all of them and the documentation's pictures
"""

import sys
import tempfile
from pathlib import Path

from tarsus.view.capture import Chromium, address_of
from tarsus.view.gallery import SCENES, open_scene
from tarsus.view.page import record, write_page

ROOT = Path(__file__).resolve().parent.parent
THUMBNAILS = ROOT / "python/tarsus/view/thumbnails"
PICTURES = ROOT / "docs/pictures"
# Scene, time [s], theme.
DOCUMENTED = {"walk": ("walk", 1.0, "light"), "snake": ("snake", 1.5, "light"), "cards": ("cards", 1.0, "light"),
              "crowd": ("crowd", 0.5, "light"), "balls": ("balls", 2.0, "light")}
# Change of the camera from its initial pose: azimuth, elevation [rad], factor on its distance.
CAMERAS = {"crowd": (0.0, -0.15, 0.35), "c60": (0.0, 0.0, 0.7), "snake": (0.0, 0.2, 0.95), "dominoes": (0.2, 0.0, 0.75)}


def take(page, time, theme, size, path, camera):
    with Chromium(*size) as browser:
        browser.open(address_of(page, time, theme), seconds=600)
        browser.evaluate(f"window.tarsus.stage.turn({', '.join(map(str, camera))})")
        browser.evaluate(f"window.tarsus.seek({time})")
        path.write_bytes(browser.picture("jpeg"))
    print(path.relative_to(ROOT), path.stat().st_size, "bytes", flush=True)


def main(names):
    THUMBNAILS.mkdir(exist_ok=True), PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in names or SCENES:
            scene, page = SCENES[name], Path(folder) / f"{name}.html"
            wanted = [(THUMBNAILS / f"{name}.jpg", scene.picture, "light", (288, 180))]
            wanted += [(PICTURES / f"{picture}.jpg", time, theme, (960, 540)) for picture, (of, time, theme) in DOCUMENTED.items()
                       if of == name]
            write_page(page, record(open_scene(name), max(time for _, time, _, _ in wanted), fps=10))
            for path, time, theme, size in wanted:
                take(page, time, theme, size, path, CAMERAS.get(name, (0, 0, 1)))


if __name__ == "__main__":
    main(sys.argv[1:])
