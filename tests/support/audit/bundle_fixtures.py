"""A pytest plugin with a sealed bundle; test modules name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.audit.bundles import BundleScene, Reporter, bundle_scene, copied


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> BundleScene:
    scene = bundle_scene(tmp_path_factory.mktemp("sealed"))
    scene.write(reporter=Reporter())
    return scene


@pytest.fixture
def scene(sealed: BundleScene, tmp_path: Path) -> BundleScene:
    """The scene with a bundle of one's own to spoil."""
    return copied(sealed, tmp_path / "scene")
