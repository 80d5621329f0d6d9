/* Opens and closes the boxes of a drawing. A level is {w, h, items, edges}; an item with `inner` is a box. An open
   box is as large as what is in it: along each axis the plane is stretched where the box stands, as much as the most
   demanding box there asks for, so that order and crossings stay as they were laid out. */
function flambeauBoxes(id, root, HEAD, MARGIN) {
  var SVG = "http://www.w3.org/2000/svg", svg = document.getElementById(id);
  if (!svg || svg.dataset.opens) return;
  svg.dataset.opens = "yes";

  function make(name, attributes, parent) {
    var made = document.createElementNS(SVG, name);
    for (var key in attributes) made.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(made);
    return made;
  }

  /* a monotone map of one axis: pieces [from, to, factor], identity elsewhere */
  function stretch(wishes) {
    var cuts = [];
    wishes.forEach(function (wish) { cuts.push(wish[0], wish[1]); });
    cuts = cuts.sort(function (a, b) { return a - b; }).filter(function (cut, i) { return !i || cut > cuts[i - 1]; });
    var pieces = [];
    for (var i = 0; i + 1 < cuts.length; i++) {
      var middle = (cuts[i] + cuts[i + 1]) / 2, factor = 1;
      wishes.forEach(function (wish) {
        if (wish[0] < middle && middle < wish[1]) factor = Math.max(factor, wish[2] / (wish[1] - wish[0]));
      });
      pieces.push([cuts[i], cuts[i + 1], factor]);
    }
    return function (x) {
      var shift = 0;
      pieces.forEach(function (piece) {
        shift += (piece[2] - 1) * (Math.max(piece[0], Math.min(x, piece[1])) - piece[0]);
      });
      return x + shift;
    };
  }

  /* how large a level is, and where things on it go, with some of its boxes open */
  function arrange(level) {
    var across = [], along = [];
    level.items.forEach(function (item) {
      if (!item.open) return;
      arrange(item.inner);
      across.push([item.x, item.x + item.w, Math.max(item.w, item.inner.size[0])]);
      along.push([item.y, item.y + item.h, Math.max(item.h, item.inner.size[1] + HEAD)]);
    });
    level.fx = stretch(across);
    level.fy = stretch(along);
    level.size = [level.fx(level.w), level.fy(level.h)];
  }

  function curve(level, points) {
    var path = "", x, y;
    points.forEach(function (point, i) {
      var u = level.fx(point[0]), v = level.fy(point[1]), middle = level.upright ? (y + v) / 2 : (x + u) / 2;
      if (!i) path = "M" + u + " " + v;
      else if (level.upright) path += "C" + [x, middle, u, middle, u, v].join(" ");
      else path += "C" + [middle, y, middle, v, u, v].join(" ");
      x = u; y = v;
    });
    return path;
  }

  function words(lines, x, y, parent, kind) {
    lines.forEach(function (line, i) {
      make("text", {x: x, y: y + 12.2 * (i - (lines.length - 1) / 2), "class": kind || "label"}, parent).textContent = line;
    });
  }

  function draw(level, parent) {
    level.edges.forEach(function (edge) {
      var group = make("g", {"class": "edge"}, parent), looks = {d: curve(level, edge.points)};
      if (edge.dotted) looks["stroke-dasharray"] = "1.5 3";
      if (!edge.headless) looks["marker-end"] = "url(#" + id + "-head)";
      make("title", {}, group).textContent = edge.tail + "->" + edge.head;
      make("path", looks, group);
    });
    level.items.forEach(function (item) {
      var x0 = level.fx(item.x), x1 = level.fx(item.x + item.w), y0 = level.fy(item.y), y1 = level.fy(item.y + item.h);
      var w = item.open ? x1 - x0 : item.w, h = item.open ? y1 - y0 : item.h;
      var x = (x0 + x1 - w) / 2, y = (y0 + y1 - h) / 2;
      var group = make("g", {"class": item.inner ? "node box" : item.port ? "node port" : "node", "data-key": item.key},
        parent);
      make("title", {}, group).textContent = item.tip || item.key;
      make("rect", {x: x, y: y, width: w, height: h, fill: item.fill || "lightgrey",
        "fill-opacity": item.open ? .45 : 1}, group);
      if (!item.open) words(item.lines, x + w / 2, y + h / 2, group);
      if (!item.inner) return;
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      group.setAttribute("aria-expanded", String(!!item.open));
      if (item.open) {
        words(["▾ " + item.title], x + 8, y + HEAD / 2 + 2, group, "title");
        var inside = make("g", {transform: "translate(" + (x + (w - item.inner.size[0]) / 2) + " " + (y + HEAD) + ")"},
          group);
        draw(item.inner, inside);
      }
      function turn(event) {
        event.stopPropagation();
        event.preventDefault();
        item.open = !item.open;
        redraw(item.key);
      }
      group.addEventListener("click", turn);
      group.addEventListener("keydown", function (event) {
        if (event.key === "Enter" || event.key === " ") turn(event);
      });
    });
  }

  function redraw(focus) {
    arrange(root);
    var w = root.size[0], h = root.size[1], old = svg.querySelector("g.graph"), fresh = make("g", {"class": "graph"});
    draw(root, fresh);
    old.parentNode.replaceChild(fresh, old);
    svg.setAttribute("viewBox", "0 0 " + w + " " + h);
    svg.setAttribute("width", w + "pt");
    svg.setAttribute("height", h + "pt");
    if (!focus) return;
    Array.prototype.forEach.call(fresh.querySelectorAll("[data-key]"), function (group) {
      if (group.dataset.key === focus) group.focus();
    });
  }
  redraw();
}
