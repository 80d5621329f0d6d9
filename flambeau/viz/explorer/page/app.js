// The explorer: its state, and what happens when something in it changes.

const KEYS = [
  ["←  →  ,  .", "one event back or on (in the graph, Shift+← and Shift+→)"], ["Space", "play or pause"],
  ["Home  End", "beginning or end of the playback"], ["[  ]", "training step before or after"],
  ["↑ ↓ in the graph", "along an edge to an input, or to a user"], ["← → in the graph", "to what stands beside"],
  ["Enter", "open or close a group; of a node, read its details"], ["C  E", "collapse or expand what is selected; with Shift everything"],
  ["1  2  3", "flat, by module, by source line"], ["/", "search; Enter goes to the next result"], ["L  G  P", "to the list, the graph, the details"],
  ["+  −  F", "zoom in, out, fit; Shift+F zooms to what is selected"], ["W  A  S  D", "pan; with the mouse drag, wheel or pinch"], ["T", "light or dark"], ["Esc", "back out: help, search, selection, playback"],
];

const LEAST_SCALE = 0.004;
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

class App {
  constructor(raw) {
    this.document = openDocument(raw);
    this.step = this.document.steps[this.document.steps.length > 1 ? 0 : this.document.steps.length - 1];
    this.moment = null;
    this.selected = null; this.hovered = null; this.matches = null; this.terms = [];
    this.camera = new Camera();
    this.drawing = new Drawing(byId("graph"), this.camera);
    this.overview = new Overview(byId("overview"), this.camera);
    this.lay = layoutRunner();
    this.panel = new Panel(byId("panel"), this);
    this.player = new Player(this);
    this.list = new NodeList(this);
    this.closed = { none: new Set(), module: null, source: null };
    this.frames = { count: 0, drawing: [] };
    this.tween = 1;
  }

  async start() {
    const { document: doc } = this;
    document.title = `${doc.title} · flambeau`;
    byId("title").textContent = doc.title;
    const kinds = doc.kinds;
    this.hasModules = kinds.some((kind) => kind.module);
    this.hasLines = kinds.some((kind) => kind.file !== undefined);
    for (const button of byId("grouping").children) {
      button.disabled = button.dataset.by === "module" ? !this.hasModules : button.dataset.by === "source" ? !this.hasLines : false;
      button.onclick = () => this.group(button.dataset.by);
    }
    this.by = this.hasModules ? "module" : this.hasLines && this.step.nodes.length > 400 ? "source" : "none";
    for (const [path, name] of Object.entries(doc.modules)) if (name !== path.split(".").pop()) moduleClasses.set(path, name);
    for (const kind of kinds) if (kind.module) kind.moduleClass = doc.modules[kind.module] || "";
    this.legend();
    this.training();
    for (const [keys, words] of KEYS) byId("keys").append(el("dt", {}, ...keys.split("  ").flatMap((key) => [el("kbd", {}, key), " "])), el("dd", {}, words));
    byId("theme").onclick = () => this.theme();
    byId("help-button").onclick = () => byId("help").showModal();
    byId("close-all").onclick = () => this.closeAll(true);
    byId("open-all").onclick = () => this.closeAll(false);
    byId("zoom-in").onclick = () => this.zoom(1.3);
    byId("zoom-out").onclick = () => this.zoom(1 / 1.3);
    byId("fit").onclick = () => this.fit();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!this.themed) this.setTheme(this.systemTheme()); });
    this.setTheme(this.systemTheme());
    listenToPointer(this);
    listenToKeys(this);
    listenToSearch(this);
    new ResizeObserver(() => { this.drawing.resize(); if (this.fitted) this.fit(true); this.repaint(); }).observe(byId("graph"));
    this.drawing.resize();
    await this.showStep(this.step);
    this.camera.width = byId("graph").clientWidth;
    this.fit(true);
    document.documentElement.dataset.ready = "true";
  }

  // ----- the scene -----

  get before() { return this.step.at > 0 ? this.document.steps[this.step.at - 1] : null; }

  async rebuild({ keep = null, fit = false } = {}) {
    const ghosts = byId("ghosts").checked;
    const { drawn, edges, change } = drawnNodes(this.step, this.before, ghosts);
    if (!ghosts) for (const entry of drawn) entry.isNew = false;
    this.change = change;
    const asked = this.asked = (this.asked || 0) + 1;
    const slow = setTimeout(() => { byId("busy").hidden = false; }, 120);
    let scene;
    if (this.closed[this.by] === null) { // at first as much is open as can be read when all is in sight
      const tree = groupTree(drawn, this.by);
      for (const most of [40, 24, 14]) {
        this.closed[this.by] = closedAtFirst(tree, most);
        scene = await buildScene(drawn, edges, this.by, this.closed[this.by], this.lay);
        if (this.camera.fitting(scene).scale >= READABLE) break;
      }
    } else scene = await buildScene(drawn, edges, this.by, this.closed[this.by], this.lay);
    clearTimeout(slow);
    byId("busy").hidden = true;
    if (asked !== this.asked) return; // another one was asked for meanwhile
    const old = this.scene, anchor = keep && old && old.places.get(keep);
    const was = anchor && this.camera.toScreen(anchor.x, anchor.y);
    this.scene = this.drawing.scene = scene;
    if (this.selected) {
      const { id, node } = this.selected;
      const same = node && this.step.byKey.get(node.key);
      this.selected = scene.places.get(id) || (same && scene.boxOfNode.get(same)) || (node && scene.boxOfNode.get(node)) || null;
    }
    this.hovered = null;
    const now = keep && scene.places.get(keep);
    if (was && now) { this.camera.x = was[0] - now.x * this.camera.scale; this.camera.y = was[1] - now.y * this.camera.scale; }
    this.paintOverview();
    if (old && !calm() && scene.items.length < 1500) this.glide(old);
    if (fit || (old && this.fitted)) this.fit();
    this.refresh();
  }

  // Boxes that were there before move to their new places.
  glide(old) {
    const moves = [];
    for (const box of this.scene.items) {
      const was = old.places.get(box.id);
      if (was && (was.x !== box.x || was.y !== box.y)) moves.push([box, was.x, was.y, box.x, box.y]);
    }
    if (!moves.length) return;
    for (const line of this.scene.lines) line.final ??= line.points;
    const start = performance.now(), gliding = this.gliding = {};
    const tick = (now) => {
      const t = this.gliding === gliding ? Math.min(1, Math.max(0, now - start) / 240) : 1, eased = 1 - (1 - t) ** 3;
      for (const [box, x0, y0, x1, y1] of moves) { box.x = x0 + (x1 - x0) * eased; box.y = y0 + (y1 - y0) * eased; }
      this.tween = eased;
      this.repaint();
      if (t < 1) requestAnimationFrame(tick);
    };
    tick(start);
  }

  paintOverview() {
    const corner = byId("overview");
    corner.hidden = this.scene.items.length < 25;
    if (!corner.hidden) this.overview.paint(this.scene, this.drawing.palette);
  }

  async showStep(step) {
    const first = !this.scene;
    this.step = step;
    this.moment = null;
    this.player.stop();
    this.facts();
    this.terms.length ? this.find() : this.list.fill();
    await this.rebuild(first ? {} : { keep: this.selected ? this.selected.id : null });
    this.player.paintMemory();
    this.player.show();
    this.showTraining();
    if (!first && !this.fitted && this.outOfSight()) this.fit();
    if (!first) this.say(`${step.name}: ${countText(step.nodes.length, "node")}, ${this.change.added.size} added, ${this.change.gone.length} removed`);
  }

  outOfSight() {
    const [l, u, r, b] = this.camera.view();
    return this.scene.width < l || this.scene.height < u || r < 0 || b < 0;
  }

  group(by) {
    if (this.by === by) return;
    this.by = by;
    this.selected = this.selected && this.selected.node ? this.selected : null;
    this.rebuild({ fit: true });
  }

  toggle(id, to = !this.closed[this.by].has(id)) {
    if (!id) return;
    if (to) this.closed[this.by].add(id); else this.closed[this.by].delete(id);
    this.rebuild({ keep: id }).then(() => {
      const box = this.scene.places.get(id);
      if (box) { this.select(box); if (!to) this.reveal(box); }
      this.say(`${to ? "Collapsed" : "Expanded"} ${box ? box.title : ""}`);
    });
  }

  closeAll(to) {
    if (!this.scene || this.by === "none") return;
    this.closed[this.by] = new Set(to ? [...this.scene.tree.known.keys()].filter(Boolean) : []);
    this.rebuild({ fit: true });
  }

  // ----- selection -----

  select(box, say = true) {
    if (this.selected === box) return;
    this.selected = box;
    this.panel.show();
    this.list.follow();
    this.repaint();
    if (say && box) this.say(box.node ? this.list.words(box.node) : `${box.type === "closed" ? "closed" : "open"} group ${box.title}, ${countText(box.members.length, "node")}`);
  }

  // Select a node wherever it is: groups around it open, and it comes into sight.
  async selectNode(node, travel = false) {
    const there = this.scene.boxOfNode.get(node);
    if (!there) return;
    if (there.type === "closed") {
      for (let group = there.group; group && group.id; group = group.parent) this.closed[this.by].delete(group.id);
      for (const step of groupPath(node.kind, this.by)) this.closed[this.by].delete(step.id);
      await this.rebuild();
    }
    const box = this.scene.boxOfNode.get(node);
    this.select(box);
    if (travel && box) this.reveal(box);
  }

  reveal(box) {
    const { camera } = this, [px, py] = camera.toScreen(box.x, box.y), margin = 70;
    const fits = px > margin && py > margin && px < camera.width - margin && py < camera.height - margin;
    if (fits && camera.scale >= READABLE) return;
    this.fitted = false;
    const scale = Math.max(camera.scale, box.type === "open" ? Math.min(1, 0.9 * camera.width / box.w, 0.9 * camera.height / box.h) : 0.8);
    this.fly({ scale, x: camera.width / 2 - box.x * scale, y: camera.height / 2 - box.y * scale });
  }

  // ----- playback -----

  setMoment(moment, byPlay = false) {
    this.moment = moment;
    const words = this.player.show();
    const event = moment ? this.step.events[moment - 1] : null;
    if (event) {
      const box = this.scene.boxOfNode.get(event.node);
      if (box !== this.selected) { this.selected = box; this.list.follow(); }
      if (box && !this.near(box)) this.reveal(box);
    }
    this.panel.show();
    this.repaint();
    if (words && !byPlay) this.say(words);
  }

  near(box) {
    if (this.camera.scale < PLAIN) return true;
    const [px, py] = this.camera.toScreen(box.x, box.y);
    return px > 30 && py > 30 && px < this.camera.width - 30 && py < this.camera.height - 30;
  }

  // ----- training steps -----

  training() {
    const { steps, total } = this.document;
    byId("training").hidden = steps.length < 2;
    if (steps.length < 2) return;
    const slider = byId("steps"), picture = byId("step-bars"), most = Math.max(...steps.map((step) => step.nodes.length));
    slider.max = steps.length - 1;
    slider.addEventListener("input", () => this.showStep(steps[Number(slider.value)]));
    byId("step-back").onclick = () => this.stepBy(-1);
    byId("step-on").onclick = () => this.stepBy(1);
    byId("ghosts").onchange = () => this.rebuild();
    const wide = 1000, each = wide / steps.length, half = 50 / steps.length; // a thumb of 14 px stands under each bar
    picture.setAttribute("viewBox", `0 0 ${wide} 25`);
    slider.style.cssText = `left:calc(8px + (100% - 16px) * ${half / 100} - 7px);width:calc((100% - 16px) * ${1 - half / 50} + 14px)`;
    steps.forEach((step, k) => {
      const { added, gone } = changes(step, steps[k - 1] || null), tall = Math.max(1, step.nodes.length / most * 22);
      const colour = added.size || gone.length ? "var(--op)" : "var(--edge)";
      picture.append(svg("rect", { x: k * each + each * 0.1, y: 24 - tall, width: each * 0.8, height: tall, fill: colour, opacity: 0.45, "data-step": k }));
    });
    const losses = steps.map((step) => step.loss), known = losses.filter((loss) => typeof loss === "number");
    if (known.length > 1) {
      const low = Math.min(...known), span = Math.max(...known) - low || 1;
      const points = losses.flatMap((loss, k) => (typeof loss === "number" ? [`${(k + 0.5) * each},${22 - (loss - low) / span * 19}`] : []));
      picture.append(svg("polyline", { points: points.join(" "), fill: "none", stroke: "var(--accent)", "stroke-width": 1.6, "vector-effect": "non-scaling-stroke",
                                       "stroke-linejoin": "round" }));
    }
    if (total > steps.length) byId("step-name").title = `${steps.length} of ${total} steps are kept`;
  }

  stepBy(by) {
    const to = this.document.steps[this.step.at + by];
    if (to) this.showStep(to);
  }

  showTraining() {
    const { steps } = this.document;
    if (steps.length < 2) return;
    byId("steps").value = this.step.at;
    byId("steps").setAttribute("aria-valuetext", this.step.name);
    byId("step-name").textContent = `${this.step.name} of ${this.document.total}`;
    byId("step-back").disabled = this.step.at === 0;
    byId("step-on").disabled = this.step.at === steps.length - 1;
    for (const bar of byId("step-bars").querySelectorAll("rect")) bar.setAttribute("opacity", Number(bar.dataset.step) === this.step.at ? 1 : 0.45);
    const { added, gone } = this.change, parts = [];
    if (!this.before) parts.push(el("span", { class: "quiet" }, "first step"));
    else if (!added.size && !gone.length) parts.push("same as before");
    else {
      if (added.size) parts.push(el("b", { class: "added" }, `+${added.size}`));
      if (gone.length) parts.push(el("b", { class: "gone" }, `−${gone.length}`));
      parts.push(`node${added.size + gone.length === 1 ? "" : "s"}`);
    }
    byId("step-change").replaceChildren(...parts.flatMap((part) => [part, " "]));
  }

  // ----- search -----

  search(text) { byId("search").value = text; this.find(); byId("search").focus(); }

  find() {
    this.terms = readQuery(byId("search").value);
    const found = new Map();
    if (this.terms.length) {
      for (const kind of this.document.kinds) found.set(kind, matchesQuery(kind, this.terms));
      this.matches = new Set(this.step.nodes.filter((node) => found.get(node.kind)));
      this.strong = new Set(this.step.nodes.filter((node) => found.get(node.kind) > 1));
      if (!this.strong.size) this.strong = this.matches;
    } else this.matches = null;
    this.list.fill();
    this.list.list.scrollTop = 0;
    this.repaint();
  }

  nextMatch(by) {
    const { entries, at } = this.list;
    if (entries.length) this.list.choose(((at < 0 && by < 0 ? 0 : at) + by + entries.length) % entries.length);
  }

  // ----- the page -----

  facts() {
    const { step } = this;
    byId("facts").textContent = [this.document.subtitle, countText(step.nodes.length, "node"), `${bytesText(step.bytes)} held for backward`].filter(Boolean).join("  ·  ");
  }

  legend() {
    const there = new Set(this.document.kinds.map((kind) => kind.family));
    byId("legend").replaceChildren(...FAMILIES.filter((name) => there.has(name)).map((name) =>
      el("span", { style: `--family:var(--${name})` }, el("i", { class: name === "leaf" ? "round" : "" }), FAMILY_WORDS[name])));
  }

  systemTheme() { return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"; }

  setTheme(name) {
    document.documentElement.dataset.theme = name;
    this.drawing.palette = readPalette();
    if (this.scene) this.paintOverview();
    this.repaint();
  }

  theme() { this.themed = true; this.setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); }

  say(words) { byId("announce").textContent = words; }

  refresh() {
    for (const button of byId("grouping").children) {
      const on = button.dataset.by === this.by;
      button.setAttribute("aria-checked", String(on));
      button.tabIndex = on ? 0 : -1;
    }
    for (const name of ["close-all", "open-all"]) byId(name).disabled = this.by === "none";
    this.panel.show();
    this.list.follow(false);
    this.repaint();
  }

  // ----- the camera -----

  fit(at_once = false) {
    const to = this.camera.fitting(this.scene);
    this.fitted = true; // until the user moves: then the view stays as it is
    if (at_once) { this.flight = null; Object.assign(this.camera, to); this.repaint(); } else this.fly(to);
  }

  zoom(factor, px = this.camera.width / 2, py = this.camera.height / 2) {
    this.flight = null;
    this.fitted = false;
    this.camera.zoomAt(px, py, factor, LEAST_SCALE);
    this.repaint();
  }

  pan(dx, dy) {
    this.flight = null;
    this.fitted = false;
    this.camera.x += dx;
    this.camera.y += dy;
    this.repaint();
  }

  fly(to) {
    const { camera } = this, from = { scale: camera.scale, x: camera.x, y: camera.y };
    if (calm()) { Object.assign(camera, to); this.repaint(); return; }
    const start = performance.now(), flight = this.flight = {};
    const centre = (view) => [(camera.width / 2 - view.x) / view.scale, (camera.height / 2 - view.y) / view.scale];
    const [x0, y0] = centre(from), [x1, y1] = centre(to);
    const tick = (now) => {
      if (this.flight !== flight) return;
      const t = Math.min(1, Math.max(0, now - start) / 260), eased = t * t * (3 - 2 * t);
      camera.scale = from.scale * (to.scale / from.scale) ** eased;
      camera.x = camera.width / 2 - (x0 + (x1 - x0) * eased) * camera.scale;
      camera.y = camera.height / 2 - (y0 + (y1 - y0) * eased) * camera.scale;
      if (t === 1) Object.assign(camera, to);
      this.repaint();
      if (t < 1) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  repaint() {
    if (this.due) return;
    this.due = requestAnimationFrame(() => {
      this.due = 0;
      const began = performance.now(), { moment } = this;
      this.drawing.draw({
        selected: this.selected, hovered: this.hovered, matches: this.matches, strong: this.strong, tween: this.tween,
        stateOf: moment === null ? null : (node) => this.player.stateOf(node, moment),
        current: moment ? this.step.events[moment - 1] : null,
      });
      if (!byId("overview").hidden) this.overview.frame();
      byId("zoom").textContent = `${this.camera.scale < 0.1 ? (this.camera.scale * 100).toFixed(1) : Math.round(this.camera.scale * 100)}%`;
      this.frames.count++;
      this.frames.last = performance.now() - began;
    });
  }
}
