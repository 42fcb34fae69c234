"""A home that somebody else decides over is not used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import holdfast
from holdfast._trust import must_be_ours
from holdfast.errors import Untrusted


def test_what_is_ours_is_believed_also_by_a_link_and_before_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("home")
    for name in ["home", "link", "link/../home", "link/none/at/all"]:
        must_be_ours(tmp_path / name)


def test_a_home_that_others_write_or_own_is_refused_before_anything_is_read_or_made(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o777)
    with pytest.raises(Untrusted, match="other users can write") as refused:
        holdfast.connect(home=home, start=False)
    assert f"chmod go-w {home}" in refused.value.hint
    assert list(home.iterdir()) == []
    home.chmod(0o700)
    (tmp_path / "link").symlink_to(home)
    if os.geteuid() != 0:
        return
    os.chown(home, 4711, 4711)
    for path in [home, tmp_path / "link"]:
        with pytest.raises(Untrusted, match=r"another user \(uid 4711\)"):
            holdfast.connect(home=path, start=False)
