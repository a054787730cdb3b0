"""Jobs are accepted, listed in pages, replayed for a repeated idempotency key, cancelled, and refused when the queue is full."""

import contextlib
import sqlite3
import threading
import urllib.parse

import pytest
from daemon import FINAL, endless, job


def test_a_submitted_job_is_accepted_and_completes(daemon):
    response = daemon.call("POST", "/jobs", job())
    body = response.json()
    assert response.status_code == 202
    assert response.headers["Location"] == body["links"]["self"] == f"/jobs/{body['id']}"
    assert body["state"] == "queued"
    assert "Idempotent-Replayed" not in response.headers
    ended_job = daemon.wait(body["id"])
    assert ended_job["state"] == "completed" and ended_job["problem"] is None
    # The stored request has the requested values and the defaults of all other fields.
    assert ended_job["request"]["batch_size"] == 64 and ended_job["request"]["max_images"] == 640
    assert ended_job["created_at"] <= ended_job["started_at"] <= ended_job["finished_at"]
    for name, path in body["links"].items():
        if name != "events":
            assert daemon.get(path).status_code == 200, name


def test_a_job_is_committed_before_the_response(daemon):
    job_id = daemon.submit(endless())
    with sqlite3.connect(f"file:{daemon.state}/rooflined.db?mode=ro", uri=True) as database:
        assert database.execute("SELECT count(*) FROM jobs WHERE id = ?", (job_id,)).fetchone() == (1,)
    daemon.cancel_all()


def test_pages_list_every_job_once(start):
    own_daemon = start()
    job_ids = [own_daemon.submit(endless()) for _ in range(7)]
    listed_ids, path = [], "/jobs?limit=3"
    while path is not None:
        page = own_daemon.get(path).json()
        assert len(page["items"]) <= 3
        listed_ids += [item["id"] for item in page["items"]]
        path = f"/jobs?limit=3&cursor={page['next_cursor']}" if page["next_cursor"] else None
        if len(listed_ids) == 3:
            own_daemon.submit(endless())  # a job that is submitted between two pages neither shifts nor repeats items
    assert listed_ids == sorted(job_ids, reverse=True)
    assert own_daemon.get("/jobs?limit=8").json()["next_cursor"] is None  # no page follows a full last page
    own_daemon.wait(job_ids[0], states=("running",))
    running = own_daemon.get("/jobs?state=running").json()["items"]
    assert [item["id"] for item in running] == job_ids[:1]
    assert len(own_daemon.get("/jobs?state=queued&kind=train&device=cpu").json()["items"]) == 7
    assert own_daemon.get("/jobs?device=gpu0").json()["items"] == []
    assert own_daemon.get("/jobs?kind=other").json()["items"] == []
    assert own_daemon.get("/jobs?state=completed").json()["items"] == []
    own_daemon.cancel_all()
    assert len(own_daemon.get("/jobs?state=cancelled").json()["items"]) == 8
    assert own_daemon.stop() == 0


def test_jobs_are_found_by_name_and_tags(start):
    own_daemon = start()
    named = own_daemon.submit({**job(), "name": "Größe 50% of_all", "tags": ["night", "v2.1"]})
    kernel = own_daemon.submit({"kind": "kernel", "kernel": "softmax", "shape": {"rows": 3, "columns": 5}, "samples": 2})
    for job_id in (named, kernel):
        own_daemon.wait(job_id)
    first, second = own_daemon.get("/jobs").json()["items"]
    assert (second["name"], second["tags"]) == ("Größe 50% of_all", ["night", "v2.1"])
    assert second["parameters"]["max_images"] == 640 and second["engine"] is not None
    assert (first["name"], first["tags"], first["parameters"], first["entry"]) == (None, [], None, None)
    for text, found in [("NIGHT", [named]), ("50%", [named]), ("5_%", []), ("Größe", [named]), ("softmax", [kernel]),
                        ("kind", [kernel, named]), ("o'clock", [])]:
        items = own_daemon.get("/jobs?search=" + urllib.parse.quote(text)).json()["items"]
        assert [item["id"] for item in items] == found, text
    items = own_daemon.get("/jobs?search=kind&kind=train&device=cpu&state=completed").json()["items"]
    assert [item["id"] for item in items] == [named]
    assert own_daemon.get("/devices").json()["job_devices"] == ["cpu"]


@pytest.mark.parametrize(("field", "value", "pointer"), [
    ("name", "x" * 81, "/name"), ("name", 7, "/name"), ("tags", ["a b"], "/tags/0"), ("tags", "night", "/tags"),
    ("tags", ["a", "a"], "/tags/1")])
def test_bad_names_and_tags_are_refused(daemon, field, value, pointer):
    answer = daemon.call("POST", "/jobs", {**job(), field: value})
    assert (answer.status_code, answer.json()["code"], answer.json()["pointer"]) == (400, "invalid_field", pointer)


def test_labels_can_be_changed_in_every_state(start):
    own_daemon = start()
    ended = own_daemon.submit({**job(), "name": "first", "tags": ["old"]})
    own_daemon.wait(ended)
    own_daemon.get("/jobs")  # cached replies must change too
    before = own_daemon.get(f"/jobs/{ended}").json()
    changed = own_daemon.call("PATCH", f"/jobs/{ended}", {"name": "zweite Größe", "tags": ["fp32-only", "v2"]})
    assert changed.status_code == 200 and changed.json()["request"]["name"] == "zweite Größe"
    assert changed.json() == own_daemon.get(f"/jobs/{ended}").json() != before
    item, = own_daemon.get("/jobs").json()["items"]
    assert (item["name"], item["tags"]) == ("zweite Größe", ["fp32-only", "v2"])
    assert [item["id"] for item in own_daemon.get("/jobs?search=fp32-only").json()["items"]] == [ended]
    assert own_daemon.get("/jobs?search=first").json()["items"] == []
    for patch, labels in [({"tags": []}, ("zweite Größe", [])), ({"name": None}, (None, [])), ({"tags": ["a"]}, (None, ["a"])),
                          ({"tags": None, "name": "x"}, ("x", []))]:
        assert own_daemon.call("PATCH", f"/jobs/{ended}", patch).status_code == 200
        item, = own_daemon.get("/jobs").json()["items"]
        assert (item["name"], item["tags"]) == labels, patch
    first, second = own_daemon.submit(endless()), own_daemon.submit({**job(), "name": "waits"})
    own_daemon.wait(first, states=("running",))
    for job_id in (first, second):
        assert own_daemon.call("PATCH", f"/jobs/{job_id}", {"name": f"job {job_id}"}).json()["request"]["name"] == f"job {job_id}"
    assert [item["name"] for item in own_daemon.get("/jobs").json()["items"]] == [f"job {second}", f"job {first}", "x"]
    own_daemon.cancel_all()
    assert {item["name"] for item in own_daemon.get("/jobs?state=cancelled").json()["items"]} == {f"job {second}", f"job {first}"}
    runs = own_daemon.get(f"/jobs/{ended}/results").json()["runs"]
    assert own_daemon.get(f"/history?metric=epoch_ms_median&like={runs[0]['run']}").json()["items"]


@pytest.mark.parametrize(("body", "pointer"), [
    ({}, "/name"), ({"name": "x" * 81}, "/name"), ({"tags": ["a b"]}, "/tags/0"), ({"tags": ["a", "a"]}, "/tags/1"),
    ({"name": "x", "device": "cpu"}, "/device"), ({"tags": [None]}, "/tags/0"), ({"name": ["x"]}, "/name"),
    ({"name": "  "}, "/name"), ({"name": "\u00a0\u3000"}, "/name")])
def test_bad_labels_change_nothing(daemon, body, pointer):
    job_id = daemon.submit({**job(), "name": "stays", "tags": ["too"]})
    answer = daemon.call("PATCH", f"/jobs/{job_id}", body)
    assert (answer.status_code, answer.json()["code"], answer.json()["pointer"]) == (400, "invalid_field", pointer)
    request = daemon.get(f"/jobs/{job_id}").json()["request"]
    assert (request["name"], request["tags"]) == ("stays", ["too"])
    daemon.call("DELETE", f"/jobs/{job_id}")


def test_invalid_label_requests_are_refused(daemon):
    answer = daemon.call("PATCH", "/jobs/999999", {"name": "x"})
    assert (answer.status_code, answer.json()["detail"]) == (404, "Job 999999 not found.")
    for body in (b"{", b"[]", b""):
        assert daemon.call("PATCH", "/jobs/1", body).json()["code"] == "bad_json"


def test_a_repeated_key_replays_the_job(daemon):
    headers = {"Idempotency-Key": "test-1"}
    body = b'{"kind":"train","device":"cpu","dataset":"files","max_images":640,"epochs":1,"warmup_epochs":0}'
    first = daemon.call("POST", "/jobs", body, headers=headers)
    repeated = daemon.call("POST", "/jobs", body, headers=headers)
    assert (first.status_code, repeated.status_code) == (202, 202)
    assert "Idempotent-Replayed" not in first.headers and repeated.headers["Idempotent-Replayed"] == "true"
    assert first.json()["id"] == repeated.json()["id"] and first.headers["Location"] == repeated.headers["Location"]
    mismatch = daemon.call("POST", "/jobs", body.replace(b"640", b"704"), headers=headers)
    assert (mismatch.status_code, mismatch.json()["code"]) == (422, "idempotency_mismatch")
    daemon.wait(first.json()["id"])
    late = daemon.call("POST", "/jobs", body, headers=headers)
    assert late.json()["id"] == first.json()["id"] and late.json()["state"] == "completed"
    fresh = daemon.call("POST", "/jobs", body, headers={"Idempotency-Key": "test-2"})
    assert fresh.json()["id"] != first.json()["id"]
    daemon.wait(fresh.json()["id"])


def test_concurrent_posts_with_one_key_create_one_job(daemon):
    responses, headers = [], {"Idempotency-Key": "concurrent"}

    def submit():
        import requests
        response = requests.post(daemon.url + "/jobs", json=job(), headers=headers, timeout=60)
        responses.append((response.status_code, response.json().get("id")))

    threads = [threading.Thread(target=submit) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(responses) == 12 and len(set(responses)) == 1 and responses[0][0] == 202
    daemon.wait(responses[0][1])


@pytest.mark.parametrize("key", ["", "a" * 129, "with space", "\u00e4".encode("latin-1")])
def test_bad_idempotency_keys_are_refused(daemon, key):
    response = daemon.call("POST", "/jobs", job(), headers={"Idempotency-Key": key})
    assert (response.status_code, response.json()["parameter"]) == (400, "Idempotency-Key")


def test_queued_and_running_jobs_are_cancelled(daemon):
    running, queued = daemon.submit(endless()), daemon.submit(endless())
    daemon.wait(running, states=("running",))
    for job_id in (queued, running):
        response = daemon.call("DELETE", f"/jobs/{job_id}")
        assert (response.status_code, response.json()["state"]) == (202, "cancelled")
        assert daemon.wait(job_id)["state"] == "cancelled"
        repeated = daemon.call("DELETE", f"/jobs/{job_id}")
        assert (repeated.status_code, repeated.json()["code"]) == (409, "job_finished")
    # the device is free again
    assert daemon.wait(daemon.submit(job()))["state"] == "completed"


def test_a_full_queue_refuses_jobs(start):
    own_daemon = start("--queue-limit", "2")
    job_ids = [own_daemon.submit(endless())]
    own_daemon.wait(job_ids[0], states=("running",))
    while len(job_ids) < 6:
        response = own_daemon.call("POST", "/jobs", endless())
        if response.status_code == 429:
            break
        job_ids.append(response.json()["id"])
    assert response.status_code == 429 and response.json()["code"] == "queue_full"
    assert int(response.headers["Retry-After"]) > 0
    assert len(job_ids) in (2, 3)  # at most the running job and two queued ones
    own_daemon.call("DELETE", f"/jobs/{job_ids[-1]}")
    job_ids.append(own_daemon.submit(endless()))
    own_daemon.cancel_all()
    assert own_daemon.stop() == 0


def test_a_daemon_without_devices_is_not_ready(start, tmp_path):
    own_daemon = start("--workers", str(tmp_path))
    response = own_daemon.call("POST", "/jobs", job(device="", engine="auto"))
    assert (response.status_code, response.json()["code"]) == (503, "unavailable")
    assert int(response.headers["Retry-After"]) > 0
    ready = own_daemon.get("/readyz")
    assert (ready.status_code, ready.json()["code"]) == (503, "unavailable")
    assert own_daemon.get("/healthz").status_code == 200
    assert own_daemon.get("/jobs").json()["items"] == []
    assert own_daemon.stop() == 0


def test_a_locked_database_is_reported_and_does_not_stop_the_daemon(daemon):
    with contextlib.closing(sqlite3.connect(daemon.state / "rooflined.db")) as connection:
        connection.execute("BEGIN IMMEDIATE")
        response = daemon.call("POST", "/jobs", job())
        assert (response.status_code, response.json()["code"]) == (503, "storage_locked")
        assert "another program holds the database locked: end it" in response.json()["detail"]
        assert int(response.headers["Retry-After"]) > 0
        assert daemon.get("/jobs").status_code == 200
    daemon.run(job())


def test_jobs_survive_a_restart(start):
    first = start()
    job_id = first.submit(job(), headers={"Idempotency-Key": "k"})
    first.wait(job_id)
    interrupted = first.submit(endless())
    first.wait(interrupted, states=("running",))
    assert first.stop() == 0
    second = start(state=first.state)
    assert second.get(f"/jobs/{job_id}").json()["state"] == "completed"
    assert second.get(f"/jobs/{interrupted}").json()["state"] not in FINAL
    repeated = second.call("POST", "/jobs", job(), headers={"Idempotency-Key": "k"})
    assert repeated.json()["id"] == job_id and repeated.headers["Idempotent-Replayed"] == "true"
    second.cancel_all()
    assert second.stop() == 0
