"""Makes the checkout importable under the name that AstrBot gives the plugin.

The checkout's folder may have any name; the plugin's modules only know each other relatively.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGE = "astrbot_plugin_hindsight_memory"


def _register() -> None:
    spec = ModuleSpec(PACKAGE, None, is_package=True)
    spec.submodule_search_locations = [str(CHECKOUT)]
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)


if PACKAGE not in sys.modules:
    _register()
