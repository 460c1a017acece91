"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from partita.io import replacing

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and signals are those of POSIX")
WRITER = """
import os, sys, time
from partita.io import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("ready", flush=True)
    time.sleep(60)
"""


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o444, 0o664])
def test_permissions_of_the_old_file_are_kept(tmp_path, mode):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    path.chmod(mode)
    write(path)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o7777 == mode


@posix
def test_an_unfinished_file_is_as_private_as_the_old_one(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with replacing(path) as file:
        assert os.fstat(file.fileno()).st_mode & 0o077 == 0


@posix
def test_new_files_have_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    write(tmp_path / "m")
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_of_the_old_file_is_kept(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    os.chown(path, 1234, 4321)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


@posix
def test_what_a_killed_process_left_goes_with_the_next_save(tmp_path):
    path = tmp_path / "m"
    write(path, b"old")
    write(tmp_path / "other", b"other")
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    (part,) = tmp_path.glob(".m.*.part")
    write(path, b"while it runs")
    assert part.exists()  # someone is still writing it
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert part.exists()
    assert path.read_bytes() == b"while it runs"
    write(tmp_path / "other")
    assert part.exists()  # another file's
    write(path)
    assert not part.exists()
    assert path.read_bytes() == b"new"


def test_unfinished_files_of_others_stay(tmp_path):
    keep = [f".m.{os.getpid()}-{'0' * 16}.part", ".m.part", f".m.999999999-{'x' * 16}.part", ".mm.1-0000000000000000.part"]
    for name in keep:
        (tmp_path / name).write_bytes(b"")
    began = time.time()
    write(tmp_path / "m")
    assert {p.name for p in tmp_path.iterdir()} == {*keep, "m"}
    assert time.time() - began < 5.0
