"""Makes a Debian or Ubuntu system of this host's release and boots it with systemd-nspawn: systemd as process 1, a network with
only a loopback device, a separate cgroup. Needs root."""
import contextlib
import ctypes
import fcntl
import hashlib
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import tempfile
import time

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "rooflined"
CACHE_DAYS = 7  # afterwards the host may have newer libraries than the cached root
PR_SET_PDEATHSIG = 1
CLONE_NEWNET = 0x40000000


def reason_to_skip():
    """Returns why no system can be booted here; None when it can be tried."""
    if os.geteuid() != 0:
        return "booting a system needs root"
    if platform.freedesktop_os_release().get("ID") not in ("debian", "ubuntu"):
        return "this is not Debian or Ubuntu"
    for program in ("systemd-nspawn", "mmdebstrap", "dpkg-shlibdeps"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None


def libraries_of(programs):
    """Returns the names of the packages with the libraries that the programs need: the dependencies that a Debian package with
    these programs would have."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/debian")
        pathlib.Path(folder, "debian/control").write_text("Source: x\n\nPackage: x\nArchitecture: any\n")
        found = subprocess.run(["dpkg-shlibdeps", "-O", *programs], cwd=folder, capture_output=True, text=True, check=True)
    names = found.stdout.strip().removeprefix("shlibs:Depends=").split(", ")
    return {name.split()[0] for name in names}  # without version and alternatives


def apt_sources():
    """Returns the lines of sources.list for this host's release, from the host's configuration."""
    codename = platform.freedesktop_os_release()["VERSION_CODENAME"]
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]
    targets = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    releases = {codename + suffix for suffix in ("", "-updates", "-security")}
    lines = dict.fromkeys(f"deb {line}" for line in targets.splitlines() if line.split()[1] in releases)
    return "\n".join(lines) + "\n"


def root_archive(packages):
    """Returns a tar file of a minimal system with systemd and the packages. Makes the file if the cache does not have it."""
    sources, names = apt_sources(), ",".join(sorted({"systemd", "systemd-sysv", "dbus", *packages}))
    codename = platform.freedesktop_os_release()["VERSION_CODENAME"]
    key = hashlib.sha256((sources + names).encode()).hexdigest()[:16]
    archive = CACHE / f"root-{codename}-{key}.tar"
    CACHE.mkdir(parents=True, exist_ok=True)
    for old in CACHE.glob("root-*.tar"):
        if time.time() - old.stat().st_mtime > CACHE_DAYS * 86400:
            old.unlink(missing_ok=True)
    with open(CACHE / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run at once make the archive once
        if not archive.exists():
            make_archive(archive, codename, names, sources)
    return archive


def make_archive(archive, codename, names, sources):
    partial = archive.with_suffix(f".{os.getpid()}.partial")
    command = ["mmdebstrap", "--quiet", "--format=tar", "--variant=minbase", f"--include={names}", codename, partial, "-"]
    try:
        subprocess.run(command, input=sources, text=True, check=True, timeout=400)
        partial.rename(archive)
    finally:
        partial.unlink(missing_ok=True)


def own_cgroups():
    """Yields the folders of this process's cgroup: in the unified hierarchy (version 2) and, with version 1, in systemd's
    hierarchy."""
    paths = dict(line.rstrip("\n").split(":", 2)[1:] for line in open("/proc/self/cgroup", encoding="utf-8"))
    for line in open("/proc/self/mountinfo", encoding="utf-8"):
        mount, _, source = line.partition(" - ")
        kind, _, options = source.split()[:3]
        name = "" if kind == "cgroup2" else "name=systemd" if "name=systemd" in options.split(",") else None
        if name in paths:
            root, point = mount.split()[3:5]
            yield pathlib.Path(point, os.path.relpath(paths[name], root))


def enter_network(namespace):
    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Machine:
    """A system in the folder `root`, running between boot() and stop()."""

    def __init__(self, root, archive):
        self.root = pathlib.Path(root)
        self.nspawn = None
        self.leader = None  # the system's process 1
        self.cgroups = []
        self.root.mkdir(mode=0o755)
        subprocess.run(["tar", "-C", self.root, "-xpf", archive], check=True)

    def _nspawn_command(self, *arguments):
        return ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--console=pipe",
                "-D", str(self.root), *arguments]

    def why_unbootable(self):
        """Returns the message of systemd-nspawn when it cannot start even one program; None when it can."""
        tried = subprocess.run(self._nspawn_command("/bin/true"), capture_output=True, text=True, preexec_fn=self._enter_cgroup,
                               timeout=120)
        return None if tried.returncode == 0 else tried.stderr.strip().splitlines()[-1]

    def _enter_cgroup(self):
        """Runs in the new process and moves it to a new cgroup, because systemd-nspawn places the system's cgroups below its own
        cgroup, where the cgroups of two systems would collide. The new process gets SIGTERM when its parent ends."""
        for folder in own_cgroups():
            inner = folder / f"rooflined-boot-{os.getppid()}"
            inner.mkdir(exist_ok=True)
            (inner / "cgroup.procs").write_text("0")
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    def boot(self, seconds=180):
        self.console = open(f"{self.root}.console", "wb")
        self.nspawn = subprocess.Popen(self._nspawn_command("--boot"), stdin=subprocess.DEVNULL, stdout=self.console,
                                       stderr=subprocess.STDOUT, preexec_fn=self._enter_cgroup)
        children = pathlib.Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children")
        deadline = time.monotonic() + seconds
        state = ""
        while state not in ("running", "degraded"):
            assert time.monotonic() < deadline and self.nspawn.poll() is None, f"the system did not boot: {state}, {self.log()}"
            time.sleep(0.1)
            self.leader = (children.read_text().split() or [None])[0]
            if self.leader is not None:
                state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return state

    def log(self):
        return pathlib.Path(self.console.name).read_text(errors="replace")[-4000:]

    def run(self, *command, check=True, stdin=None, seconds=180):
        """Runs a program in the system as root and returns the ended process."""
        ended = subprocess.run(["nsenter", "--target", self.leader, "--all", *command], input=stdin, timeout=seconds,
                               capture_output=True, text=True,
                               env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"})
        assert not check or ended.returncode == 0, f"{' '.join(command)}: exit {ended.returncode}\n{ended.stdout}{ended.stderr}"
        return ended

    @contextlib.contextmanager
    def network(self):
        """Sockets that this thread makes within the context belong to the system's network."""
        with open("/proc/thread-self/ns/net", "rb") as own, open(f"/proc/{self.leader}/ns/net", "rb") as other:
            enter_network(other)
            try:
                yield
            finally:
                enter_network(own)

    def wait_until(self, condition, seconds, name):
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, f"{name}: not within {seconds} s\n{self.journal('-n', '60')}"
            time.sleep(0.1)
        return value

    def journal(self, *options):
        self.run("journalctl", "--sync")
        return self.run("journalctl", "--no-pager", "-q", *options).stdout

    def property(self, unit, name):
        return self.run("systemctl", "show", "-P", name, unit).stdout.strip()

    def write(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def stop(self):
        """Powers the system off. Returns the seconds that this took."""
        begin = time.monotonic()
        try:
            if self.nspawn is not None and self.nspawn.poll() is None:
                os.kill(int(self.leader), signal.SIGRTMIN + 4)  # systemd: power off
                self.nspawn.wait(120)
        finally:
            if self.nspawn is not None and self.nspawn.poll() is None:
                self.nspawn.kill()  # the kernel then kills process 1 of the system too
                self.nspawn.wait(60)
            self._remove_cgroups()
        return time.monotonic() - begin

    def _remove_cgroups(self):
        for folder in own_cgroups():
            inner = folder / f"rooflined-boot-{os.getpid()}"
            for below, _, _ in os.walk(inner, topdown=False):
                try:
                    os.rmdir(below)
                except OSError:
                    pass  # a process is still ending
