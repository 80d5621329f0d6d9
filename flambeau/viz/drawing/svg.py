"""SVG drawings of pictures and collapsed graphs, without Graphviz and matplotlib.

The content of each box is laid out in advance. When a script opens a box, the drawing around it is stretched along and
across the ranks, so the order of boxes and the crossings do not change. Without scripts all boxes are closed.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from ..graph.collapse import Grouping
from ..graph.groups import Group, Item
from ..graph.saved_memory import format_bytes
from .layered import CIRCLE, Layout, label_lines, lay_out, routes_of
from .picture import Picture
from .text import heading
from .x11 import colour_of

POINTS = 72  # to an inch
MARGIN = 8.0  # points around a drawing
HEAD = 18.0  # points of an open box's title
_RULES = (
    "text{font:10px monospace;fill:black;text-anchor:middle;dominant-baseline:central}",
    ".node>rect{stroke:black;stroke-width:.8}",
    ".node>ellipse{stroke:black;stroke-width:.8}",
    ".edge>path{stroke:black;stroke-width:.8;fill:none}",
    ".box>rect{stroke-width:1.4;rx:5px}",
    ".box:focus>rect{stroke-width:2.4}",
    ".box{cursor:pointer;outline:none}",
    ".box>text.title{text-anchor:start;font-weight:bold}",
    ".port>rect{stroke:none;fill:none}",
)
_next_drawing = count(1).__next__

Point = tuple[float, float]
Scene = dict[str, Any]


def svg_of_picture(picture: Picture) -> str:
    """A picture as an SVG document, in the structure of Graphviz's: a group with a title for each node and edge.

    >>> from flambeau.viz.drawing.svg import svg_of_picture
    >>> from flambeau.viz.drawing.picture import Arrow, Box, Picture
    >>> drawn = svg_of_picture(Picture(pieces=[Box("a", "x", "orange"), Box("b", "y"), Arrow("a", "b")]))
    >>> "<title>a-&gt;b</title>" in drawn, 'fill="orange"' in drawn
    (True, True)
    """
    scene = _scene_of_picture(picture)
    return _document(scene, picture.round, f"g{_next_drawing()}")


def svg_of(boxes: Grouping) -> str:
    """A collapsed graph as an SVG document with the script that opens and closes its boxes."""
    scene = _scene_of_level(boxes, None)
    name = f"g{_next_drawing()}"
    return _document(scene, False, name, f"<script>//<![CDATA[\n{_script(scene, name)}\n//]]></script>"
                     if _has_boxes(scene) else "")


def html_of(boxes: Grouping) -> str:
    """A collapsed graph as an HTML element."""
    scene = _scene_of_level(boxes, None)
    name = f"g{_next_drawing()}"
    script = f"<script>\n{_script(scene, name)}\n</script>" if _has_boxes(scene) else ""
    caption = html.escape(heading(boxes.graph))
    note = " Click a box to open it; click its title to close it." if _has_boxes(scene) else ""
    return (f'<figure style="margin:0;overflow:auto">{_document(scene, False, name)}'
            f'<figcaption style="font:smaller sans-serif;opacity:.7">{caption}.{note}</figcaption>{script}</figure>')


# ----- scenes: plain data, in points, with the origin at the top left -----

def _scene_of_picture(picture: Picture) -> Scene:
    layout = lay_out(picture)
    extents = {key: (_at(layout, picture, key), _extent(layout, picture, key)) for key in layout.across}
    boxes = {box.key: box for box in picture.boxes()}
    left = min((x - w / 2 for (x, _), (w, _) in extents.values()), default=0.0) - MARGIN
    top = min((y - h / 2 for (_, y), (_, h) in extents.values()), default=0.0) - MARGIN
    right = max((x + w / 2 for (x, _), (w, _) in extents.values()), default=0.0) + MARGIN
    low = max((y + h / 2 for (_, y), (_, h) in extents.values()), default=0.0) + MARGIN
    items = []
    for key, box in boxes.items():
        (x, y), (w, h) = extents[key]
        items.append({"key": key, "x": x - w / 2 - left, "y": y - h / 2 - top, "w": w, "h": h,
                      "lines": label_lines(box.label), "fill": colour_of(box.colour), "tip": "", "inner": None})
    edges = [{"tail": arrow.tail, "head": arrow.head, "dotted": arrow.dotted, "headless": arrow.headless,
              "points": [(x * POINTS - left, y * POINTS - top) for x, y in points]}
             for arrow, points in routes_of(layout, picture)]
    return {"w": right - left, "h": low - top, "items": items, "edges": edges, "upright": picture.direction == "TB",
            "round": picture.round}


def _at(layout: Layout, picture: Picture, key: str) -> Point:
    x, y = layout.point(picture, key)
    return x * POINTS, y * POINTS


def _extent(layout: Layout, picture: Picture, key: str) -> Point:
    across, along = layout.size[key]
    w, h = (across, along) if picture.direction == "TB" else (along, across)
    return w * POINTS, h * POINTS


def _scene_of_level(boxes: Grouping, group: Group | None) -> Scene:
    scene = _scene_of_picture(boxes.picture(group))
    by_key: dict[str, Item] = {boxes.key(item): item for item in boxes.level(group).items}
    ports = dict(boxes.level(group).ports)
    for shown in scene["items"]:
        item = by_key.get(shown["key"])
        if item is None:
            if shown["key"] in ports:
                port = shown["key"]
                shown["tip"] = f"{'from' if port.startswith('in') else 'to'} {ports[port]}"
                shown["port"] = True
            continue
        shown["tip"] = tip(item)
        if isinstance(item, Group):
            shown["inner"] = _scene_of_level(boxes, item)
            shown["title"] = boxes.name(item)
    return scene


def tip(item: Item) -> str:
    """The tooltip of an item."""
    if isinstance(item, Group):
        saved_text = f", {format_bytes(item.bytes)} kept" if item.bytes else ""
        more = f"; the newest of {item.count} repetitions is inside" if item.count > 1 else ""
        return f"{len(list(item.nodes()))} nodes{saved_text}{more}"
    lines = [item.formula] if item.formula and not item.is_leaf else []
    if item.source is not None:
        lines.append(f"{item.source[0]}:{item.source[1]}  {item.source[2]}")
    if item.module:
        lines.append(f"in {item.module}")
    lines += [f"keeps {saved.name} {saved.shape or ''} {saved.dtype}, {format_bytes(saved.bytes)}"
             + (f" (counted with {saved.shared})" if saved.shared else "") for saved in item.saved]
    if item.freed:
        lines.append("freed by backward")
    return "\n".join(lines)


def _has_boxes(scene: Scene) -> bool:
    return any(item["inner"] for item in scene["items"])


# ----- SVG -----

def _document(scene: Scene, round_: bool, name: str, script: str = "") -> str:
    width, height = _r(scene["w"]), _r(scene["h"])
    style = "".join(f"#{name} {rule}" for rule in _RULES)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" id="{name}" width="{width}pt" height="{height}pt" '
            f'viewBox="0 0 {width} {height}" role="img"><style>{style}</style>'
            f'<defs><marker id="{name}-head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 1.5L10 5L0 8.5z"/></marker></defs>'
            f'<rect class="ground" width="100%" height="100%" fill="white"/>{_level(scene, name)}{script}</svg>')


def _level(scene: Scene, name: str) -> str:
    """Edges below nodes, each in a group with a title."""
    parts = ['<g class="graph">']
    for edge in scene["edges"]:
        looks = (' stroke-dasharray="1.5 3"' if edge["dotted"] else "") + (
            "" if edge["headless"] else f' marker-end="url(#{name}-head)"')
        title = html.escape(f"{edge['tail']}->{edge['head']}")
        parts.append(f'<g class="edge"><title>{title}</title><path d="{path_of(edge["points"], scene)}"{looks}/></g>')
    for item in scene["items"]:
        parts.append(_node(item, scene["round"]))
    return "".join([*parts, "</g>"])


def _node(item: Scene, round_: bool) -> str:
    kind = "node box" if item["inner"] else "node port" if item.get("port") else "node"
    x, y, w, h = item["x"], item["y"], item["w"], item["h"]
    if round_:
        shape = (f'<ellipse cx="{_r(x + w / 2)}" cy="{_r(y + h / 2)}" rx="{_r(w / 2)}" ry="{_r(h / 2)}" '
                 f'fill="{item["fill"] or "white"}"/>')
    else:
        shape = (f'<rect x="{_r(x)}" y="{_r(y)}" width="{_r(w)}" height="{_r(h)}" '
                 f'fill="{item["fill"] or "lightgrey"}"/>')
    step = 12.2
    first = y + h / 2 - step * (len(item["lines"]) - 1) / 2
    text = "".join(f'<text x="{_r(x + w / 2)}" y="{_r(first + step * number)}">{_text(line)}</text>'
                   for number, line in enumerate(item["lines"]))
    tip = f"<desc>{html.escape(item['tip'])}</desc>" if item["tip"] else ""
    focus = ' tabindex="0" role="button"' if item["inner"] else ""
    return (f'<g class="{kind}" data-key="{html.escape(item["key"])}"{focus}><title>{html.escape(item["key"])}</title>'
            f"{tip}{shape}{text}</g>")


def _text(line: str) -> str:
    """A line of a label; subscripts as shifted text spans."""
    if line.startswith("$") and line.endswith("$"):
        line = html.escape(line[1:-1])
        return re.sub(r"_\{(.*?)\}", r'<tspan dy="3" font-size="7px">\1</tspan><tspan dy="-3">&#8203;</tspan>', line)
    return html.escape(line).replace("  ", " \u00a0")


def path_of(points: Sequence[Point], scene: Scene) -> str:
    """A curve through the points, perpendicular to the ranks; a straight line between circles."""
    (x, y), *rest = points
    drawn = [f"M{_r(x)} {_r(y)}"]
    for u, v in rest:
        if scene["round"] and len(points) == 2:
            drawn.append(f"L{_r(u)} {_r(v)}")
        elif scene["upright"]:
            drawn.append(f"C{_r(x)} {_r((y + v) / 2)} {_r(u)} {_r((y + v) / 2)} {_r(u)} {_r(v)}")
        else:
            drawn.append(f"C{_r((x + u) / 2)} {_r(y)} {_r((x + u) / 2)} {_r(v)} {_r(u)} {_r(v)}")
        x, y = u, v
    return "".join(drawn)


def _r(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _script(scene: Scene, name: str) -> str:
    source = (Path(__file__).parent / "boxes.js").read_text(encoding="utf-8")
    data = json.dumps(_rounded(scene), separators=(",", ":")).replace("</", "<\\/").replace("]]>", "]]\\u003e")
    return f"{source}\nflambeauBoxes({json.dumps(name)},{data},{HEAD},{MARGIN});"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 1)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return value


__all__ = ["CIRCLE", "html_of", "path_of", "svg_of", "svg_of_picture", "tip"]
