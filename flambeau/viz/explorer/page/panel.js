// The panel of details: of one node, of a group, or, where nothing is selected, of the whole graph.

class Panel {
  constructor(place, app) { this.place = place; this.app = app; }

  show() {
    const { selected } = this.app;
    const scroll = this.shown === selected ? this.place.scrollTop : 0;
    this.shown = selected;
    const parts = !selected ? this.whole() : selected.type === "node" ? this.node(selected) : this.group(selected);
    this.place.replaceChildren(...parts.filter(Boolean));
    this.place.scrollTop = scroll;
  }

  section(title, ...content) {
    const filled = content.filter(Boolean);
    return filled.length ? el("section", { "aria-label": title }, el("h3", {}, title), ...filled) : null;
  }

  heading(title, family, words, ...chips) {
    return el("div", {}, el("h2", { class: title.length > 28 ? "long" : "" }, title),
      el("p", { class: "kind" }, el("span", { class: "dot", style: `--family:var(--${family});background:var(--${family})`, "aria-hidden": "true" }),
         el("span", {}, words), ...chips.filter(Boolean)));
  }

  // ----- a node -----

  node(box) {
    const { app } = this, { node } = box, { kind } = node, { moment, step } = app, resting = moment === null;
    const freed = resting ? kind.freed : Boolean(eventAt(node, FREE, moment));
    const forward = eventAt(node, FORWARD, moment), backward = eventAt(node, BACKWARD, moment), grown = eventAt(node, ACCUMULATE, moment);
    const words = kind.leaf ? `leaf · ${kind.name}` : `${kind.name} · ${FAMILY_WORDS[kind.family] || kind.family}`;
    const chips = [box.isNew && el("span", { class: "chip added" }, "new in this step"), box.ghost && el("span", { class: "chip gone" }, "gone in this step"),
                   freed && el("span", { class: "chip" }, "buffers freed")];
    return [
      this.heading(kind.title, kind.family, words, ...chips),
      !kind.leaf && kind.formula && this.section("Formula", el("p", { class: "formula" }, kind.formula)),
      kind.pullbacks.some(Boolean) && this.section("Backward, of the adjoint g", el("p", { class: "formula" },
        kind.pullbacks.map((rule, k) => rule && (kind.pullbacks.length > 1 ? `input ${k + 1}: ${rule}` : rule)).filter(Boolean).join("\n"))),
      kind.file !== undefined && this.section("Made by", el("p", { class: "place" }, `${kind.file}, line ${kind.line}`),
        kind.code && el("pre", {}, kind.code)),
      kind.module && this.section("Module", el("p", { class: "mono" }, kind.module), kind.moduleClass && el("p", { class: "quiet" }, kind.moduleClass)),
      this.section(kind.outputs.length > 1 ? "Outputs" : "Output", this.shapes(kind)),
      this.stats("Value", kind.leaf ? node.value : forward && forward.stats, "var(--forward)", this.silence(node, FORWARD, "computed"), kind.leaf),
      this.stats(kind.leaf ? "Gradient that arrived" : "Adjoint (gradient of the loss by this value)", (backward || grown || {}).stats,
                 "var(--backward)", this.silence(node, kind.leaf ? ACCUMULATE : BACKWARD, "reached by the backward pass")),
      kind.leaf && grown && grown.grad && this.stats(".grad, accumulated", grown.grad, "var(--accent)", ""),
      this.acrossSteps(node),
      this.section("Saved for backward", kind.saved.length ? this.saved(kind, freed) : el("p", { class: "quiet" }, kind.leaf ? "A leaf saves nothing: it is the parameter itself." : "Nothing.")),
      !kind.leaf && this.section("Memory held", this.memory(freed ? 0 : kind.bytes, step.bytes, freed && kind.bytes)),
      this.section("Inputs", this.links(node, node.ins, true)),
      this.section("Used by", this.links(node, node.outs, false)),
    ];
  }

  silence(node, code, done) {
    const { step, moment } = this.app;
    if (moment !== null && node.events[code].length && !eventAt(node, code, moment)) return `Not ${done} yet at this moment.`;
    if (step.derived && code === FORWARD) return "Not recorded. Run the program under flambeau.viz.watching() to see values.";
    return "";
  }

  shapes(kind) {
    return el("table", {}, el("tbody", {}, ...kind.outputs.map(([shape, dtype]) => el("tr", {},
      el("td", { class: "mono" }, shapeText(shape)), el("td", { class: "number mono" }, dtype || "?")))));
  }

  stats(title, stats, colour, silence, leaf = false) {
    if (!stats) return silence && !leaf ? this.section(title, el("p", { class: "quiet" }, silence)) : null;
    const alarms = [stats.nan && `${countText(stats.nan, "element is", "elements are")} nan`, stats.inf && `${countText(stats.inf, "element is", "elements are")} infinite`];
    const warning = alarms.some(Boolean) ? el("p", { class: "alarm" }, alarms.filter(Boolean).join(", ")) : null;
    if (stats.count === 0) return this.section(title, el("p", { class: "quiet" }, `No elements: shape ${shapeText(stats.shape)}.`));
    if (stats.count === 1) {
      const value = [stats.values].flat(Infinity)[0];
      return this.section(title, el("p", { class: "scalar", style: `color:${colour}` }, numberText(value ?? stats.mean, 6)), warning);
    }
    const figure = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, numberText(value, 3)));
    return this.section(title, warning,
      el("dl", { class: "figures" }, figure("min", stats.min), figure("mean", stats.mean), figure("max", stats.max), figure("std", stats.std)),
      stats.bins && stats.min !== null && (stats.min < stats.max ? histogram(stats, colour) : el("p", { class: "quiet" }, `Every element is ${numberText(stats.min)}.`)),
      stats.zeros ? el("p", { class: "quiet" }, `${countText(stats.zeros, "zero")} of ${stats.count.toLocaleString("en")} elements`) : null,
      stats.values && this.values(stats));
  }

  values(stats) {
    const rows = stats.shape.length > 1 ? stats.values.flat(stats.shape.length - 2) : [stats.values];
    const widest = Math.max(...rows.map((row) => row.length));
    if (widest > 8) return null; // the histogram says it better
    const most = Math.max(Math.abs(stats.min), Math.abs(stats.max)) || 1;
    const cells = rows.flatMap((row) => [...row, ...Array(widest - row.length).fill(null)]).map((value) => {
      const part = typeof value === "number" ? Math.round(Math.min(1, Math.abs(value) / most) * 42) : 0;
      return el("span", { class: "mono", style: `background:color-mix(in srgb, var(--${value < 0 ? "op" : "leaf"}) ${part}%, transparent)` }, numberText(value, widest > 6 ? 2 : 3));
    });
    return el("div", { class: "values", style: `grid-template-columns:repeat(${widest}, minmax(0, ${widest > 4 ? "1fr" : "64px"}))`, role: "group",
                       "aria-label": `the values, shape ${shapeText(stats.shape)}` }, ...cells);
  }

  acrossSteps(node) {
    const { steps } = this.app.document;
    if (steps.length < 2) return null;
    const code = node.kind.leaf ? ACCUMULATE : BACKWARD;
    const of = (which) => steps.map((step) => {
      const there = step.byKey.get(node.key), event = there && eventAt(there, which, null);
      return event && event.stats ? event.stats.mean : null;
    });
    const present = steps.filter((step) => step.byKey.has(node.key)).length;
    const lines = [[FORWARD, "value", "var(--forward)"], [code, "adjoint", "var(--backward)"]].flatMap(([which, word, colour]) => {
      const means = of(which);
      if (means.filter((v) => typeof v === "number").length < 2) return [];
      return [el("p", { class: "quiet" }, `mean ${word}`), sparkline(means, this.app.step.at, colour, `mean ${word} in each training step`)];
    });
    return this.section("Across training steps", el("p", { class: "quiet" }, `In ${present} of ${steps.length} steps.`), ...lines);
  }

  saved(kind, freed) {
    return el("table", {}, el("tbody", {}, ...kind.saved.map((kept) => el("tr", {},
      el("th", { class: "mono", scope: "row" }, kept.name),
      el("td", {}, el("span", { class: "mono" }, kept.shape ? shapeText(kept.shape) : ""), ` ${kept.dtype || ""}`,
        kept.shared && el("div", { class: "quiet" }, kept.shared === "leaf" ? "memory of a leaf" : `memory of ${kept.shared}`)),
      el("td", { class: "number" }, freed ? el("s", {}, bytesText(kept.bytes)) : bytesText(kept.bytes))))));
  }

  memory(bytes, total, was) {
    const part = total ? bytes / total : 0;
    return el("div", {}, el("p", {}, was ? el("span", { class: "quiet" }, `Freed by backward (was ${bytesText(was)})`) : bytesText(bytes),
      total && bytes ? el("span", { class: "quiet" }, ` · ${(part * 100).toFixed(part < 0.1 ? 1 : 0)} % of the graph`) : ""),
      el("div", { class: "meter", "aria-hidden": "true" }, el("i", { style: `width:${(part * 100).toFixed(2)}%` })));
  }

  links(node, flat, into) {
    const nodes = node.home, buttons = [];
    for (let k = 0; k < flat.length; k += 3) {
      const other = nodes[flat[k]], place = flat[k + 1], output = flat[k + 2];
      const role = into ? `input ${place + 1}` : `its input ${place + 1}`;
      buttons.push(el("button", { type: "button", onclick: () => this.app.selectNode(other, true) },
        el("span", { class: "dot", style: `background:var(--${other.kind.family})`, "aria-hidden": "true" }),
        el("b", {}, other.kind.title), el("span", { class: "quiet mono" }, other.kind.shape), el("span", {}, output ? `${role}, output ${output + 1}` : role)));
    }
    if (buttons.length <= 24) return buttons.length ? el("div", { class: "links" }, ...buttons) : null;
    return el("div", { class: "links" }, ...buttons.slice(0, 24), el("p", { class: "quiet" }, `and ${buttons.length - 24} more`));
  }

  // ----- a group -----

  group(box) {
    const { app } = this, { group, members } = box, closed = box.type === "closed";
    const source = group.id.startsWith("source ");
    const bytes = members.reduce((sum, node) => sum + node.kind.bytes, 0);
    return [
      this.heading(group.title, "view", `${source ? "source line" : "module"} · ${countText(members.length, "node")}`,
        this.app.document.modules[group.detail] && el("span", { class: "chip" }, this.app.document.modules[group.detail])),
      this.section(source ? "Line" : "Path", el("p", { class: "mono" }, group.detail)),
      el("p", { style: "margin-top:14px" }, el("button", { type: "button", onclick: () => app.toggle(group.id) }, closed ? "Expand  (Enter)" : "Collapse  (Enter)")),
      this.section("Memory held", this.memory(bytes, app.step.bytes)),
      this.section("Operators", this.ranking(members, (node) => node.kind.operator, () => 1, (n) => n.toLocaleString("en"), 10, (name) => app.search(`op:${name}`))),
      this.section("Leaves", this.leaves(members)),
    ];
  }

  leaves(members) {
    const leaves = members.filter((node) => node.kind.leaf);
    if (!leaves.length) return null;
    return el("div", { class: "links" }, ...leaves.slice(0, 12).map((node) => el("button", { type: "button", onclick: () => this.app.selectNode(node, true) },
      el("b", {}, node.kind.title), el("span", {}, node.kind.shapes))), leaves.length > 12 ? el("p", { class: "quiet" }, `and ${leaves.length - 12} more`) : "");
  }

  // ----- everything -----

  whole() {
    const { app } = this, { step, document: doc } = app;
    const leaves = step.nodes.filter((node) => node.kind.leaf).length;
    return [
      el("h2", { class: doc.title.length > 28 ? "long" : "" }, doc.title),
      el("p", { class: "kind" }, `${countText(step.nodes.length - leaves, "operation")}, ${countText(leaves, "leaf", "leaves")}`),
      step.note && el("p", { class: "quiet", style: "margin-top:10px" }, step.note),
      typeof step.loss === "number" && this.section("Output", el("p", { class: "scalar" }, numberText(step.loss, 6))),
      this.section("Memory held for backward", el("p", { class: "scalar" }, bytesText(step.bytes))),
      step.bytes ? this.section("Lines that hold it", this.ranking(step.nodes, (node) => node.kind.place && `${node.kind.place}  ${node.kind.code || ""}`,
        (node) => node.kind.bytes, bytesText, 6, (name) => app.search(`line:${name.split("  ")[0].split(":").pop()}`))) : null,
      this.section("Operators", this.ranking(step.nodes.filter((node) => !node.kind.leaf), (node) => node.kind.operator, () => 1,
        (n) => n.toLocaleString("en"), 9, (name) => app.search(`op:${name}`))),
      el("p", { class: "quiet", style: "margin-top:20px" }, "Select a node to see its formula, source line, values and gradients. Press ", el("kbd", {}, "?"), " for the keys."),
    ];
  }

  ranking(nodes, name, weight, words, most, act) {
    const sums = new Map();
    for (const node of nodes) { const key = name(node); if (key) sums.set(key, (sums.get(key) || 0) + weight(node)); }
    const rows = [...sums].filter(([, sum]) => sum).sort((a, b) => b[1] - a[1]).slice(0, most), top = rows.length ? rows[0][1] : 1;
    if (!rows.length) return null;
    return el("div", { class: "bars" }, ...rows.flatMap(([key, sum]) => [
      el("button", { type: "button", title: `Find ${key}`, onclick: () => act(key) }, el("span", { class: "text" }, key),
        el("span", { class: "meter", style: "display:block", "aria-hidden": "true" }, el("i", { style: `width:${(sum / top * 100).toFixed(1)}%` }))),
      el("span", {}, words(sum))]));
  }
}
