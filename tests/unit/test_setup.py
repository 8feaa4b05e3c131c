"""Set-up names what is missing with the command that installs it, and never does work twice."""

import builtins
import subprocess
import sys
from pathlib import Path

import pytest

from webgpu_py.errors import NoAdapter
from webgpu_py.host import browser, chromium, cli, setup, venv

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A machine where `.venv`, the cache and every browser are somewhere else, or nowhere."""
    monkeypatch.setattr(venv, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(venv, "STAMP", tmp_path / ".venv" / "stamp")
    for module in (browser, chromium):
        monkeypatch.setattr(module, "cache_dir", lambda: tmp_path)
    return tmp_path


def test_missing_venv_module_is_named_with_its_command(elsewhere, monkeypatch, capsys):
    real = builtins.__import__

    def no_ensurepip(name, *rest, **named):
        if name == "ensurepip":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", no_ensurepip)
    assert venv.main() == 1
    assert "apt-get install -y python3-venv" in capsys.readouterr().err


def test_old_python_is_named_with_what_is_needed(elsewhere, monkeypatch, capsys):
    monkeypatch.setattr(venv, "OLDEST", (99, 0))
    monkeypatch.setattr(venv.shutil, "which", lambda name: None)
    assert venv.main() == 1
    assert "3.11 or newer" in capsys.readouterr().err


def test_old_python_hands_over_to_a_newer_one(elsewhere, monkeypatch):
    monkeypatch.setattr(venv, "OLDEST", (99, 0))
    monkeypatch.setattr(venv.shutil, "which", lambda name: f"/bin/{name}")
    calls = []
    monkeypatch.setattr(venv.subprocess, "call", lambda command: calls.append(command) or 0)
    assert venv.main() == 0
    assert calls == [["/bin/python3.14", "-I", venv.__file__]]


def test_failing_install_names_a_compiler(elsewhere, monkeypatch, capsys):
    monkeypatch.setattr(venv, "_create", lambda: None)
    monkeypatch.setattr(venv.subprocess, "call", lambda *_a, **_k: 1)
    assert venv.main() == 1
    error = capsys.readouterr().err
    assert "build-essential" in error or "xcode-select" in error


def test_finished_environment_is_left_alone(elsewhere, monkeypatch):
    monkeypatch.setattr(venv, "_works", lambda _python: True)
    installs = []
    monkeypatch.setattr(venv.subprocess, "call", lambda *a, **_k: installs.append(a) or 0)
    venv.VENV.mkdir()
    assert [venv.main(), venv.main()] == [0, 0]
    assert len(installs) == 1


def test_venv_script_reads_on_an_old_python():
    compile((ROOT / "webgpu_py/host/venv.py").read_text(), "venv.py", "exec", dont_inherit=True)


def executable(path, status):
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def no_browser(elsewhere, monkeypatch):
    monkeypatch.setattr(chromium, "_driver_runs", lambda: True)
    monkeypatch.setattr(chromium, "_playwrights_own", lambda: None)
    monkeypatch.setattr(chromium, "_is_root", lambda: False)
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)
    monkeypatch.setattr(browser.sys, "platform", "linux")
    return elsewhere


def test_no_browser_at_all_names_the_command(no_browser):
    with pytest.raises(NoAdapter, match="playwright install --with-deps chromium"):
        chromium.ensure_chromium()


def test_playwrights_own_comes_first_and_is_remembered(no_browser, monkeypatch):
    own = executable(no_browser / "own", 0)
    system = executable(no_browser / "system", 0)
    monkeypatch.setattr(chromium, "_playwrights_own", lambda: own)
    monkeypatch.setattr(browser.shutil, "which", lambda name: str(system))
    assert chromium.ensure_chromium() == own
    monkeypatch.setattr(chromium, "_playwrights_own", lambda: pytest.fail("asked again"))
    assert chromium.ensure_chromium() == own
    own.unlink()
    monkeypatch.setattr(chromium, "_playwrights_own", lambda: None)
    assert chromium.ensure_chromium() == system


def test_a_browser_that_does_not_run_is_not_taken(no_browser, monkeypatch):
    stub = executable(no_browser / "stub", 1)
    monkeypatch.setattr(browser.shutil, "which", lambda name: str(stub))
    with pytest.raises(NoAdapter):
        chromium.ensure_chromium()


def test_root_gets_one_from_apt(no_browser, monkeypatch):
    path = no_browser / "chromium"
    commands = []

    def tool(command, _limit):
        commands.append(command[-1])
        if command[-1] == "chromium":
            executable(path, 0)
        return True

    monkeypatch.setattr(chromium, "_is_root", lambda: True)
    monkeypatch.setattr(chromium, "_tool", tool)
    monkeypatch.setattr(chromium, "system_browser", lambda: path if path.exists() else None)
    monkeypatch.setattr(chromium.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert chromium.ensure_chromium() == path
    assert commands == ["update", "chromium"]


def test_playwright_that_does_not_start_names_the_library(no_browser, monkeypatch):
    monkeypatch.setattr(chromium, "_driver_runs", lambda: False)
    with pytest.raises(NoAdapter, match="apt-get install -y libatomic1"):
        chromium.ensure_chromium()


def test_setup_says_which_part_failed(monkeypatch, capsys):
    def failing():
        raise NoAdapter("nothing here")

    monkeypatch.setattr(setup, "PARTS", {"browser": failing})
    assert setup.main(["browser"]) == 1
    assert "set-up of browser failed: nothing here" in capsys.readouterr().err


def test_flags_of_each_adapter(monkeypatch):
    monkeypatch.setattr(browser.sys, "platform", "linux")
    software = browser.Settings().flags()
    hardware = browser.Settings(adapter="hardware", extra_flags=("--x",)).flags()
    assert "--use-webgpu-adapter=swiftshader" in software
    assert "--disable-vulkan-surface" in hardware and hardware[-1] == "--x"
    assert {"--headless=new", "--enable-unsafe-webgpu"} <= set(software) & set(hardware)


def test_chosen_browser(no_browser, monkeypatch):
    wanted = Path("/given")
    assert browser.choose_browser(browser.Settings(executable=wanted), Path("/own")) == wanted
    own = executable(no_browser / "own", 0)
    assert browser.choose_browser(browser.Settings(), own) == own
    with pytest.raises(NoAdapter, match="no browser"):
        browser.choose_browser(browser.Settings(), Path("/missing"))


def test_commands_without_a_module_are_not_offered(monkeypatch, capsys):
    monkeypatch.setitem(cli.COMMANDS, "nothing", "is here")
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert "doctor" in text and "nothing" not in text


def test_command_line_errors_have_status_1_and_a_code(monkeypatch, capsys):
    from webgpu_py.host import cmd_serve

    def failing(_options):
        raise NoAdapter("no such thing")

    monkeypatch.setattr(cmd_serve, "main", failing)
    assert cli.main(["serve"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "error [NoAdapter]: no such thing\n"


def test_console_script_is_installed():
    done = subprocess.run(
        [Path(sys.executable).parent / "webgpu-py", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stdout.startswith("webgpu-py ")
