"""Take the README's picture again: ``calibrant demo`` runs, and the top of its report is photographed.

Needs the browser (scripts/get_browser.py), playwright and pillow; writes docs/report.png.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from get_browser import get_browser, launch_options
from PIL import Image
from playwright.sync_api import sync_playwright

from calibrant.cli.main import main as calibrant

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "report.png"
MOST_BYTES = 150_000


def main() -> int:
    """Run the demo and take the picture."""
    trouble = get_browser()
    if trouble:
        sys.exit(f"no browser: {trouble}")
    with tempfile.TemporaryDirectory() as place:
        page_file = Path(place) / "demo.html"
        if calibrant(["demo", "--quiet", "--output", str(page_file)]) != 0:
            return 1
        with sync_playwright() as driver:
            browser = driver.chromium.launch(**launch_options())
            page = browser.new_page(viewport={"width": 1000, "height": 700}, color_scheme="light")
            page.goto(page_file.as_uri())
            bottom = page.locator("#verdict").bounding_box()
            assert bottom is not None  # the page has a verdict
            height = bottom["y"] + bottom["height"] + 8
            shot = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": 1000, "height": height})
            browser.close()
    image = Image.open(io.BytesIO(shot)).convert("RGB").quantize(64)
    image.save(PICTURE, optimize=True)
    size = PICTURE.stat().st_size
    sys.stderr.write(f"wrote {PICTURE} ({size:,} bytes)\n")
    return int(size > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
