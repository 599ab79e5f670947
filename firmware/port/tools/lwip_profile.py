"""Write lwip_profile.h from a profile and the machine's limits.

    lwip_profile.py profiles/tuned.toml machines/an386/machine.toml build/lwip_profile.h

A profile's [options] are lwIP options: integers, or a string of integers, option names and + - * /
(`"6 * TCP_MSS"`). The machine's [limits] are upper bounds in the same notation: an option above
its bound is lowered to it, and what was lowered is printed and readable from Python
(`lwipstats.profile()["scaled"]`).
"""

from __future__ import annotations

import ast
import operator
import sys
import tomllib
from pathlib import Path

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv}


class ProfileError(Exception):
    """What is wrong with the profile, in one line."""


def value_of(text: int | str, options: dict[str, int | str], depth: int = 0) -> int:
    """The integer that an option's text stands for. Raises ProfileError for anything else."""
    if isinstance(text, int):
        return int(text)
    if depth > 10:
        raise ProfileError(f"{text!r} refers to itself")

    def walk(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and node.id in options:
            return value_of(options[node.id], options, depth + 1)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return int(OPERATORS[type(node.op)](walk(node.left), walk(node.right)))
        raise ProfileError(f"cannot read {text!r} (integers, option names and + - * / only)")

    try:
        return walk(ast.parse(text, mode="eval").body)
    except SyntaxError:
        raise ProfileError(f"cannot read {text!r}") from None


def effective(profile: dict, machine: dict) -> tuple[dict[str, int], list[str]]:
    """Options after the machine's limits, and one sentence for each option that was lowered."""
    options = profile.get("options", {})
    values = {name: value_of(text, options) for name, text in options.items()}
    scaled = []
    for name, text in machine.get("limits", {}).items():
        bound = value_of(text, values)
        if name in values and values[name] > bound:
            why = machine.get("why", {}).get(name, "limit of the machine")
            scaled.append(f"{name} {values[name]} -> {bound} ({why})")
            values[name] = bound
    return values, scaled


def header(values: dict[str, int], scaled: list[str], source: str) -> str:
    """The text of lwip_profile.h."""
    lines = [f"// Generated from {source}; do not edit."]
    lines += [f"#define {name} ({value})" for name, value in values.items()]
    lines.append("#define PORT_LWIP_SCALED " + " ".join(f'"{text}",' for text in scaled))
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    profile_path, machine_path, out = (Path(a) for a in argv)
    try:
        profile, machine = (tomllib.loads(p.read_text()) for p in (profile_path, machine_path))
        values, scaled = effective(profile, machine)
    except (OSError, tomllib.TOMLDecodeError, ProfileError) as error:
        print(f"lwip_profile: {profile_path.name}: {error}", file=sys.stderr)
        return 1
    for text in scaled:
        print(f"{profile_path.stem}: {text}")
    text = header(values, scaled, profile_path.name)
    if not out.exists() or out.read_text() != text:
        out.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
