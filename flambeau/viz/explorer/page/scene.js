// From nodes to boxes on a plane: groups of nodes nest as boxes within boxes, and a closed group is one box.
// Each group is laid out by itself, then stands as one box in the group around it.

const BAR = 26, PAD = 16; // an open group's title bar, and the room around what is in it
const MOST_PORTS = 48; // of a group; beyond, lines cross its border where they like
const WORKER_FROM = 1500; // boxes in one group from which on a worker lays them out

// The groups that a node is in, outermost first: [{ id, title, detail }].
const moduleClasses = new Map(); // a module's path -> its class, where that says more than its name

function groupPath(kind, by) {
  if (by === "module" && kind.module) {
    const parts = kind.module.split(".");
    return parts.map((part, k) => {
      const path = parts.slice(0, k + 1).join(".");
      return { id: `module ${path}`, title: part, kind: moduleClasses.get(path) || "", detail: path };
    });
  }
  if (by === "source" && kind.file !== undefined) {
    return [{ id: `source ${kind.file}:${kind.line}`, title: kind.code || kind.place, detail: kind.place }];
  }
  return [];
}

function groupTree(drawn, by) {
  const root = { id: "", title: "", detail: "", parent: null, groups: [], members: [], size: 0, order: 0, depth: 0 };
  const known = new Map([["", root]]);
  drawn.forEach(({ node, order }, at) => {
    let group = root;
    root.size++;
    for (const step of groupPath(node.kind, by)) {
      let next = known.get(step.id);
      if (!next) {
        next = { ...step, parent: group, groups: [], members: [], size: 0, bytes: 0, order, depth: group.depth + 1 };
        known.set(step.id, next);
        group.groups.push(next);
      }
      next.size++;
      next.bytes += node.kind.bytes;
      next.order = Math.min(next.order, order);
      group = next;
    }
    group.members.push(at);
    return group;
  });
  if (by === "source") { // a line with one node needs no box around it
    root.groups = root.groups.filter((group) => {
      if (group.size > 1) return true;
      root.members.push(...group.members);
      known.delete(group.id);
      return false;
    });
  }
  return { root, known };
}

// Which groups to close at first, so that no more than about `most` boxes are to be seen. Groups that hold groups
// open ring by ring, those that hold nodes only open last; likes are treated alike, so a ring opens whole or not at all.
function closedAtFirst(tree, most) {
  const closed = new Set([...tree.known.keys()].filter(Boolean)), more = (group) => group.members.length + group.groups.length - 1;
  let seen = tree.root.members.length + tree.root.groups.length, ring = tree.root.groups;
  const innermost = [];
  const open = (groups) => {
    const sum = groups.reduce((total, group) => total + more(group), 0);
    if (seen + sum > most) return false;
    seen += sum;
    for (const group of groups) closed.delete(group.id);
    return true;
  };
  while (ring.length) {
    innermost.push(...ring.filter((group) => !group.groups.length));
    const holders = ring.filter((group) => group.groups.length);
    if (!open(holders)) return closed;
    ring = holders.flatMap((group) => group.groups);
  }
  open(innermost);
  return closed;
}

const textWidths = new Map();
function textWidth(text, font) {
  const key = font + text;
  let width = textWidths.get(key);
  if (width === undefined) {
    const pen = textWidth.pen || (textWidth.pen = document.createElement("canvas").getContext("2d"));
    pen.font = font;
    textWidths.set(key, width = pen.measureText(text).width);
  }
  return width;
}

function clipped(text, most) { return text.length > most ? `${text.slice(0, most - 1)}…` : text; }

async function buildScene(drawn, edges, by, closed, lay) {
  const tree = groupTree(drawn, by);
  const items = [], boxOf = new Array(drawn.length); // boxOf: the box that shows a node: its own, or a closed group's

  function nodeBox(at) {
    const { node, ghost, isNew } = drawn[at], { kind } = node;
    // within its module's box a parameter needs only the last part of its name
    const short = kind.leaf && by === "module" && kind.module ? kind.title.split(".").pop() : kind.title;
    const title = clipped(short, 28), bytes = kind.bytes ? bytesText(kind.bytes) : "";
    const w = Math.max(132, textWidth(title, FONT_TITLE) + (bytes ? textWidth(bytes, FONT_TINY) + 12 : 0) + 30,
                       textWidth(kind.shape, FONT_SMALL) + 30);
    return { type: "node", id: node.key, node, order: drawn[at].order, title, bytes, sub: clipped(kind.shape, 30),
             w: Math.ceil(w), h: 44, x: 0, y: 0, ghost, isNew, family: kind.family, members: [node], inside: [] };
  }

  function collect(group, into) {
    for (const at of group.members) into.push(at);
    for (const child of group.groups) collect(child, into);
    return into;
  }

  function closedBox(group) {
    const at = collect(group, []), title = clipped(group.title, 34);
    const sub = `${group.kind ? `${group.kind} · ` : ""}${countText(group.size, "node")}${group.bytes ? ` · ${bytesText(group.bytes)}` : ""}`;
    const w = Math.max(128, textWidth(title, FONT_TITLE) + 52, textWidth(sub, FONT_SMALL) + 34);
    const box = { type: "closed", id: group.id, group, order: group.order, title, sub, w: Math.ceil(w), h: 48, x: 0, y: 0,
                  ghost: at.every((k) => drawn[k].ghost), isNew: at.some((k) => drawn[k].isNew),
                  members: at.map((k) => drawn[k].node), inside: [] };
    for (const k of at) boxOf[k] = box;
    return box;
  }

  // Boxes first: what is seen in each group.
  function fill(group) {
    const inside = [];
    for (const at of group.members) inside.push(boxOf[at] = nodeBox(at));
    for (const child of group.groups) {
      if (closed.has(child.id)) { inside.push(closedBox(child)); continue; }
      const box = { type: "open", id: child.id, group: child, order: child.order, title: clipped(child.kind ? `${child.title} · ${child.kind}` : child.title, 44), sub: "",
                    w: 0, h: 0, x: 0, y: 0, ghost: false, isNew: false, inside: fill(child) };
      box.members = box.inside.flatMap((b) => b.members);
      inside.push(box);
    }
    return inside;
  }
  const top = { type: "open", id: "", inside: fill(tree.root), x: 0, y: 0, w: 0, h: 0, up: null, depth: 0 };

  // Edges between what is seen, each once, and lifted to the group in which both ends meet.
  (function nest(box) {
    for (const child of box.inside) { child.up = box; child.depth = box.depth + 1; nest(child); }
  })(top);
  const lines = new Map(), numbered = new Map();
  const number = (box) => { if (!numbered.has(box)) numbered.set(box, numbered.size); return numbered.get(box); };
  for (const [a, b, ghost] of edges) {
    const from = boxOf[a], to = boxOf[b];
    if (from === to) continue;
    const key = number(from) * 1e7 + number(to), line = lines.get(key);
    if (line) { line.weight++; line.ghost = line.ghost && ghost; } else lines.set(key, { from, to, weight: 1, ghost });
  }
  const drawnLines = [...lines.values()], within = new Map();
  // Where a line crosses the border of an open group, the group has a port: a point at its top or bottom.
  const port = (group, child, side) => {
    const ports = group.ports || (group.ports = new Map()), key = `${side} ${child.id}`;
    return ports.get(key) || ports.set(key, { child, side, x: 0, route: null }).get(key);
  };
  for (const line of drawnLines) {
    let a = line.from, b = line.to;
    line.outs = []; line.ins = [];
    while (a.up !== b.up) {
      if (a.depth >= b.depth) { line.outs.push([a.up, port(a.up, a, 2)]); a = a.up; }
      else { line.ins.push([b.up, port(b.up, b, 1)]); b = b.up; }
    }
    const here = within.get(a.up) || within.set(a.up, []).get(a.up);
    here.push({ line, a, b });
    if (a.node && a.node.kind.leaf) a.order = Math.min(a.order, b.order - 0.5); // a group may begin before its parameters
  }

  // Layouts from the inside out; then places from the outside in.
  async function place(box) {
    for (const child of box.inside) if (child.type === "open") await place(child);
    const boxes = box.inside, index = new Map(boxes.map((b, k) => [b, k]));
    const pairs = new Map(), lifted = within.get(box) || [];
    for (const entry of lifted) {
      const key = index.get(entry.a) * 1e6 + index.get(entry.b);
      entry.pair = pairs.get(key) ?? pairs.set(key, pairs.size).get(key);
    }
    const keys = [...pairs.keys()], n = boxes.length;
    // a line in a long loop: its turns are joined by what is outside only, and stand in a square, without ports
    const ports = box.ports && box.ports.size <= MOST_PORTS ? [...box.ports.values()] : [];
    const whole = (values, extra) => Float64Array.from([...values, ...ports.map(extra)]);
    const tails = keys.map((key) => Math.floor(key / 1e6)), heads = keys.map((key) => key % 1e6);
    ports.forEach((p, k) => {
      tails.push(p.side === 1 ? n + k : index.get(p.child));
      heads.push(p.side === 1 ? index.get(p.child) : n + k);
    });
    const answer = await lay({
      widths: whole(boxes.map((b) => b.w), () => 6), heights: whole(boxes.map((b) => b.h), () => 0),
      order: whole(boxes.map((b) => b.order), (p) => (p.side === 1 ? -1 : 1e12)), fold: true,
      pins: ports.length ? Int8Array.from([...boxes.map(() => 0), ...ports.map((p) => p.side)]) : null,
      tails: Int32Array.from(tails), heads: Int32Array.from(heads),
    });
    const bar = box.id ? BAR : 0, pad = box.id ? PAD : 0;
    box.w = answer.width + 2 * pad;
    box.h = answer.height + 2 * pad + bar;
    if (box.id) {
      const needed = textWidth(box.title, FONT_BAR) + 64;
      if (box.w < needed) { answer.width += 0; box.slack = (needed - box.w) / 2; box.w = needed; }
    }
    ports.forEach((p, k) => {
      p.x = answer.x[n + k] + pad + (box.slack || 0);
      const route = answer.routes[keys.length + k];
      p.route = (route || []).map((value, j) => value + (j % 2 ? pad + bar : pad + (box.slack || 0)));
    });
    boxes.forEach((b, k) => {
      b.x = answer.x[k] + pad + (box.slack || 0);
      b.y = answer.y[k] + pad + bar;
      b.layer = answer.layer[k];
    });
    for (const entry of lifted) {
      const route = answer.routes[entry.pair];
      entry.line.route = route && route.map((value, k) => value + (k % 2 ? pad + bar : pad + (box.slack || 0)));
      entry.line.straight = route === null;
      entry.line.home = box;
    }
  }
  await place(top);
  (function settle(box, left, upper) {
    for (const child of box.inside) {
      child.x += left; child.y += upper;
      items.push(child);
      child.originX = child.x - child.w / 2; child.originY = child.y - child.h / 2;
      if (child.type === "open") settle(child, child.originX, child.originY);
    }
  })(top, 0, 0);
  top.originX = top.originY = 0;
  for (const line of drawnLines) {
    const moved = (group, route) => route.map((value, k) => value + (k % 2 ? group.originY : group.originX));
    const led = ([, p]) => p.route !== null;
    if (![...line.outs, ...line.ins].every(led)) line.straight = true;
    const out = line.outs.filter(led).flatMap(([group, p]) => [...moved(group, p.route), group.originX + p.x, group.originY + group.h]);
    const into = line.ins.reverse().filter(led).flatMap(([group, p]) => [group.originX + p.x, group.originY, ...moved(group, p.route)]);
    line.route = [...out, ...(line.route ? moved(line.home, line.route) : []), ...into];
    tracePath(line);
  }
  const places = new Map(items.map((box) => [box.id, box]));
  const scene = { by, tree, items, lines: drawnLines, places, width: top.w, height: top.h, boxOf,
                  boxOfNode: new Map(drawn.map(({ node }, at) => [node, boxOf[at]])) };
  indexScene(scene);
  return scene;
}

// The points that a line goes through: down from its tail, along its route, down into its head.
function tracePath(line) {
  const { from, to } = line;
  const x0 = from.x, y0 = from.y + from.h / 2, x1 = to.x, y1 = to.y - to.h / 2;
  line.points = [x0, y0, ...(line.route || []), x1, y1];
  line.long = line.straight || y1 < y0;
  let left = Infinity, right = -Infinity, upper = Infinity, lower = -Infinity;
  for (let k = 0; k < line.points.length; k += 2) {
    left = Math.min(left, line.points[k]); right = Math.max(right, line.points[k]);
    upper = Math.min(upper, line.points[k + 1]); lower = Math.max(lower, line.points[k + 1]);
  }
  const side = y1 < y0 ? 60 : 0;
  line.box = [left - side, upper - side, right + side, lower + side];
}

// Buckets of the plane, so that drawing and pointing look at what is near only.
function indexScene(scene) {
  const cell = Math.max(400, Math.sqrt(scene.width * scene.height / 600));
  const columns = Math.max(1, Math.ceil(scene.width / cell)), rows = Math.max(1, Math.ceil(scene.height / cell));
  const boxes = Array.from({ length: columns * rows }, () => []), lines = Array.from({ length: columns * rows }, () => []);
  const clamp = (v, most) => Math.max(0, Math.min(most - 1, Math.floor(v / cell)));
  function put(into, thing, left, upper, right, lower) {
    for (let r = clamp(upper, rows); r <= clamp(lower, rows); r++) {
      for (let c = clamp(left, columns); c <= clamp(right, columns); c++) into[r * columns + c].push(thing);
    }
  }
  scene.items.forEach((box, k) => {
    box.at = k;
    put(boxes, box, box.x - box.w / 2, box.y - box.h / 2, box.x + box.w / 2, box.y + box.h / 2);
  });
  scene.short = []; scene.far = [];
  scene.lines.forEach((line, k) => {
    line.at = k;
    // a line over half the drawing is in no bucket: it is tried each time
    if (line.box[2] - line.box[0] > 6 * cell || line.box[3] - line.box[1] > 6 * cell) scene.far.push(line);
    else { scene.short.push(line); put(lines, line, ...line.box); }
  });
  const stampBox = new Int32Array(scene.items.length), stampLine = new Int32Array(scene.lines.length);
  let visit = 0;
  scene.near = (left, upper, right, lower) => {
    visit++;
    const found = { boxes: [], lines: [] };
    for (let r = clamp(upper, rows); r <= clamp(lower, rows); r++) {
      for (let c = clamp(left, columns); c <= clamp(right, columns); c++) {
        for (const box of boxes[r * columns + c]) {
          if (stampBox[box.at] === visit) continue;
          stampBox[box.at] = visit;
          if (box.x + box.w / 2 >= left && box.x - box.w / 2 <= right && box.y + box.h / 2 >= upper && box.y - box.h / 2 <= lower) {
            found.boxes.push(box);
          }
        }
        for (const line of lines[r * columns + c]) {
          if (stampLine[line.at] === visit) continue;
          stampLine[line.at] = visit;
          found.lines.push(line);
        }
      }
    }
    for (const line of scene.far) {
      if (line.box[2] >= left && line.box[0] <= right && line.box[3] >= upper && line.box[1] <= lower) found.lines.push(line);
    }
    found.boxes.sort((a, b) => a.at - b.at);
    return found;
  };
  // Neighbours of a box, for walking along edges.
  for (const box of scene.items) { box.linesIn = []; box.linesOut = []; }
  for (const line of scene.lines) { line.from.linesOut.push(line); line.to.linesIn.push(line); }
}

// Layouts of large groups run in a worker, so that the page stays quick; where there is none, at once.
function layoutRunner() {
  let worker = null, asked = 0;
  const waiting = new Map();
  try {
    const program = `${layeredLayout};onmessage=(e)=>postMessage([e.data[0],layeredLayout(e.data[1])])`;
    worker = new Worker(URL.createObjectURL(new Blob([program], { type: "text/javascript" })));
    worker.onmessage = ({ data: [name, answer] }) => { waiting.get(name).resolve(answer); waiting.delete(name); };
    worker.onerror = () => {
      worker = null;
      for (const { problem, resolve } of waiting.values()) resolve(layeredLayout(problem));
      waiting.clear();
    };
  } catch { worker = null; }
  return (problem) => {
    if (!worker || problem.widths.length < WORKER_FROM) return layeredLayout(problem);
    return new Promise((resolve) => { waiting.set(++asked, { problem, resolve }); worker.postMessage([asked, problem]); });
  };
}
