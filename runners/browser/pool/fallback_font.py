"""A font of last resort: a box for every character that no font of this machine has.

For a character without a font, Chromium asks its browser process again at every run of text, which
takes about 0.2 ms each time: a text with 200 000 such runs is laid out in 30 s or more. It keeps
the answer for a character that has a font, so with this one it asks once for each character.

`font/fallback.ttf` is made by `python -m tests.support.box_fonts`.
"""

from __future__ import annotations

import html
import os
from pathlib import Path

FOLDER = Path(__file__).parent / "font"
FAMILY = "Continuity Fallback"
# fontconfig takes a font with every character to suit every language, and would prefer it, on a
# machine set to Chinese, to fonts of Latin letters. Without a language, and as a symbol font, it
# comes after all others.
_FONTCONFIG = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">{machine}</include>
  <dir>{folder}</dir>
  <match target="scan">
    <test name="family"><string>{family}</string></test>
    <edit name="lang" mode="assign"><string>und</string></edit>
    <edit name="symbol" mode="assign"><bool>true</bool></edit>
  </match>
</fontconfig>
"""


def write_fontconfig(folder: Path) -> Path:
    """Write a fontconfig file that adds the fallback font to the fonts of this machine.

    It is for FONTCONFIG_FILE of a browser's environment (Linux; elsewhere browsers ignore it).
    """
    file = folder / "browser-fonts.conf"
    # fontconfig looks for a name without a path in its own folder (/etc/fonts).
    machine = os.environ.get("FONTCONFIG_FILE") or "fonts.conf"
    text = _FONTCONFIG.format(
        machine=html.escape(machine), folder=html.escape(str(FOLDER)), family=FAMILY
    )
    file.write_text(text, encoding="utf-8")
    return file
