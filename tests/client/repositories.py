"""Makes git repositories for tests of rooflinectl bisect."""
import os
import subprocess


def git(folder, *words):
    identity = {f"GIT_{who}_{what}": "tester@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(["git", *words], cwd=folder, env={**os.environ, **identity}, stdout=subprocess.PIPE, text=True,
                          check=True, timeout=120).stdout.strip()


def make_repository(folder, changes):
    """Makes a commit for each change {file name: text}, and returns the commits' identifiers. Each commit also changes the file
    `number`, because git makes no commit without a change."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    commits = []
    for number, files in enumerate(changes):
        for name, text in {**files, "number": str(number)}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "--quiet", "-m", f"change {number}")
        commits.append(git(folder, "rev-parse", "HEAD"))
    return commits
