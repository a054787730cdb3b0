"""Tests cached replies: ETags, and replies with 304 or gzip that need no query. A reply is never older than the last change of
the database, even if another program made the change."""

import gzip
import re
import sqlite3
import time

import pytest
import requests
from daemon import endless, job
from history_runs import insert as insert_history
from report_fixture import Rows, ncu_raw


def lookups(daemon, result):
    """Returns how many lookups in the cache of reply bodies had this result: hit or miss."""
    text = daemon.get("/metrics").text
    return int(re.search(rf'body_cache_lookups_total{{result="{result}"}} (\d+)', text)[1])


def get(daemon, path, **headers):
    """GET without the header Accept-Encoding: gzip, which the library requests adds."""
    return daemon.get(path, headers={"Accept-Encoding": "identity", **headers})


@pytest.fixture(scope="module")
def paths(daemon, finished):
    """Every path whose replies are cached."""
    run = daemon.get(f"/jobs/{finished}").json()["runs"][0]["id"]
    return [f"/jobs/{finished}", f"/jobs/{finished}/results", f"/jobs/{finished}/kernels", f"/jobs/{finished}/comparison",
            f"/jobs/{finished}/timeline?to=1000000", "/jobs?state=completed", "/history?metric=epoch_ms_median",
            f"/runs/{run}/report", f"/runs/{run}/report?kernel=0", f"/runs/{run}/report?format=csv",
            f"/runs/{run}/timeline/lanes?to=1000000", f"/runs/{run}/timeline/statistics",
            f"/runs/{run}/timeline/search?name=adam",
            f"/compare?a={run}&b={run + 1}", f"/compare?a={run}&b={run + 1}&detail=names"]


def test_equal_requests_are_answered_without_a_query(daemon, paths):
    for path in paths:
        first = get(daemon, path)
        hits = lookups(daemon, "hit")
        repeated = get(daemon, path)
        assert repeated.content == first.content and repeated.headers["ETag"] == first.headers["ETag"], path
        same = get(daemon, path, **{"If-None-Match": first.headers["ETag"]})
        assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", first.headers["ETag"]), path
        head = daemon.call("HEAD", path, headers={"Accept-Encoding": "identity"})
        assert head.headers["Content-Length"] == str(len(first.content)) and head.headers["ETag"] == first.headers["ETag"], path
        assert lookups(daemon, "hit") == hits + 3, path
        for response in (first, repeated, same, head):
            assert response.headers["Vary"] == "Accept-Encoding" and response.headers["Cache-Control"] == "private, no-cache"
            assert "Content-Security-Policy" in response.headers


def test_long_replies_are_compressed(daemon, paths):
    for path in paths:
        plain = get(daemon, path)
        with requests.get(daemon.url + path, headers={"Accept-Encoding": "br;q=1, gzip;q=0.5"}, stream=True) as response:
            raw = response.raw.read(decode_content=False)
            if len(plain.content) <= 1024:
                assert "Content-Encoding" not in response.headers and raw == plain.content
                continue
            assert response.headers["Content-Encoding"] == "gzip" and gzip.decompress(raw) == plain.content
            etag = response.headers["ETag"]
            assert len(raw) < len(plain.content) and etag != plain.headers["ETag"]
        for known in (etag, plain.headers["ETag"]):
            same = daemon.get(path, headers={"Accept-Encoding": "gzip", "If-None-Match": known})
            assert (same.status_code, same.headers["ETag"]) == (304, known)
        assert "Content-Encoding" not in get(daemon, path, **{"Accept-Encoding": "gzip;q=0, deflate"}).headers


def test_requests_with_other_parameters_are_other_requests(daemon, paths):
    replies = {path: get(daemon, path).content for path in (*paths, "/jobs", "/jobs?state=cancelled", "/jobs?limit=1")}
    for path, content in replies.items():
        assert get(daemon, path).content == content
    assert daemon.get("/jobs?limit=x").status_code == 400 and daemon.get("/jobs/999999").status_code == 404
    assert daemon.get("/jobs/999999").status_code == 404


def test_a_running_job_and_its_cancellation(daemon):
    job_id = daemon.submit(endless())
    path = f"/jobs/{job_id}"
    daemon.wait(job_id, states=("running",))
    etags = {get(daemon, path + tail).headers["ETag"] for tail in ("", "/results")}
    listed = get(daemon, "/jobs?state=running").json()["items"]
    assert job_id in [item["id"] for item in listed]
    daemon.call("DELETE", path)
    assert get(daemon, path).json()["state"] == "cancelled"
    assert get(daemon, path + "/results").json()["state"] == "cancelled"
    assert get(daemon, "/jobs?state=running").json()["items"] == []
    for tail in ("", "/results"):
        assert get(daemon, path + tail, **{"If-None-Match": ", ".join(etags)}).status_code == 200


def test_each_change_of_a_job_is_seen(daemon):
    """Reads the list and the job without a pause while jobs run. If the list shows a job as completed, the job does so too, and
    the number of completed passes never falls."""
    for _ in range(3):
        job_id = daemon.submit(job(passes=["timing", "activity"]))
        seen = []
        until = time.monotonic() + 180
        while time.monotonic() < until:
            listed = next(item for item in get(daemon, "/jobs").json()["items"] if item["id"] == job_id)
            seen.append((listed["passes"]["completed"], listed["state"]))
            state = get(daemon, f"/jobs/{job_id}").json()["state"]
            assert listed["state"] != "completed" or state == "completed"
            if state == "completed":
                break
        assert [count for count, _ in seen] == sorted(count for count, _ in seen)
        listed = next(item for item in get(daemon, "/jobs").json()["items"] if item["id"] == job_id)
        assert (listed["passes"]["completed"], listed["state"]) == (2, "completed")
        assert get(daemon, f"/jobs/{job_id}/results").json()["state"] == "completed"


def test_a_comparison_follows_both_jobs(start):
    own_daemon = start()
    rows = Rows(own_daemon)
    runs = [rows.run([{"metrics": ncu_raw()}]) for _ in range(2)]
    path = f"/compare?a={runs[0]}&b={runs[1]}"
    first = get(own_daemon, path)
    assert get(own_daemon, path).content == first.content and lookups(own_daemon, "hit") == 1
    for run in runs:
        assert own_daemon.call("DELETE", f"/jobs/{rows.job_of(run)}").status_code == 409  # the job has ended, so nothing changes
    assert get(own_daemon, path).content == first.content and lookups(own_daemon, "hit") == 2
    rows.db.execute("UPDATE runs SET variant = 'vector' WHERE id = ?", [runs[1]])
    rows.db.commit()
    changed = get(own_daemon, path)
    assert changed.content != first.content and changed.json()["b"]["variant"] == "vector"
    assert own_daemon.get(f"/compare?a={runs[0]}&b=999999").status_code == 404
    assert own_daemon.get(f"/compare?a={runs[0]}&b=999999").status_code == 404
    assert own_daemon.stop() == 0


def test_like_runs_share_a_history(start):
    """All runs with equal parameters share one reply body. A run with other parameters has a different body; a deleted run gets
    404."""
    own_daemon = start()
    rows = Rows(own_daemon)
    alike = [rows.run([], params={"shape": {"n": 7}}, measurements={"time_cold_us_median": i}) for i in range(1, 5)]
    alone = rows.run([], params={"shape": {"n": 8}}, measurements={"time_cold_us_median": 9})
    path = "/history?metric=time_cold_us_median&like="
    before = own_daemon.get(path + str(alike[0]))
    size = int(re.search(r"body_cache_bytes (\d+)", own_daemon.get("/metrics").text)[1])
    for run in alike:
        reply = own_daemon.get(path + str(run))
        assert reply.content == before.content and reply.headers["ETag"] == before.headers["ETag"]
    assert int(re.search(r"body_cache_bytes (\d+)", own_daemon.get("/metrics").text)[1]) == size
    assert [point["value"] for point in before.json()["items"]] == [1, 2, 3, 4]
    assert [point["value"] for point in own_daemon.get(path + str(alone)).json()["items"]] == [9]
    assert [point["value"] for point in own_daemon.get(f"{path}{alike[1]}&limit=1").json()["items"]] == [4]
    (number,) = rows.db.execute("SELECT configuration_id FROM history WHERE run_id = ?", [alone]).fetchone()
    assert number in alike  # a request for the run with this number must not get the cached reply for `alone`
    assert own_daemon.get(path + str(number)).json() == before.json()
    rows.db.execute("PRAGMA foreign_keys = ON")
    rows.db.execute("DELETE FROM jobs WHERE id = ?", [rows.job_of(alike[3])])
    rows.db.commit()
    assert own_daemon.get(path + str(alike[3])).status_code == 404
    assert [point["value"] for point in own_daemon.get(path + str(alike[0])).json()["items"]] == [1, 2, 3]
    assert own_daemon.stop() == 0


def test_changes_by_another_program(start):
    own_daemon = start()
    ids = insert_history(own_daemon.state)
    first = ids["jobs"][0]
    before = {path: get(own_daemon, path) for path in (f"/jobs/{first}/results", "/jobs", "/history?metric=relative_error",
                                                  f"/runs/{ids['run']}/report")}
    with sqlite3.connect(own_daemon.state / "rooflined.db") as db:
        for attempt in range(20):
            db.execute("UPDATE measurements SET value = ? WHERE name = 'relative_error'", [0.5 * attempt])
            db.execute("UPDATE runs SET log = ? WHERE job_id = ?", [str(attempt), first])
            db.commit()
            answer = requests.get(f"{own_daemon.url}/jobs/{first}", timeout=60).json()  # without the check against the contract
            assert answer["runs"][0]["log"] == str(attempt)
            items = get(own_daemon, "/history?metric=relative_error").json()["items"]
            assert {item["value"] for item in items} == {0.5 * attempt}
        db.execute("DELETE FROM jobs WHERE id = ?", [first])
    db.close()
    assert get(own_daemon, f"/jobs/{first}").status_code == 404
    for path in before:
        expected = 404 if f"/jobs/{first}/" in path else 200
        assert get(own_daemon, path, **{"If-None-Match": before[path].headers["ETag"]}).status_code in (expected, 304)
    assert first not in [item["id"] for item in get(own_daemon, "/jobs").json()["items"]]
    assert own_daemon.stop() == 0


def test_a_report_follows_the_ceilings(start):
    """Ceilings that another job measures change the cached report of a run."""
    own_daemon = start()
    run = Rows(own_daemon).run([{"metrics": ncu_raw()}])
    path = f"/runs/{run}/report"
    first = get(own_daemon, path)
    assert get(own_daemon, path).content == first.content
    job_id = own_daemon.submit({"kind": "ceilings", "device": "cpu"})
    own_daemon.wait(job_id)
    assert get(own_daemon, path).status_code == 200 and lookups(own_daemon, "hit") >= 1
    misses = lookups(own_daemon, "miss")
    get(own_daemon, path)
    assert lookups(own_daemon, "miss") == misses
    assert own_daemon.stop() == 0


def test_many_bodies_stay_within_the_bound(daemon, finished):
    with requests.Session() as session:
        for i in range(300):
            assert session.get(f"{daemon.url}/jobs/{finished}/timeline?to={i + 1}").status_code == 200
    assert int(re.search(r"body_cache_bytes (\d+)", daemon.get("/metrics").text)[1]) <= 64 << 20
