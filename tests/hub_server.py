"""A model hub on loopback: what huggingface_hub asks for to publish a folder and to load it again."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

TOKEN = "hf_" + "w" * 34
Files = dict[str, bytes]


@dataclass
class Repo:
    """A repository: the files of each commit, and the commit of each branch."""

    private: bool = False
    commits: dict[str, Files] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)

    def commit(self, branch: str, files: Files) -> str:
        oid = hashlib.sha1(repr((len(self.commits), sorted(files))).encode()).hexdigest()
        self.commits[oid] = files
        self.branches[branch] = oid
        return oid

    def at(self, revision: str) -> tuple[str, Files] | None:
        oid = self.branches.get(revision, revision)
        return (oid, self.commits[oid]) if oid in self.commits else None


class Refused(Exception):
    """An answer other than 200: status, the hub's code for it, and its words."""

    def __init__(self, status: int, code: str, words: str = "") -> None:
        self.status, self.code, self.words = status, code, words or code


class HubServer:
    """As a context: serving.

    Attributes:
        who: what whoami answers; None refuses the token.
        repos: by name.
        uploads: requests that brought content, in order: a hash's upload, or a commit.
        broken: paths (as patterns) that are answered with status 500.
    """

    def __init__(self) -> None:
        self.who: dict[str, Any] | None = {
            "name": "me",
            "type": "user",
            "orgs": [{"name": "org", "roleInOrg": "write"}, {"name": "reading", "roleInOrg": "read"}],
            "auth": {"accessToken": {"role": "write"}},
        }
        self.repos: dict[str, Repo] = {}
        self.blobs: dict[str, bytes] = {}
        self.uploads: list[str] = []
        self.broken = ""
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers: dict[str, str] = {}
                try:
                    status, content = 200, server.answer(self.command, self.path, self.headers, body, headers)
                except Refused as refused:
                    status, content = refused.status, json.dumps({"error": refused.words}).encode()
                    headers = {"X-Error-Code": refused.code, "X-Error-Message": refused.words}
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_POST = do_PUT = handle_any

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def add(self, name: str, folder: Path) -> str:
        """A repository with the files of a folder; its commit."""
        repo = self.repos.setdefault(name, Repo())
        return repo.commit("main", {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()})

    def answer(self, method: str, path: str, headers: Any, body: bytes, out: dict[str, str]) -> bytes:
        """The content of an answer; its headers are put into ``out``."""
        path = unquote(urlsplit(path).path)
        if self.broken and re.search(self.broken, path):
            raise Refused(500, "ServerError", "the hub has a bad day")
        known = headers.get("Authorization") == f"Bearer {TOKEN}" and self.who is not None
        for pattern, verb, serve in self.routes():
            if verb == method and (match := re.fullmatch(pattern, path)):
                if (verb == "POST" or "whoami" in path) and not known:  # an address to upload to needs no token
                    raise Refused(401, "Unauthorized", "Invalid credentials")
                found = serve(body, **match.groupdict())
                return found if isinstance(found, bytes) else json.dumps(found).encode()
        if match := re.fullmatch(r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)", path):
            return self.resolve(match["repo"], match["revision"], match["file"], known, out)
        raise Refused(404, "NotFound", f"{method} {path}")

    def routes(self) -> list[tuple[str, str, Callable[..., Any]]]:
        model = r"/api/models/(?P<repo>[^/]+/[^/]+)"
        return [
            ("/api/whoami-v2", "GET", lambda _: self.who),
            ("/api/validate-yaml", "POST", self.validate),
            ("/api/repos/create", "POST", self.create),
            (model, "GET", self.info),
            (rf"{model}/revision/(?P<revision>.+)", "GET", self.info),
            (rf"{model}/tree/(?P<revision>[^/]+)", "GET", self.tree),
            (rf"{model}/branch/(?P<branch>.+)", "POST", self.branch),
            (rf"{model}/preupload/(?P<revision>.+)", "POST", self.preupload),
            (rf"{model}/commit/(?P<revision>.+)", "POST", self.commit),
            (r"/(?P<repo>[^/]+/[^/]+)\.git/info/lfs/objects/batch", "POST", self.batch),
            (r"/lfs/(?P<oid>\w+)", "PUT", self.put),
        ]

    def repo(self, name: str, revision: str = "main") -> tuple[Repo, str, Files]:
        if name not in self.repos:
            raise Refused(404, "RepoNotFound")
        found = self.repos[name].at(revision)
        if found is None:
            raise Refused(404, "RevisionNotFound")
        return self.repos[name], *found

    def validate(self, body: bytes) -> dict[str, Any]:
        head = yaml.safe_load(json.loads(body)["content"].split("---\n")[1])
        wrong = [f'"{key}" is required' for key in ("model-index", "library_name") if key not in head]
        if wrong:
            raise Refused(400, "BadRequest", ", ".join(wrong))
        return {"errors": [], "warnings": []}

    def create(self, body: bytes) -> dict[str, Any]:
        asked = json.loads(body)
        name = f"{asked.get('organization') or 'me'}/{asked['name']}"
        if name in self.repos:
            raise Refused(409, "Conflict", "You already created this model repo")
        private = bool(asked.get("private")) or asked.get("visibility") == "private"
        self.repos[name] = Repo(private)
        self.repos[name].commit("main", {".gitattributes": b"*.safetensors filter=lfs\n"})
        return {"url": f"{self.url}/{name}", "name": name, "id": name}

    def info(self, _: bytes, repo: str, revision: str = "main") -> dict[str, Any]:
        found, oid, files = self.repo(repo, revision)
        head = files.get("README.md", b"").decode().split("---\n")
        return {
            "id": repo,
            "sha": oid,
            "private": found.private,
            "siblings": [{"rfilename": name} for name in files],
            "cardData": yaml.safe_load(head[1]) if len(head) > 2 else {},
        }

    def tree(self, _: bytes, repo: str, revision: str) -> list[dict[str, Any]]:
        files = self.repo(repo, revision)[2]
        return [
            {"type": "file", "path": name, "size": len(content), "oid": git_oid(content)}
            for name, content in files.items()
        ]

    def branch(self, _: bytes, repo: str, branch: str) -> dict[str, Any]:
        found, oid, _files = self.repo(repo)
        if branch in found.branches:
            raise Refused(409, "Conflict", "Reference already exists")
        found.branches[branch] = oid
        return {}

    def preupload(self, body: bytes, repo: str, revision: str) -> dict[str, Any]:
        there = self.repo(repo, revision)[2]
        files = []
        for one in json.loads(body)["files"]:
            large = one["path"].endswith((".safetensors", ".png"))
            content = there.get(one["path"])
            oid = None if content is None else hashlib.sha256(content).hexdigest() if large else git_oid(content)
            mode = "lfs" if large else "regular"
            files.append({"path": one["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return {"files": files}

    def batch(self, body: bytes, repo: str) -> dict[str, Any]:
        objects = []
        for one in json.loads(body)["objects"]:
            upload = {"upload": {"href": f"{self.url}/lfs/{one['oid']}"}}
            objects.append({**one, **({} if one["oid"] in self.blobs else {"actions": upload})})
        return {"transfer": "basic", "objects": objects}

    def put(self, body: bytes, oid: str) -> dict[str, Any]:
        assert hashlib.sha256(body).hexdigest() == oid
        self.blobs[oid] = body
        self.uploads.append(f"lfs/{oid}")
        return {}

    def commit(self, body: bytes, repo: str, revision: str) -> dict[str, Any]:
        found, _, files = self.repo(repo, revision)
        files = dict(files)
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.blobs[value["oid"]]
        oid = found.commit(revision, files)
        self.uploads.append(f"commit/{oid}")
        return {"commitUrl": f"{self.url}/{repo}/commit/{oid}", "commitOid": oid, "success": True}

    def resolve(self, repo: str, revision: str, file: str, known: bool, out: dict[str, str]) -> bytes:
        found, oid, files = self.repo(repo, revision)
        if found.private and not known:
            raise Refused(401, "RepoNotFound")
        if file not in files:
            out["X-Repo-Commit"] = oid
            raise Refused(404, "EntryNotFound")
        out |= {"X-Repo-Commit": oid, "ETag": f'"{git_oid(files[file])}"', "Content-Type": "application/octet-stream"}
        return files[file]

    def __enter__(self) -> HubServer:
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.shutdown()
        self.http.server_close()


def git_oid(content: bytes) -> str:
    """git's name of a file."""
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
