"""JSON Schemas of results.json and records.jsonl for those who read them with other tools.

`python -m upyperf.report.schema docs/schema` writes them again after a change of the models.
"""

import json
import sys
from pathlib import Path
from typing import Any

from upyperf import events, records

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """The schemas by file name."""
    return {
        "results.schema.json": {
            "$schema": _DRAFT,
            **records.schema(),
            "title": "upyperf results.json",
        },
        "records.schema.json": {
            "$schema": _DRAFT,
            **events.event_schema(),
            "title": "One line of upyperf's records.jsonl",
        },
    }


def render(schema: dict[str, Any]) -> str:
    """A schema as the text of its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main(folder: Path) -> None:
    """Write all schemas into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (folder / name).write_text(render(schema), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/schema"))
