"""A matplotlib figure as SVG for inlining in an HTML page.

Text stays text, colours become CSS variables (so that light, dark and print take their own), ids get
a prefix (several figures share one page), and the figure says what it shows to a screen reader.
"""

import io
import re
import xml.etree.ElementTree as ET
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from upyperf.report.clean import one_line

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"

# Colours that no reader ever sees: each stands for a CSS variable of the page.
COLOURS = {
    "fg": "#010203",
    "muted": "#010204",
    "grid": "#010205",
    "board": "#010206",
    "peer": "#010207",
    "bound": "#010208",
    "bad": "#010209",
    "shade": "#01020a",
}
"""Names for use in a figure, with the placeholder to hand to matplotlib."""

RC: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "upyperf",  # the same figure gives the same file
    "text.parse_math": False,  # a "$" in a name is a "$"
    "font.family": "sans-serif",
    "font.size": 10.0,
    "figure.facecolor": "none",  # the page's own ground shows, light or dark
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.edgecolor": COLOURS["muted"],
    "axes.labelcolor": COLOURS["muted"],
    "axes.titlecolor": COLOURS["fg"],
    "xtick.color": COLOURS["muted"],
    "ytick.color": COLOURS["muted"],
    "text.color": COLOURS["fg"],
    "grid.color": COLOURS["grid"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "path.simplify": True,
}
"""matplotlib settings under which every figure of a report is drawn."""


def inline(figure: Figure, prefix: str, title: str, description: str, css_class: str = "") -> str:
    """The figure as one `<svg>` element.

    `prefix` must be unique on the page; title and description are read out by screen readers.
    """
    buffer = io.StringIO()
    canvas: Any = FigureCanvasSVG(figure)
    with mpl.rc_context(RC):
        canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    root = ET.fromstring(buffer.getvalue())
    for metadata in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(metadata)
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if name == "id":
                element.set(name, prefix + value)
            elif name == f"{{{_XLINK}}}href" and value.startswith("#"):
                element.set(name, "#" + prefix + value[1:])
            elif "url(#" in value:
                element.set(name, value.replace("url(#", "url(#" + prefix))
    head = ET.Element(f"{{{_SVG}}}title", {"id": prefix + "title"})
    head.text = one_line(title)
    body = ET.Element(f"{{{_SVG}}}desc", {"id": prefix + "desc"})
    body.text = one_line(description)
    root.insert(0, head)
    root.insert(1, body)
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}title {prefix}desc")
    # The view box alone, so that the page decides the size.
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    if css_class:
        root.set("class", css_class)
    text = ET.tostring(root, encoding="unicode")
    for name, colour in COLOURS.items():
        text = text.replace(colour, f"var(--{name})")
    # matplotlib's own font list says nothing to a browser; the page's font is inherited.
    return re.sub(r"font: (\d+(?:\.\d+)?)px [^;\"]*", r"font-size: \1px", text)
