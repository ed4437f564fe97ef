"""What a server's reply is made of, held against its form: servers that call themselves OpenAI-compatible send much."""

from __future__ import annotations

import json

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from models import json_text


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Function(_Part):
    name: str = ""
    arguments: str = ""


class Call(_Part):
    id: str | None = None
    type: str | None = "function"
    function: Function | None = None


class Said(_Part):
    """A turn; what was reasoned before it is called so by some servers, and so by others."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[Call] | None = None

    @property
    def thought(self) -> str:
        return self.reasoning_content or self.reasoning or ""


class Choice(_Part):
    message: Said
    finish_reason: str | None = None


class PromptDetails(_Part):
    cached_tokens: int | None = None


class Usage(_Part):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: PromptDetails | None = None


class ServedReply(_Part):
    """A chat completion, as much of it as is read here. ``usage`` is None where nobody counted."""

    choices: list[Choice] = Field(min_length=1)
    usage: Usage | None = None


def read_reply(text: str) -> ServedReply:
    """A chat completion from the body of a server's reply. Raises ValueError that says what is wrong with it."""
    try:
        found = json_text.loads(text)
    except json_text.TooDeep as error:
        raise ValueError(f"{error}: {text[:100]!r}") from None
    except ValueError:
        raise ValueError(f"no JSON: {text[:100]!r}") from None
    try:
        return ServedReply.model_validate_json(json.dumps(found, ensure_ascii=False))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(map(str, fault["loc"]))
        told = f"{where}: {fault['msg']}" if where else fault["msg"]
        raise ValueError(f"{told}: {text[:100]!r}") from None
