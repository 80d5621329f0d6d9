// The document that Python wrote: steps of training, each with its nodes (oldest first) and its events.
// Nodes that are the same from step to step (same operator, line, module and turn of the loop) share a key.

const FORWARD = 0, BACKWARD = 1, ACCUMULATE = 2, FREE = 3;
const EVENT_NAMES = ["forward", "backward", "accumulate", "free"];

function openDocument(raw) {
  const kinds = raw.kinds.map((kind) => ({
    ...kind,
    place: kind.file === undefined ? "" : `${shortPath(kind.file)}:${kind.line}`,
    shapes: kind.outputs.map(([shape, dtype]) => `${shapeText(shape)} ${dtype}`).join(", "),
    shape: kind.outputs.length ? shapeText(kind.outputs[0][0]) : "",
    title: kind.leaf ? kind.label || "leaf" : kind.operator || kind.name,
  }));
  const steps = raw.steps.map((step, at) => readStep(step, at, kinds));
  return { ...raw, kinds, steps };
}

function readStep(raw, at, kinds) {
  const nodes = raw.nodes.map(([kind, edges, value], index) => ({
    index, kind: kinds[kind], value: value || null, ins: edges, outs: [], home: null, key: "", events: [[], [], [], []], order: index,
  }));
  for (const node of nodes) node.home = nodes;
  const turns = new Map();
  for (const node of nodes) {
    for (let k = 0; k < node.ins.length; k += 3) nodes[node.ins[k]].outs.push(node.index, node.ins[k + 1], node.ins[k + 2]);
    const { name, file, line, module, label } = node.kind;
    const alike = `${name} ${file ?? ""}:${line ?? ""} ${module ?? ""} ${label ?? ""}`;
    const turn = (turns.get(alike) ?? 0) + 1;
    turns.set(alike, turn);
    node.turn = turn;
    node.key = `${alike} #${turn}`;
  }
  const events = raw.events.map(([code, node, stats, more], index) => {
    const event = { index, code, node: nodes[node], stats: stats || null, bytes: 0, grad: null, captured: false, ...more };
    event.node.events[code].push(event);
    return event;
  });
  let held = 0;
  const memory = new Float64Array(events.length + 1);
  const holds = new Uint8Array(nodes.length);
  events.forEach((event, k) => {
    const { node } = event;
    if (event.code === FORWARD && !holds[node.index]) { held += node.kind.bytes; holds[node.index] = 1; }
    if (event.code === FREE && holds[node.index]) { held -= node.kind.bytes; holds[node.index] = 0; }
    memory[k + 1] = held;
  });
  const firstBackward = events.findIndex((event) => event.code !== FORWARD);
  return {
    at, name: raw.name, note: raw.note || "", derived: Boolean(raw.derived), loss: raw.loss, nodes, events, memory,
    turning: firstBackward < 0 ? events.length : firstBackward,
    byKey: new Map(nodes.map((node) => [node.key, node])),
    bytes: nodes.reduce((sum, node) => sum + node.kind.bytes, 0),
    most: memory.reduce((a, b) => Math.max(a, b), 0),
  };
}

// What a node knew at a moment of the playback (the last event of a code up to it); at rest, at the end.
function eventAt(node, code, moment) {
  const list = node.events[code];
  if (moment === null) return list[list.length - 1] || null;
  for (let k = list.length - 1; k >= 0; k--) if (list[k].index < moment) return list[k];
  return null;
}

// Which nodes of a step were not there in the one before, and which of that are gone.
function changes(step, before) {
  if (!before) return { added: new Set(), gone: [] };
  const added = new Set(step.nodes.filter((node) => !before.byKey.has(node.key)).map((node) => node.key));
  const gone = before.nodes.filter((node) => !step.byKey.has(node.key));
  return { added, gone };
}

// Nodes to draw for a step: its own, and as ghosts those gone since the step before, each put into the order
// of time behind the last node before it that is still there.
function drawnNodes(step, before, withGhosts) {
  const change = changes(step, before);
  const drawn = step.nodes.map((node) => ({ node, order: node.index, ghost: false, isNew: change.added.has(node.key) }));
  const edges = [];
  for (const node of step.nodes) {
    for (let k = 0; k < node.ins.length; k += 3) edges.push([node.ins[k], node.index, false]);
  }
  if (!withGhosts || !before || !change.gone.length) return { drawn, edges, change };
  const place = new Map();
  let last = -1, beside = 0;
  for (const node of before.nodes) {
    const still = step.byKey.get(node.key);
    if (still) { last = Math.max(last, still.index); beside = 0; place.set(node.index, still.index); continue; }
    place.set(node.index, drawn.length);
    drawn.push({ node, order: last + (++beside) / (before.nodes.length + 1), ghost: true, isNew: false });
  }
  for (const node of before.nodes) {
    for (let k = 0; k < node.ins.length; k += 3) {
      const a = place.get(node.ins[k]), b = place.get(node.index);
      if (drawn[a].ghost || drawn[b].ghost) edges.push([a, b, true]);
    }
  }
  return { drawn, edges, change };
}

// ----- words for numbers -----

function shapeText(shape) { return shape === null ? "?" : `(${shape.join(", ")})`; }

function shortPath(path) { return path.split(/[\\/]/).pop(); }

function bytesText(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let unit = -1, size = bytes;
  do { size /= 1000; unit++; } while (size >= 999.5 && unit < 3);
  return `${size >= 99.5 ? Math.round(size) : size.toPrecision(2).replace(/\.0$/, "")} ${units[unit]}`;
}

function numberText(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value.replace("Infinity", "∞").replace("-", "−");
  if (value === 0) return "0";
  const size = Math.abs(value);
  let text;
  if (Number.isInteger(value) && size < 1e6) text = String(value);
  else if (size >= 1e6 || size < 1e-3) text = value.toExponential(Math.max(1, digits - 2)).replace(/\.?0+e/, "e").replace("e+", "e");
  else text = value.toPrecision(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  return text.replaceAll("-", "−");
}

function statsText(stats) {
  if (!stats) return "";
  if (stats.count === 1) return numberText(stats.mean);
  if (stats.count === 0) return "empty";
  return `${numberText(stats.mean, 2)} ± ${numberText(stats.std, 2)}`;
}

function countText(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
