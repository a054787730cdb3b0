"""Tests the completion scripts, which bash, zsh and fish execute, and the manual pages, which man and mandoc check."""
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["ROOFLINED_BUILD"])
SOURCE = pathlib.Path(os.environ["ROOFLINED_SOURCE"])
PAGES = BUILD / "pages"


def shell(name, *arguments, folder=None):
    """Returns the lines that a shell prints."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    environment = {**os.environ, "HOME": str(folder or "/nonexistent"), "LC_ALL": "C.UTF-8"}
    ended = subprocess.run([name, *arguments], capture_output=True, text=True, timeout=60, cwd=folder, env=environment)
    assert ended.returncode == 0 and ended.stderr == "", ended.stderr
    return ended.stdout.splitlines()


def bash(line, folder):
    """Returns what bash completes at the end of a command line."""
    script = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rooflinectl; '
              '[ ${#COMPREPLY[@]} = 0 ] || printf "%s\\n" "${COMPREPLY[@]}"')
    return shell("bash", "--norc", "-c", script, str(PAGES / "rooflinectl"), *line.split(" "), folder=folder)


def fish(line, folder):
    found = shell("fish", "--no-config", "-c", f"source {PAGES}/rooflinectl.fish; complete -C '{line}'", folder=folder)
    return [entry.split("\t")[0] for entry in found]


def zsh(line, folder):
    """Returns the specifications that the script passes to _arguments for a command; the functions of compinit are replaced."""
    script = ('_arguments() { if [[ $1 == -C ]]; then state=$wanted; else print -rl -- "$@"; fi }; '
              '_describe() { print -rl -- "${(P@)2}"; }; '
              f'wanted={"arguments" if " " in line.strip() else "command"}; words=({line.partition(" ")[2]}); '
              f'source {PAGES}/_rooflinectl')
    return shell("zsh", "-f", "-c", script, folder=folder)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "job.json").touch()
    return tmp_path


def commands():
    """Yields (command, its options) of --help."""
    text = subprocess.run([BUILD / "bin/rooflinectl", "--help"], capture_output=True, text=True, check=True).stdout
    block = re.search(r"^Commands\n(.*?)\n\n", text, re.S | re.M).group(1)
    for name in re.findall(r"^  ([a-z]+)", block, re.M):
        options = re.search(rf"^Options of {name}\n(.*?)\n\n", text, re.S | re.M)
        yield name, re.findall(r"^  (-[-a-z]+)", options.group(1), re.M) if options else []


@pytest.mark.parametrize("complete", (bash, fish))
@pytest.mark.parametrize("line, wanted", (
    ("rooflinectl rep", ["report"]),
    ("rooflinectl --json ca", ["cancel"]),
    ("rooflinectl report 3 --wat", ["--watch"]),
    ("rooflinectl run --precis", ["--precisions"]),
    ("rooflinectl run --causal ", ["false", "true"]),
    ("rooflinectl import --format k", ["kineto"]),
    ("rooflinectl run --kind s", ["source"]),
    ("rooflinectl run --kind ", ["ceilings", "kernel", "layer", "source", "train"]),
    ("rooflinectl run --kernel lay", ["layernorm"]),
    ("rooflinectl run --dtype fp", ["fp16", "fp32", "fp64"]),
    ("rooflinectl run --set ", ["auto", "basic", "detailed", "full"]),
    ("rooflinectl run --passes t", ["timing"]),
    ("rooflinectl run --passes timing,a", ["timing,activity"]),
    ("rooflinectl run --engine blas", ["blas"]),
    ("rooflinectl run --variants jo", ["job.json"]),
    ("rooflinectl export 3 --format ", ["chrome", "csv", "ncu-csv", "nsys", "openmetrics", "perfetto"]),
    ("rooflinectl report 3 --section Ti", ["Timeline"]),
    ("rooflinectl report 3 --section Occ", ["Occupancy"]),
    ("rooflinectl regress mnist --output ju", ["junit"]),
    ("rooflinectl run --code jo", ["job.json"]),
    ("rooflinectl submit jo", ["job.json"]),
    ("rooflinectl run --epochs jo", []),
    ("rooflinectl token re", ["revoke"]),
))
def test_a_shell_completes(complete, line, wanted, folder):
    assert sorted(complete(line, folder)) == wanted


def test_bash_registers_the_function(folder):
    assert shell("bash", "--norc", "-c", 'source "$0"; complete -p rooflinectl', str(PAGES / "rooflinectl"), folder=folder) == [
        "complete -o filenames -F _rooflinectl rooflinectl"]


def test_every_command_and_option_is_completed(folder):
    known = dict(commands())
    assert set(bash("rooflinectl ", folder)) == {*known, "--url", "--token", "--json", "--help", "--version"}
    assert {"run", "report", "token"} <= set(known) and "--watch" in known["report"]
    for name, options in known.items():
        assert set(options) <= {*bash(f"rooflinectl {name} -", folder)}, name


def test_zsh_describes_commands_and_options(folder):
    assert {entry.split(":")[0] for entry in zsh("rooflinectl", folder)} == set(dict(commands()))
    for name, options in commands():
        described = {re.split(r"[\[:]", entry)[0] for entry in zsh(f"rooflinectl {name}", folder)}
        assert set(options) <= described, name
    for option, end in (("--causal", ":(true false)"), ("--set", ":(auto basic detailed full)"),
                        ("--passes", ":_sequence compadd - timing activity counters"), ("--variants", ":_files")):
        assert any(entry.startswith(f"{option}[") and entry.endswith(end) for entry in zsh("rooflinectl run", folder)), option


def test_the_formats_of_export_are_those_of_the_api(folder):
    route = json.loads((SOURCE / "schema/openapi.json").read_text())["paths"]["/jobs/{id}/export"]["get"]
    (formats,) = [entry["schema"]["enum"] for entry in route["parameters"] if entry.get("name") == "format"]
    assert sorted(bash("rooflinectl export 3 --format ", folder)) == sorted(formats)


@pytest.mark.parametrize("page", ("rooflinectl.1", "rooflined.8", "rooflined-worker-cpu.8", "rooflined-nvrtc.8",
                                  "rooflined-import.8"))
def test_manual_pages_have_no_warnings(page, tmp_path):
    file = tmp_path / page
    file.write_bytes(gzip.decompress((PAGES / f"{page}.gz").read_bytes()))
    text = "\n".join(shell("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(file), folder=tmp_path))
    assert text
    if shutil.which("mandoc"):
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", str(file)], capture_output=True, text=True)
        # The pages have no date, so that equal sources give equal pages.
        assert [line for line in lint.stdout.splitlines() if "missing date" not in line] == []


def test_manual_pages_have_every_command_and_setting():
    client = gzip.decompress((PAGES / "rooflinectl.1.gz").read_bytes()).decode().replace("\\-", "-")
    for name, options in commands():
        assert f"\\fB{name}\\fR" in client
        assert all(f"\\fB{option}\\fR" in client for option in options)
    daemon = gzip.decompress((PAGES / "rooflined.8.gz").read_bytes()).decode().replace("\\-", "-")
    text = subprocess.run([BUILD / "bin/rooflined", "--help"], capture_output=True, text=True, check=True).stdout
    options = re.findall(r"^  (--[-a-z]+)", text, re.M)
    assert len(options) > 30 and all(f"\\fB{option}\\fR" in daemon for option in options)
