// Drawing a scene on a canvas: what is in sight only, and only as finely as it can be seen.

const SANS = 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", sans-serif';
const FONT_TITLE = `600 13px ${SANS}`, FONT_SMALL = `11px ${SANS}`, FONT_TINY = `10px ${SANS}`, FONT_BAR = `600 12px ${SANS}`;
const READABLE = 0.6, PLAIN = 0.2; // scales: below the first, titles only; below the second, coloured bars only
const FAMILIES = ["leaf", "elementwise", "linear", "view", "op", "custom"];
const FAMILY_WORDS = { leaf: "leaf", elementwise: "elementwise", linear: "linear", view: "view", op: "other operator",
                       custom: "custom function" };

function readPalette() {
  const style = getComputedStyle(document.documentElement), value = (name) => style.getPropertyValue(name).trim();
  const palette = {};
  for (const name of ["ground", "card", "ink", "muted", "faint", "line", "edge", "accent", "forward", "backward", "added", "gone",
                      "group", "group-line", "dim"]) palette[name] = value(`--${name}`);
  for (const name of FAMILIES) { palette[name] = value(`--${name}`); palette[`${name}-soft`] = value(`--${name}-soft`); }
  return palette;
}

class Camera {
  constructor() { this.scale = 1; this.x = 0; this.y = 0; this.width = 1; this.height = 1; }
  toScene(px, py) { return [(px - this.x) / this.scale, (py - this.y) / this.scale]; }
  toScreen(x, y) { return [x * this.scale + this.x, y * this.scale + this.y]; }
  view() { const [l, u] = this.toScene(0, 0), [r, b] = this.toScene(this.width, this.height); return [l, u, r, b]; }
  zoomAt(px, py, factor, least, most = 4) {
    const scale = Math.min(most, Math.max(least, this.scale * factor)), real = scale / this.scale;
    this.x = px - (px - this.x) * real;
    this.y = py - (py - this.y) * real;
    this.scale = scale;
  }
  fitting(scene, margin = 40) {
    const wide = Math.max(1, this.width - 2 * margin), high = Math.max(1, this.height - 2 * margin);
    const scale = Math.min(1.25, wide / Math.max(1, scene.width), high / Math.max(1, scene.height));
    return { scale, x: (this.width - scene.width * scale) / 2, y: (this.height - scene.height * scale) / 2 };
  }
}

function roundRect(pen, x, y, w, h, r) {
  pen.beginPath();
  pen.roundRect(x, y, w, h, Math.min(r, w / 2, h / 2));
}

function tracedLine(pen, line) {
  const p = line.points;
  pen.moveTo(p[0], p[1]);
  if (p[p.length - 1] < p[1] && p.length === 4) { // against the flow: round the side
    const side = Math.max(line.from.w, line.to.w) / 2 + 36, out = Math.max(p[0], p[2]) + side;
    pen.bezierCurveTo(p[0], p[1] + 60, out, p[1] + 60, out, (p[1] + p[3]) / 2);
    pen.bezierCurveTo(out, p[3] - 60, p[2], p[3] - 60, p[2], p[3]);
    return;
  }
  for (let k = 2; k < p.length; k += 2) {
    const mid = (p[k - 1] + p[k + 1]) / 2;
    if (p[k] === p[k - 2]) pen.lineTo(p[k], p[k + 1]);
    else pen.bezierCurveTo(p[k - 2], mid, p[k], mid, p[k], p[k + 1]);
  }
}

function arrowHead(pen, line) {
  const p = line.points, x = p[p.length - 2], y = p[p.length - 1];
  pen.moveTo(x, y);
  pen.lineTo(x - 3.6, y - 7);
  pen.lineTo(x + 3.6, y - 7);
  pen.closePath();
}

class Drawing {
  constructor(canvas, camera) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.camera = camera;
    this.palette = readPalette();
    this.scene = null;
    this.drawn = { boxes: 0, lines: 0 };
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas, ratio = window.devicePixelRatio || 1;
    this.ratio = ratio;
    this.canvas.width = Math.max(1, Math.round(clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(clientHeight * ratio));
    this.camera.width = clientWidth;
    this.camera.height = clientHeight;
  }

  // look: { selected, hovered, matches (Set of nodes, or null), stateOf(node), current (event or null), tween }
  draw(look) {
    const { pen, camera, palette, scene, ratio } = this, scale = camera.scale;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = palette.ground;
    pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
    if (!scene) return;
    pen.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * camera.x, ratio * camera.y);
    const seen = scene.near(...camera.view());
    this.drawn = { boxes: seen.boxes.length, lines: seen.lines.length };
    for (const box of seen.boxes) if (box.type === "open") this.openGroup(box, look, scale);
    pen.globalAlpha = look.tween < 1 ? look.tween ** 2 : 1;
    this.lines(seen.lines, look, scale);
    pen.globalAlpha = 1;
    if (scale < PLAIN) this.plainBoxes(seen.boxes, look, scale);
    else for (const box of seen.boxes) if (box.type !== "open") this.card(box, look, scale);
    this.marks(seen.boxes, look, scale);
  }

  openGroup(box, look, scale) {
    const { pen, palette } = this, left = box.x - box.w / 2, top = box.y - box.h / 2;
    if (box.w * scale < 3) return;
    roundRect(pen, left, top, box.w, box.h, 12);
    pen.fillStyle = palette.group;
    pen.fill();
    pen.lineWidth = Math.max(1, 0.75 / scale);
    pen.strokeStyle = box === look.hovered ? palette.muted : palette["group-line"];
    pen.stroke();
    const size = Math.min(34, Math.max(12, 11 / scale));
    if (size > BAR + 8 || scale < PLAIN * 0.6) return;
    pen.font = size <= 13 ? FONT_BAR : FONT_BAR.replace("12px", `${size.toFixed(0)}px`);
    pen.fillStyle = palette.muted;
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    const width = textWidth(`▾ ${box.title}`, FONT_BAR) * size / 12, letters = Math.floor(box.title.length * (box.w - 24) / width);
    if (letters > 4 || width < box.w - 20) {
      pen.fillText(`▾ ${width < box.w - 20 ? box.title : clipped(box.title, letters - 2)}`, left + 12, top + BAR / 2 + 3);
    }
  }

  lines(lines, look, scale) {
    const { pen, palette } = this;
    if (scale < PLAIN) { // hairlines, straight; of very many only as much as shows
      const width = 1 / scale, many = lines.length > 2500, least = many ? 2.2 / scale : 0;
      pen.lineWidth = many ? width * 0.6 : width * 0.8;
      pen.strokeStyle = palette.edge;
      pen.beginPath();
      for (const line of lines) {
        const p = line.points, last = p.length;
        if (line.straight && many) continue;
        if (Math.abs(p[0] - p[last - 2]) + Math.abs(p[1] - p[last - 1]) < least) continue;
        pen.moveTo(p[0], p[1]);
        if (!many) for (let k = 2; k < last; k += 2) pen.lineTo(p[k], p[k + 1]);
        else pen.lineTo(p[last - 2], p[last - 1]);
      }
      pen.stroke();
    } else {
      const dim = (line) => look.matches && !(line.from.members.some((n) => look.matches.has(n)) &&
                                              line.to.members.some((n) => look.matches.has(n)));
      const ways = { calm: [], far: [], gone: [] };
      // of straight lines across the whole drawing, those whose ends are out of sight say nothing here
      const [l, u, r, b] = this.camera.view(), inSight = (x, y) => x >= l && x <= r && y >= u && y <= b;
      const there = (line) => !line.straight || inSight(line.points[0], line.points[1]) || inSight(line.points.at(-2), line.points.at(-1));
      for (const line of lines) if (there(line)) ways[line.ghost ? "gone" : line.long || dim(line) ? "far" : "calm"].push(line);
      for (const [way, list] of Object.entries(ways)) {
        if (!list.length) continue;
        pen.strokeStyle = way === "gone" ? palette.gone : way === "far" ? palette.line : palette.edge;
        pen.setLineDash(way === "gone" ? [4, 4] : []);
        pen.lineWidth = 1.3;
        pen.beginPath();
        for (const line of list) tracedLine(pen, line);
        pen.stroke();
        if (scale > 0.3) {
          pen.fillStyle = pen.strokeStyle;
          pen.beginPath();
          for (const line of list) arrowHead(pen, line);
          pen.fill();
        }
      }
      pen.setLineDash([]);
    }
    this.litLines(look, scale);
  }

  // Lines of the selected box, and those along which the current event moves.
  litLines(look, scale) {
    const { pen, palette } = this, lit = [];
    if (look.selected && look.selected.linesIn) {
      for (const line of [...look.selected.linesIn, ...look.selected.linesOut]) lit.push([line, palette.accent, 2]);
    }
    if (look.current) {
      const box = this.scene.boxOfNode.get(look.current.node);
      const forward = look.current.code === FORWARD;
      if (box && look.current.code !== FREE) {
        for (const line of forward ? box.linesIn : box.linesOut) {
          lit.push([line, forward ? palette.forward : palette.backward, 2.6]);
        }
      }
    }
    for (const [line, colour, width] of lit) {
      pen.strokeStyle = pen.fillStyle = colour;
      pen.lineWidth = Math.max(width, 1.4 / scale);
      pen.beginPath();
      tracedLine(pen, line);
      pen.stroke();
      pen.beginPath();
      arrowHead(pen, line);
      pen.fill();
    }
  }

  plainBoxes(boxes, look, scale) {
    const { pen, palette } = this, byColour = new Map();
    const least = 1.6 / scale;
    for (const box of boxes) {
      if (box.type === "open") continue;
      let colour = box.type === "closed" ? palette.muted : palette[box.family];
      if (box.ghost) colour = palette.gone;
      else if (box.isNew) colour = palette.added;
      else if (look.matches && !box.members.some((n) => look.matches.has(n))) colour = palette.dim;
      else if (look.stateOf) {
        const state = this.stateOfBox(box, look);
        if (!state.done) colour = palette.dim;
        else if (state.adjoint) colour = palette.backward;
      }
      (byColour.get(colour) || byColour.set(colour, []).get(colour)).push(box);
    }
    for (const [colour, list] of byColour) {
      pen.fillStyle = colour;
      for (const box of list) {
        const w = Math.max(least, box.w), h = Math.max(least, box.h);
        pen.fillRect(box.x - w / 2, box.y - h / 2, w, h);
      }
    }
  }

  stateOfBox(box, look) {
    if (box.type === "node") return look.stateOf(box.node);
    const all = { done: true, adjoint: true, freed: true, some: false };
    for (const node of box.members) {
      const state = look.stateOf(node);
      all.done &&= state.done; all.adjoint &&= state.adjoint; all.freed &&= state.freed || !node.kind.bytes;
      all.some ||= state.done;
    }
    all.freed &&= all.adjoint;
    return all;
  }

  card(box, look, scale) {
    const { pen, palette } = this, left = box.x - box.w / 2, top = box.y - box.h / 2;
    const state = look.stateOf && !box.ghost ? this.stateOfBox(box, look) : { done: true };
    const faded = look.matches && !box.members.some((n) => look.matches.has(n));
    const pending = !state.done && !box.ghost;
    const leaf = box.family === "leaf";
    const radius = leaf ? 22 : 9;
    pen.globalAlpha = faded ? 0.28 : box.ghost ? 0.6 : 1;
    if (box.type === "closed" && !pending) { // a pile of cards
      for (const shift of [6, 3]) {
        roundRect(pen, left + shift, top + shift, box.w, box.h, radius);
        pen.fillStyle = palette.card; pen.fill();
        pen.strokeStyle = palette.line; pen.lineWidth = 1; pen.stroke();
      }
    }
    roundRect(pen, left, top, box.w, box.h, radius);
    pen.fillStyle = pending ? palette.ground : leaf ? palette["leaf-soft"] : palette.card;
    pen.fill();
    pen.lineWidth = box.isNew || box.ghost ? 2 : 1;
    pen.strokeStyle = box.ghost ? palette.gone : box.isNew ? palette.added : leaf && !pending ? palette.leaf : palette.line;
    pen.setLineDash(pending || box.ghost ? [4, 3] : []);
    pen.stroke();
    pen.setLineDash([]);
    if (!leaf && !pending && box.type === "node") { // the family's spine, and an adjoint's on the other side
      pen.save();
      roundRect(pen, left, top, box.w, box.h, radius);
      pen.clip();
      pen.fillStyle = box.ghost ? palette.gone : palette[box.family];
      pen.fillRect(left, top, 5, box.h);
      if (state.adjoint) { pen.fillStyle = palette.backward; pen.fillRect(left + box.w - 5, top, 5, box.h); }
      pen.restore();
    }
    this.words(box, look, scale, state, pending, left, top);
    pen.globalAlpha = 1;
  }

  words(box, look, scale, state, pending, left, top) {
    const { pen, palette } = this;
    pen.textBaseline = "alphabetic";
    pen.textAlign = "left";
    const inset = box.type === "closed" ? 14 : box.family === "leaf" ? 18 : 15;
    if (scale < READABLE) {
      const size = Math.min(22, 9.5 / scale), width = textWidth(box.title, FONT_TITLE) * size / 13;
      let title = box.title;
      if (width > box.w - 10 && title.includes(".")) title = title.slice(title.lastIndexOf(".") + 1);
      if (textWidth(title, FONT_TITLE) * size / 13 > box.w - 10) {
        const letters = Math.floor(title.length * (box.w - 10) / (textWidth(title, FONT_TITLE) * size / 13)) - 1;
        if (letters < 3) return;
        title = `${title.slice(0, letters)}…`;
      }
      pen.font = FONT_TITLE.replace("13px", `${size.toFixed(1)}px`);
      pen.fillStyle = pending ? palette.faint : palette.ink;
      pen.textAlign = "center";
      pen.fillText(title, box.x, box.y + size * 0.36);
      return;
    }
    pen.font = FONT_TITLE;
    pen.fillStyle = pending ? palette.muted : palette.ink;
    pen.fillText(box.type === "closed" ? `▸ ${box.title}` : box.title, left + inset, top + (box.type === "closed" ? 20 : 18.5));
    if (box.bytes) {
      pen.font = FONT_TINY;
      pen.textAlign = "right";
      pen.fillStyle = palette.faint;
      const right = left + box.w - 12;
      if (!pending) pen.fillText(box.bytes, right, top + 18);
      if (state.freed) {
        pen.fillStyle = palette.muted;
        pen.fillRect(right - textWidth(box.bytes, FONT_TINY) - 1, top + 14, textWidth(box.bytes, FONT_TINY) + 2, 1.2);
      }
      pen.textAlign = "left";
    }
    pen.font = FONT_SMALL;
    let sub = box.sub, colour = pending ? palette.faint : palette.muted;
    if (look.stateOf && box.type === "node" && !pending && !box.ghost) {
      if (state.words) { sub = state.words; colour = state.adjoint ? palette.backward : palette.forward; }
    }
    pen.fillStyle = colour;
    const room = box.w - inset - 10;
    if (textWidth(sub, FONT_SMALL) > room) {
      while (sub.length > 2 && textWidth(`${sub}…`, FONT_SMALL) > room) sub = sub.slice(0, -1);
      sub += "…";
    }
    pen.fillText(sub, left + inset, top + (box.type === "closed" ? 37 : 34.5));
  }

  // Rings round what is selected, under the pointer or being computed.
  marks(boxes, look, scale) {
    const { pen, palette } = this;
    const ring = (box, colour, width, gap) => {
      const w = Math.max(box.w, 4 / scale), h = Math.max(box.h, 4 / scale), reach = gap / Math.min(1, scale * 1.6);
      roundRect(pen, box.x - w / 2 - reach, box.y - h / 2 - reach, w + 2 * reach, h + 2 * reach,
                (box.family === "leaf" ? 22 : 9) + reach);
      pen.strokeStyle = colour;
      pen.lineWidth = Math.max(width, width / scale * 0.8);
      pen.stroke();
    };
    if (look.matches && scale >= PLAIN) {
      for (const box of boxes) {
        if (box.type !== "open" && box.members.some((n) => look.strong.has(n))) ring(box, palette.muted, 1.2, 2);
      }
    }
    if (look.hovered && look.hovered.type !== "open") ring(look.hovered, palette.muted, 1, 2);
    if (look.current) {
      const box = this.scene.boxOfNode.get(look.current.node);
      if (box) ring(box, look.current.code === FORWARD ? palette.forward : palette.backward, 2.5, 4);
    }
    if (look.selected) ring(look.selected, palette.accent, 2.2, 3);
  }

  boxAt(px, py) {
    if (!this.scene) return null;
    const [x, y] = this.camera.toScene(px, py), reach = 3 / this.camera.scale;
    let found = null;
    for (const box of this.scene.near(x - reach, y - reach, x + reach, y + reach).boxes) {
      if (box.type === "open" && y > box.y - box.h / 2 + BAR + 4) continue; // an open group is its bar
      found = box;
    }
    return found;
  }
}

// The whole scene, small: drawn once for each scene, and a frame for what is in sight.
class Overview {
  constructor(canvas, camera) { this.canvas = canvas; this.camera = camera; this.picture = null; }

  paint(scene, palette) {
    const ratio = window.devicePixelRatio || 1, { clientWidth: w, clientHeight: h } = this.canvas;
    this.canvas.width = w * ratio;
    this.canvas.height = h * ratio;
    this.scale = Math.min((w - 12) / Math.max(1, scene.width), (h - 12) / Math.max(1, scene.height));
    this.left = (w - scene.width * this.scale) / 2;
    this.top = (h - scene.height * this.scale) / 2;
    this.picture = document.createElement("canvas");
    this.picture.width = this.canvas.width;
    this.picture.height = this.canvas.height;
    const pen = this.picture.getContext("2d");
    pen.scale(ratio, ratio);
    for (const box of scene.items) {
      pen.fillStyle = box.type === "open" ? palette.group : box.ghost ? palette.gone : box.isNew ? palette.added :
        box.type === "closed" ? palette.muted : palette[box.family];
      pen.fillRect(this.left + (box.x - box.w / 2) * this.scale, this.top + (box.y - box.h / 2) * this.scale,
                   Math.max(1, box.w * this.scale), Math.max(1, box.h * this.scale));
    }
    this.ratio = ratio;
    this.accent = palette.accent;
  }

  frame() {
    if (!this.picture) return;
    const pen = this.canvas.getContext("2d"), [l, u, r, b] = this.camera.view();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.picture, 0, 0);
    pen.scale(this.ratio, this.ratio);
    pen.strokeStyle = this.accent;
    pen.lineWidth = 1.5;
    pen.strokeRect(this.left + l * this.scale, this.top + u * this.scale, (r - l) * this.scale, (b - u) * this.scale);
  }

  toScene(px, py) { return [(px - this.left) / this.scale, (py - this.top) / this.scale]; }
}
