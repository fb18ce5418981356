"""Pack the browser extension: one zip file, the same bytes for the same files."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

FOLDER = Path(__file__).parent / "extension"
MANIFEST = "manifest.json"
FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can have
FILE_MODE = 0o644 << 16


def pack_extension(origins: Iterable[str] = ()) -> bytes:
    """Return the extension as a zip file.

    Args:
        origins: servers whose admin pages may offer a pairing, such as https://continuity.example,
            besides a server on this machine.

    Raises:
        ValueError: One of them is not an http or https origin.
    """
    manifest = json.loads((FOLDER / MANIFEST).read_text(encoding="utf-8"))
    manifest["externally_connectable"]["matches"] += [admin_pattern(origin) for origin in origins]
    text = f"{json.dumps(manifest, indent=2, ensure_ascii=False)}\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(FOLDER.rglob("*")):
            name = path.relative_to(FOLDER).as_posix()
            if path.is_file():
                data = text.encode() if name == MANIFEST else path.read_bytes()
                _add(archive, name, data)
    return packed.getvalue()


def admin_pattern(origin: str) -> str:
    """Return the pattern of the admin pages of an origin, for the manifest.

    Raises:
        ValueError: It is not an http or https origin.
    """
    parts = urlsplit(origin)
    is_origin = parts.scheme in ("http", "https") and parts.netloc and parts.path in ("", "/")
    if not is_origin or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(f"{origin} is not an origin such as https://continuity.example.")
    return f"{parts.scheme}://{parts.netloc}/admin/*"


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, FIXED_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = FILE_MODE
    archive.writestr(entry, data)
