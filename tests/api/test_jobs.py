"""The life of a job: accepted, listed, replayed, cancelled, refused when there is no room."""

import contextlib
import sqlite3
import threading

import pytest
from daemon import FINAL, endless, job


def test_accepted(daemon):
    response = daemon.call("POST", "/jobs", job())
    body = response.json()
    assert response.status_code == 202
    assert response.headers["Location"] == body["links"]["self"] == f"/jobs/{body['id']}"
    assert body["state"] == "queued"
    assert "Idempotent-Replayed" not in response.headers
    done = daemon.wait(body["id"])
    assert done["state"] == "completed" and done["problem"] is None
    # Defaults are filled in beside what was asked.
    assert done["request"]["batch_size"] == 64 and done["request"]["max_images"] == 640
    assert done["created_at"] <= done["started_at"] <= done["finished_at"]
    for name, path in body["links"].items():
        if name != "events":
            assert daemon.get(path).status_code == 200, name


def test_on_disk_before_the_answer(daemon):
    number = daemon.submit(endless())
    with sqlite3.connect(f"file:{daemon.state}/rooflined.db?mode=ro", uri=True) as database:
        assert database.execute("SELECT count(*) FROM jobs WHERE id = ?", (number,)).fetchone() == (1,)
    daemon.cancel_all()


def test_pages(start):
    other = start()
    numbers = [other.submit(endless()) for _ in range(7)]
    walked, path = [], "/jobs?limit=3"
    while path is not None:
        page = other.get(path).json()
        assert len(page["items"]) <= 3
        walked += [item["id"] for item in page["items"]]
        path = f"/jobs?limit=3&cursor={page['next_cursor']}" if page["next_cursor"] else None
        if len(walked) == 3:
            other.submit(endless())  # what comes meanwhile neither shifts nor repeats anything
    assert walked == sorted(numbers, reverse=True)
    assert other.get("/jobs?limit=8").json()["next_cursor"] is None  # a full last page has no next one
    other.wait(numbers[0], states=("running",))
    running = other.get("/jobs?state=running").json()["items"]
    assert [item["id"] for item in running] == numbers[:1]
    assert len(other.get("/jobs?state=queued&kind=train&device=cpu").json()["items"]) == 7
    assert other.get("/jobs?device=gpu0").json()["items"] == []
    assert other.get("/jobs?kind=other").json()["items"] == []
    assert other.get("/jobs?state=completed").json()["items"] == []
    other.cancel_all()
    assert len(other.get("/jobs?state=cancelled").json()["items"]) == 8
    assert other.stop() == 0


def test_idempotency(daemon):
    headers = {"Idempotency-Key": "test-1"}
    body = b'{"kind":"train","device":"cpu","dataset":"files","max_images":640,"epochs":1,"warmup_epochs":0}'
    first = daemon.call("POST", "/jobs", body, headers=headers)
    again = daemon.call("POST", "/jobs", body, headers=headers)
    assert (first.status_code, again.status_code) == (202, 202)
    assert "Idempotent-Replayed" not in first.headers and again.headers["Idempotent-Replayed"] == "true"
    assert first.json()["id"] == again.json()["id"] and first.headers["Location"] == again.headers["Location"]
    other = daemon.call("POST", "/jobs", body.replace(b"640", b"704"), headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    daemon.wait(first.json()["id"])
    late = daemon.call("POST", "/jobs", body, headers=headers)
    assert late.json()["id"] == first.json()["id"] and late.json()["state"] == "completed"
    fresh = daemon.call("POST", "/jobs", body, headers={"Idempotency-Key": "test-2"})
    assert fresh.json()["id"] != first.json()["id"]
    daemon.wait(fresh.json()["id"])


def test_one_job_from_many_at_once(daemon):
    numbers, headers = [], {"Idempotency-Key": "herd"}

    def submit():
        import requests
        answer = requests.post(daemon.url + "/jobs", json=job(), headers=headers, timeout=60)
        numbers.append((answer.status_code, answer.json().get("id")))

    herd = [threading.Thread(target=submit) for _ in range(12)]
    for thread in herd:
        thread.start()
    for thread in herd:
        thread.join()
    assert len(numbers) == 12 and len(set(numbers)) == 1 and numbers[0][0] == 202
    daemon.wait(numbers[0][1])


@pytest.mark.parametrize("key", ["", "a" * 129, "with space", "\u00e4".encode("latin-1")])
def test_bad_keys(daemon, key):
    response = daemon.call("POST", "/jobs", job(), headers={"Idempotency-Key": key})
    assert (response.status_code, response.json()["parameter"]) == (400, "Idempotency-Key")


def test_cancel(daemon):
    running, queued = daemon.submit(endless()), daemon.submit(endless())
    daemon.wait(running, states=("running",))
    for number in (queued, running):
        response = daemon.call("DELETE", f"/jobs/{number}")
        assert (response.status_code, response.json()["state"]) == (202, "cancelled")
        assert daemon.wait(number)["state"] == "cancelled"
        again = daemon.call("DELETE", f"/jobs/{number}")
        assert (again.status_code, again.json()["code"]) == (409, "job_finished")
    # the device is free again
    assert daemon.wait(daemon.submit(job()))["state"] == "completed"


def test_queue_full(start):
    other = start("--queue-limit", "2")
    numbers = [other.submit(endless())]
    other.wait(numbers[0], states=("running",))
    while len(numbers) < 6:
        response = other.call("POST", "/jobs", endless())
        if response.status_code == 429:
            break
        numbers.append(response.json()["id"])
    assert response.status_code == 429 and response.json()["code"] == "queue_full"
    assert int(response.headers["Retry-After"]) > 0
    assert len(numbers) in (2, 3)  # two wait, beside the one that runs
    other.call("DELETE", f"/jobs/{numbers[-1]}")
    numbers.append(other.submit(endless()))
    other.cancel_all()
    assert other.stop() == 0


def test_no_device(start, tmp_path):
    other = start("--workers", str(tmp_path))
    response = other.call("POST", "/jobs", job(device="", engine="auto"))
    assert (response.status_code, response.json()["code"]) == (503, "unavailable")
    assert int(response.headers["Retry-After"]) > 0
    ready = other.get("/readyz")
    assert (ready.status_code, ready.json()["code"]) == (503, "unavailable")
    assert other.get("/healthz").status_code == 200
    assert other.get("/jobs").json()["items"] == []
    assert other.stop() == 0


def test_a_database_that_another_program_holds_is_said_and_outlived(daemon):
    with contextlib.closing(sqlite3.connect(daemon.state / "rooflined.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        response = daemon.call("POST", "/jobs", job())
        assert (response.status_code, response.json()["code"]) == (503, "unavailable")
        assert "another program holds the database locked: end it" in response.json()["detail"]
        assert int(response.headers["Retry-After"]) > 0
        assert daemon.get("/jobs").status_code == 200
    daemon.run(job())


def test_survives_a_restart(start):
    first = start()
    number = first.submit(job(), headers={"Idempotency-Key": "k"})
    first.wait(number)
    waiting = first.submit(endless())
    first.wait(waiting, states=("running",))
    assert first.stop() == 0
    second = start(state=first.state)
    assert second.get(f"/jobs/{number}").json()["state"] == "completed"
    assert second.get(f"/jobs/{waiting}").json()["state"] not in FINAL
    again = second.call("POST", "/jobs", job(), headers={"Idempotency-Key": "k"})
    assert again.json()["id"] == number and again.headers["Idempotent-Replayed"] == "true"
    second.cancel_all()
    assert second.stop() == 0
