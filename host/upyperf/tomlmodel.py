"""TOML file -> pydantic model, with every mistake named at once, each by its key."""

from __future__ import annotations

import difflib
import tomllib
import typing
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from upyperf.errors import UpyperfError

M = TypeVar("M", bound=BaseModel)


class Table(BaseModel):
    """Base of what a TOML file says: an unknown key is a mistake."""

    model_config = ConfigDict(extra="forbid")


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file. Raises UpyperfError of kind config."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UpyperfError("config", f"{path}: not TOML: {error}") from None
    except UnicodeDecodeError as error:
        raise UpyperfError("config", f"{path}: not UTF-8: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise UpyperfError("config", f"{path}: {error.strerror}") from None


def load(model: type[M], fields: dict[str, Any], where: str | Path) -> M:
    """The validated model. Raises UpyperfError of kind config that names every mistake."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        problems = "; ".join(_problem(model, item) for item in error.errors())
        raise UpyperfError("config", f"{where}: {problems}") from None


def _problem(model: type[BaseModel], item: Any) -> str:
    loc = item["loc"]
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")
    if item["type"] == "extra_forbidden":
        known = _keys_at(model, loc[:-1])
        near = difflib.get_close_matches(str(loc[-1]), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(sorted(known))}"
        return f"{key}: unknown key ({hint})"
    if item["type"] == "missing":
        return f"{key}: missing"
    text = str(item["msg"]).removeprefix("Value error, ")
    shown = repr(item.get("input"))
    if not key:
        return text
    if item["type"] == "value_error":
        return f"{key}: {text}"
    return f"{key}: {text[:1].lower()}{text[1:]}, not {shown if len(shown) <= 60 else shown[:57] + '...'}"


def _keys_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    current: Any = model
    for part in loc:
        if isinstance(part, int):
            continue
        field = current.model_fields.get(part) if _is_model(current) else None
        current = _inner_model(field.annotation) if field is not None else None
    if not _is_model(current):
        return []
    return [name for name, field in current.model_fields.items() if not field.exclude]


def _is_model(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, BaseModel)


def _inner_model(annotation: Any) -> Any:
    if _is_model(annotation):
        return annotation
    for part in typing.get_args(annotation):
        found = _inner_model(part)
        if found is not None:
            return found
    return None
