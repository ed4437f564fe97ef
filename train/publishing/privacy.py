"""What must not be published: paths and names of this machine, tokens, links to private runs, weights that run code."""

from __future__ import annotations

import contextlib
import getpass
import json
import netrc
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import get_token
from safetensors import SafetensorError, safe_open

# Weights in formats that pickle, or that loaders of safetensors never read.
WEIGHTS = re.compile(
    r".*\.(bin|pt|pth|ckpt|pkl|pickle|joblib|h5|hdf5|msgpack|npz|npy|gguf|ggml|onnx|pdparams)", re.IGNORECASE
)
PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")  # a torch file, or a bare pickle
BINARY = (".png", ".jpg", ".model", ".spm")
# Any word may be in a vocabulary: of these only what is surely private is looked for.
VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "merges.txt", "added_tokens.json")

ROOTS = re.compile(
    "home|Users|root|tmp|var|mnt|media|data|opt|srv|work|workspaces?|scratch|usr|etc|private|Volumes|nfs|gpfs|lustre"
    "|projects?|content|kaggle|dbfs|storage|export|net|proj|local|cluster|shared|fsx|efs"
)
PATH = re.compile(r"(?<![\w.~/<\\@-])/(?P<root>[A-Za-z][\w.-]*)(?:/[\w.@+=-]+)+")
# Windows' paths, whose backslashes JSON doubles: else "A:\n" of a chat template would look like one.
OTHER_PATHS = re.compile(
    r"file:/{2,3}\S+|(?<![\w.~/\\@-])~/[\w.-]+(?:/[\w.-]+)*"
    r"|\b[A-Za-z]:\\{1,2}(?:Users|Windows|Program Files|[\w.-]+\\\\)[^\s\"']*"
)
TOKEN = re.compile(
    r"hf_[A-Za-z0-9]{20,}|api_org_[A-Za-z0-9]{20,}|sk-[\w-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{20,}"
    r"|glpat-[\w-]{15,}|AKIA[A-Z0-9]{16}|xox[abprs]-[\w-]{10,}|wandb_v1_\w{20,}|AIza[\w-]{30,}|Bearer [\w.~+/-]{20,}"
)
RUN_URL = re.compile(
    r"(?:https?://)?(?:[\w-]+\.)*(?:wandb\.ai|comet\.(?:com|ml)|neptune\.ai|clear\.ml)/[^\s\"'<>)]+"
    r"|https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|10\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|172\.(?:1[6-9]|2\d|3[01])\.\d+\.\d+"
    r"|[\w.-]+\.(?:local|internal|lan|corp))(?::\d+)?[^\s\"'<>)]*"
)
# Accounts that many machines have: they tell nothing of a person.
COMMON_ACCOUNTS = re.compile(
    "root|users?|admin|administrator|ubuntu|debian|centos|fedora|ec2-user|azureuser|runner|jovyan|docker|vagrant"
    "|nobody|app|home|node|git|coder|codespace|gitpod|sagemaker-user|test|guest|default"
)
SECRET_NAMES = re.compile(r"(TOKEN|API_?KEY|SECRET|PASSWORD)$", re.IGNORECASE)
SHORTEST_SECRET = 12


@dataclass(frozen=True)
class Private:
    """What is private of this machine and its user; ``allowed`` texts may be published all the same."""

    users: frozenset[str] = frozenset()
    home: str = ""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fault:
    """Something that must not be published: where (a file, with a line where it has lines), and what."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def private_here(allowed: Sequence[str] = ()) -> Private:
    """What is private here: the account's names, its home, the tokens of its environment and its files."""
    home = str(Path.home())
    names = {os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER", "USERNAME")} | {Path(home).name}
    with contextlib.suppress(OSError, KeyError):  # a container's user without an entry in the password file
        names.add(getpass.getuser())
    users = {name for name in names if len(name) > 2 and not COMMON_ACCOUNTS.fullmatch(name.lower())}
    secrets = {value for name, value in os.environ.items() if SECRET_NAMES.search(name)} | {get_token() or ""}
    secrets |= _netrc_passwords()
    return Private(
        frozenset(users), home, frozenset(value for value in secrets if len(value) >= SHORTEST_SECRET), tuple(allowed)
    )


def _netrc_passwords() -> set[str]:
    try:
        return {entry[2] or "" for entry in netrc.netrc(os.environ.get("NETRC")).hosts.values()}
    except (OSError, netrc.NetrcParseError):
        return set()


def faults(files: Mapping[str, Path | bytes], private: Private) -> list[Fault]:
    """Everything in the files that must not be published.

    Args:
        files: name in the repository -> the file, or its content.
    """
    return [fault for name, file in files.items() for fault in _of_file(name, file, private)]


def _of_file(name: str, file: Path | bytes, private: Private) -> Iterator[Fault]:
    suffix = Path(name).suffix.lower()
    if WEIGHTS.fullmatch(name):
        yield Fault(name, f"weights as {suffix}; publish safetensors alone (save_pretrained writes them)")
    elif suffix == ".safetensors":
        yield from _of_weights(name, file, private)
    else:
        content = file if isinstance(file, bytes) else file.read_bytes()
        if suffix in BINARY:
            yield from _surely_private(name, content.decode("latin-1"), private)
        elif content.startswith(PICKLES):
            yield Fault(name, "a pickle or archive, which can run code when loaded; publish safetensors alone")
        else:
            yield from _of_text(name, content, private)


def _of_weights(name: str, file: Path | bytes, private: Private) -> Iterator[Fault]:
    """The header of a safetensors file; its numbers tell nothing."""
    assert isinstance(file, Path)
    try:
        with safe_open(file, framework="numpy") as weights:
            header = json.dumps(weights.metadata() or {})
    except (SafetensorError, OSError) as error:
        yield Fault(name, f"no safetensors in it ({error}); write it again")
        return
    yield from _of_line(f"{name}: header", header, private)


def _of_text(name: str, content: bytes, private: Private) -> Iterator[Fault]:
    text = content.decode("utf-8", errors="replace")
    look = _surely_private if Path(name).name in VOCABULARIES else _of_line
    for number, line in enumerate(text.splitlines(), 1):
        yield from look(f"{name}:{number}", line, private)


def _of_line(where: str, line: str, private: Private) -> Iterator[Fault]:
    for allowed in private.allowed:
        line = line.replace(allowed, "")
    yield from _surely_private(where, line, private)
    paths = [match[0] for match in PATH.finditer(line) if _is_root(match["root"])]
    for path in [*paths, *(match[0] for match in OTHER_PATHS.finditer(line))]:
        yield Fault(where, f"the absolute path {path!r}; write a name that means something elsewhere")
    for url in RUN_URL.finditer(line):
        yield Fault(where, f"the address {url[0]!r} of a run or of a machine of yours; take it out")
    for user in sorted(private.users):
        if re.search(rf"(?<![\w-]){re.escape(user)}(?![\w-])", line):
            yield Fault(where, f"the name of your account, {user!r}; take it out, or say --allow {user}")


def _is_root(name: str) -> bool:
    """Whether a path that begins with this folder is one of a machine: a usual one, or there is such a folder here."""
    return ROOTS.fullmatch(name) is not None or Path("/", name).is_dir()


def _surely_private(where: str, text: str, private: Private) -> Iterator[Fault]:
    found = {match[0] for match in TOKEN.finditer(text)} | {secret for secret in private.secrets if secret in text}
    for secret in sorted(found):
        yield Fault(where, f"a token ({secret[:6]}...); take it out, and revoke it if the file was ever shared")
    if private.home.count("/") > 1 and private.home in text:
        yield Fault(where, f"your home folder {private.home!r}; take it out")
