"""Checks every request and response of the suite against schema/openapi.json."""

import json
import re
from urllib.parse import parse_qsl, urlsplit

from jsonschema import Draft202012Validator, FormatChecker, RefResolver

FORMATS = FormatChecker(())
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z")


@FORMATS.checks("date-time")
def is_instant(value):
    return not isinstance(value, str) or INSTANT.fullmatch(value) is not None


class Contract:
    """Checks requests and responses against an OpenAPI document, and records which parts of it the tests exercised."""

    def __init__(self, document):
        self.document = document
        self.resolver = RefResolver("", document)
        self.seen = set()  # (operationId, status) of all responses
        self.problem_codes = set()  # of all problem documents
        self.operations = []  # (method, pattern of the path, operation)
        for path, methods in document["paths"].items():
            # {file} may have slashes; {name} is the name of a suite; every other parameter is a number
            patterns = {"file": ".*", "name": "[a-z0-9][a-z0-9_-]{0,63}"}
            pattern = re.sub(r"\\{(\w+)\\}", lambda name: patterns.get(name[1], r"\d+"), re.escape(path))
            for method, operation in methods.items():
                self.operations.append((method.upper(), re.compile(pattern), operation))

    def resolve(self, node):
        return self.resolver.resolve(node["$ref"])[1] if "$ref" in node else node

    def errors(self, schema, value):
        """Returns a message for each violation of the schema by the value."""
        validator = Draft202012Validator(schema, resolver=self.resolver, format_checker=FORMATS)
        return [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(value)]

    def operation(self, method, path):
        """Returns the documented operation of a request; None if the document has none."""
        method = "GET" if method == "HEAD" else method
        for known, pattern, operation in self.operations:
            if known == method and pattern.fullmatch(path):
                return operation
        return None

    def check(self, method, url, body, response):
        parts = urlsplit(url)
        operation = self.operation(method, parts.path)
        where = f"{method} {parts.path}?{parts.query} -> {response.status_code}"
        if response.status_code >= 400:
            self.check_problem(where, response, method)
        if operation is None:
            assert response.status_code in (204, 404, 405, 403, 421), where
            return
        name, status = operation["operationId"], str(response.status_code)
        self.seen.add((name, status))
        assert status in operation["responses"] or response.status_code >= 400, f"{where} is not documented"
        documented = self.resolve(operation["responses"].get(status, operation["responses"]["default"]))
        if response.status_code < 400:
            self.check_request(where, operation, parts, body)
            for header in documented.get("headers", {}):
                optional = header in ("Idempotent-Replayed", "ETag")
                assert optional or header in response.headers, f"{where} lacks {header}"
        self.check_body(where, documented, response, method)

    def check_problem(self, where, response, method):
        assert response.headers["Content-Type"] == "application/problem+json", where
        if method == "HEAD":
            return
        problem = response.json()
        errors = self.errors({"$ref": "#/components/schemas/Problem"}, problem)
        assert not errors, f"{where}: {errors}"
        assert problem["status"] == response.status_code, where
        assert problem["type"] == "urn:rooflined:problem:" + problem["code"], where
        self.problem_codes.add(problem["code"])

    def check_request(self, where, operation, parts, body):
        """Checks that the document allows a request that the daemon accepted."""
        parameters = [self.resolve(parameter) for parameter in operation.get("parameters", [])]
        allowed = {parameter["name"]: parameter["schema"] for parameter in parameters if parameter["in"] == "query"}
        for name, text in parse_qsl(parts.query, keep_blank_values=True):
            if operation["operationId"] == "getFile":  # the page's scripts read the query
                continue
            assert name in allowed, f"{where}: {name} is not documented"
            value = int(text) if allowed[name]["type"] == "integer" else text
            errors = self.errors(allowed[name], value)
            assert not errors, f"{where}: {errors}"
        content = operation.get("requestBody", {"content": {}})["content"]
        if "application/json" in content:
            schema = content["application/json"]["schema"]
            errors = self.errors(schema, json.loads(body))
            assert not errors, f"{where}: the daemon accepted a body that the document forbids: {errors}"

    def check_body(self, where, documented, response, method):
        content = documented.get("content", {})
        if not content:
            assert response.content == b"", f"{where} has a body"
            return
        media_type = response.headers["Content-Type"].split(";")[0]
        assert media_type in content, f"{where}: {media_type} is not documented"
        if method == "HEAD" or media_type == "text/event-stream" or "schema" not in content[media_type]:
            return
        text = response.content.decode()  # response.text would guess the encoding
        value = json.loads(text) if media_type.endswith("json") else text
        errors = self.errors(content[media_type]["schema"], value)
        assert not errors, f"{where}: {errors}"

    def check_event(self, path, event_type, data):
        operation = self.operation("GET", path)
        schemas = operation["responses"]["200"]["content"]["text/event-stream"]["x-events"]
        assert event_type in schemas, f"event {event_type} is not documented"
        errors = self.errors(schemas[event_type], data)
        assert not errors, f"event {event_type}: {errors}"

    def never_seen(self):
        """Returns the documented (operation, status) pairs that no test exercised."""
        documented = {
            (operation["operationId"], status)
            for _, _, operation in self.operations
            for status in operation["responses"]
            if status != "default"
        }
        return documented - self.seen

    def write_coverage(self, path):
        """Writes what the tests of this process exercised, for the process that checks the coverage of the whole suite."""
        path.write_text(json.dumps({"seen": sorted(self.seen), "problem_codes": sorted(self.problem_codes)}))

    def add_coverage(self, path):
        coverage = json.loads(path.read_text())
        self.seen |= {tuple(pair) for pair in coverage["seen"]}
        self.problem_codes |= set(coverage["problem_codes"])
