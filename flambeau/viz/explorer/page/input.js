// Mouse, touch and keyboard.

function listenToPointer(app) {
  const canvas = byId("graph"), fingers = new Map();
  let moved = 0, pinch = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
    moved = fingers.size > 1 ? Infinity : 0;
    pinch = null;
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = [event.offsetX, event.offsetY], last = fingers.get(event.pointerId);
    if (!last) { hover(at); return; }
    fingers.set(event.pointerId, at);
    if (fingers.size === 1) {
      moved += Math.abs(at[0] - last[0]) + Math.abs(at[1] - last[1]);
      if (moved > 4) { canvas.classList.add("dragging"); app.pan(at[0] - last[0], at[1] - last[1]); }
    } else if (fingers.size === 2) {
      const [[ax, ay], [bx, by]] = [...fingers.values()];
      const now = { reach: Math.hypot(ax - bx, ay - by), x: (ax + bx) / 2, y: (ay + by) / 2 };
      if (pinch) {
        app.zoom(now.reach / Math.max(1, pinch.reach), now.x, now.y);
        app.pan(now.x - pinch.x, now.y - pinch.y);
      }
      pinch = now;
    }
  });
  const lift = (event) => {
    const was = fingers.delete(event.pointerId);
    canvas.classList.remove("dragging");
    pinch = null;
    if (event.type === "pointerup" && was && moved <= 4) app.select(app.drawing.boxAt(event.offsetX, event.offsetY));
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("dblclick", (event) => {
    const box = app.drawing.boxAt(event.offsetX, event.offsetY);
    if (box && box.type !== "node") app.toggle(box.id);
    else if (!box) app.zoom(1.6, event.offsetX, event.offsetY);
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey) { app.pan(-(event.deltaX || event.deltaY) * lines, 0); return; }
    const by = Math.max(-80, Math.min(80, event.deltaY * lines));
    app.zoom(Math.exp(-by * (event.ctrlKey ? 0.01 : 0.0028)), event.offsetX, event.offsetY);
  }, { passive: false });

  function hover(at) {
    const box = at && app.drawing.boxAt(...at);
    if (box === app.hovered) return;
    app.hovered = box || null;
    canvas.classList.toggle("pointing", Boolean(box));
    canvas.title = box ? (box.node ? `${box.node.kind.title}  ${box.node.kind.shape}\n${box.node.kind.place}  ${box.node.kind.code || ""}`.trim() : box.group.detail) : "";
    app.repaint();
  }

  const overview = byId("overview");
  const jump = (event) => {
    if (!event.buttons) return;
    const [x, y] = app.overview.toScene(event.offsetX, event.offsetY), { camera } = app;
    app.pan(camera.width / 2 - x * camera.scale - camera.x, camera.height / 2 - y * camera.scale - camera.y);
  };
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); jump(event); });
  overview.addEventListener("pointermove", jump);
}

// From the selected box along an edge, or to what stands beside it in its row.
function walk(app, key) {
  const { scene, selected } = app;
  if (!selected) {
    const first = scene.items.filter((box) => box.type !== "open").sort((a, b) => b.y - a.y)[0];
    return first || null; // the result, at the bottom
  }
  const nearest = (boxes) => boxes.reduce((best, box) => (!best || Math.abs(box.x - selected.x) < Math.abs(best.x - selected.x) ? box : best), null);
  if (selected.type === "open") {
    if (key === "ArrowDown") return selected.inside.slice().sort((a, b) => a.y - b.y)[0] || null;
    if (key === "ArrowUp") return selected.up && selected.up.id ? selected.up : null;
  }
  if (key === "ArrowUp") return nearest(selected.linesIn.map((line) => line.from));
  if (key === "ArrowDown") return nearest(selected.linesOut.map((line) => line.to));
  const side = key === "ArrowLeft" ? -1 : 1;
  const row = scene.items.filter((box) => box.up === selected.up && box.layer === selected.layer && (box.x - selected.x) * side > 0);
  if (row.length) return nearest(row);
  // alone in its row: another input or user of the same neighbours
  const siblings = [...selected.linesOut.flatMap((line) => line.to.linesIn.map((l) => l.from)), ...selected.linesIn.flatMap((line) => line.from.linesOut.map((l) => l.to))];
  return nearest(siblings.filter((box) => (box.x - selected.x) * side > 0));
}

function listenToKeys(app) {
  const graph = byId("graph");
  document.addEventListener("keydown", (event) => {
    const { key, shiftKey: shift, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const typing = target.matches("input[type=search], select"), sliding = target.matches("input[type=range]"), button = target.matches("button");
    if (key === "Escape") { escape(); return; }
    if (typing) return;
    const act = action(key, shift, target === graph, sliding, button);
    if (act) { event.preventDefault(); act(); }
  });

  function escape() {
    if (document.activeElement === byId("search") || app.matches) {
      byId("search").value = "";
      app.find();
      graph.focus();
    } else if (document.activeElement === byId("panel")) graph.focus();
    else if (app.moment !== null) app.player.go(null);
    else app.select(null);
  }

  function action(key, shift, inGraph, sliding, button) {
    const arrow = key.startsWith("Arrow"), sideways = key === "ArrowLeft" || key === "ArrowRight";
    if (arrow && inGraph && !shift) {
      return () => { const box = walk(app, key); if (box) { app.select(box); app.reveal(box); } };
    }
    if (sideways && (shift || !sliding) && !(button && document.activeElement.getAttribute("role") === "radio")) return () => app.player.move(key === "ArrowLeft" ? -1 : 1);
    if (sideways && button) return () => segment(key);
    if (arrow) return null;
    if (key === "Enter" && inGraph) {
      return () => {
        if (!app.selected) return;
        if (app.selected.type === "node") byId("panel").focus(); else app.toggle(app.selected.id);
      };
    }
    if (key === " " && !button) return () => app.player.toggle();
    if ((key === "Home" || key === "End") && !sliding) return () => app.player.go(key === "Home" ? 0 : app.player.last);
    const step = 80;
    return {
      "/": () => byId("search").select(), "?": () => byId("help").showModal(), ",": () => app.player.move(-1), ".": () => app.player.move(1),
      "[": () => app.stepBy(-1), "]": () => app.stepBy(1), "+": () => app.zoom(1.25), "=": () => app.zoom(1.25), "-": () => app.zoom(0.8), _: () => app.zoom(0.8),
      f: () => app.fit(), F: () => app.selected && app.fly(around(app.selected)), 0: () => app.fit(), t: () => app.theme(),
      1: () => app.group("none"), 2: () => app.hasModules && app.group("module"), 3: () => app.hasLines && app.group("source"),
      c: () => collapse(), e: () => app.selected && app.selected.type === "closed" && app.toggle(app.selected.id, false),
      C: () => app.closeAll(true), E: () => app.closeAll(false), l: () => byId("list").focus(), g: () => graph.focus(), p: () => byId("panel").focus(),
      a: () => app.pan(step, 0), d: () => app.pan(-step, 0), w: () => app.pan(0, step), s: () => app.pan(0, -step),
    }[key];
  }

  function around(box) {
    const scale = Math.min(1.6, 0.7 * app.camera.width / box.w, 0.7 * app.camera.height / box.h);
    return { scale, x: app.camera.width / 2 - box.x * scale, y: app.camera.height / 2 - box.y * scale };
  }

  function collapse() {
    const { selected } = app;
    if (!selected) return;
    if (selected.type === "open") app.toggle(selected.id, true);
    else if (selected.up && selected.up.id) app.toggle(selected.up.id, true);
  }

  function segment(key) {
    const choices = [...byId("grouping").children].filter((b) => !b.disabled), at = choices.indexOf(document.activeElement);
    const to = choices[(at + (key === "ArrowLeft" ? -1 : 1) + choices.length) % choices.length];
    to.focus();
    to.click();
  }

  byId("help").addEventListener("click", (event) => { if (event.target === byId("help")) byId("help").close(); });
}

function listenToSearch(app) {
  const search = byId("search");
  let waiting = 0;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => app.find(), app.step.nodes.length > 3000 ? 120 : 0); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { clearTimeout(waiting); app.find(); app.nextMatch(event.shiftKey ? -1 : 1); event.preventDefault(); }
    if (event.key === "ArrowDown") { byId("list").focus(); event.preventDefault(); }
  });
}
