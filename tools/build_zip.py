"""Builds the zip that AstrBot's "install from file" takes.

    python3 tools/build_zip.py [FOLDER]

It holds what the plugin needs to run, what AstrBot's page shows of it, and the pages that this
links to: no tests, no tools, no pictures.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
PATTERNS = (
    "*.py",
    "_conf_schema.json",
    "metadata.yaml",
    "requirements.txt",
    "README*.md",
    "CHANGELOG.md",
    "docs/*.md",
    "LICENSE",
    "logo.png",
    ".astrbot-plugin/i18n/*.json",
)


def build(folder: Path) -> Path:
    """Writes the zip.

    Args:
        folder: Where to; made if it is not there.

    Returns:
        The file, named after the plugin and its version.
    """
    metadata = (CHECKOUT / "metadata.yaml").read_text("utf-8")
    name, version = (_field(metadata, field) for field in ("name", "version"))
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{name}-{version}.zip"
    files = sorted({file for pattern in PATTERNS for file in CHECKOUT.glob(pattern)})
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            content = _without_pictures(file) if file.suffix == ".md" else file.read_bytes()
            archive.writestr(f"{name}/{file.relative_to(CHECKOUT).as_posix()}", content)
    return target


def _without_pictures(document: Path) -> bytes:
    """A document without its pictures, which AstrBot's page cannot show."""
    text = document.read_text("utf-8")
    return re.sub(r"^!\[.*\]\(.*\.png\)\n\n", "", text, flags=re.MULTILINE).encode()


def _field(metadata: str, name: str) -> str:
    """A plain field of `metadata.yaml`; raises ValueError if it is not there."""
    found = re.search(rf"^{name}:\s*(\S+)\s*$", metadata, re.MULTILINE)
    if found is None:
        raise ValueError(f"metadata.yaml has no {name}")
    return found[1]


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKOUT / "dist"))
