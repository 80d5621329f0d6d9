// Search, and the nodes as a list in words; only the rows in sight are in the page.

const ROW = 42;

// What a query asks: words that must all be found, and fields that must match: op: module: line: shape: dtype:
function readQuery(text) {
  const terms = [];
  for (const [, field, quoted, plain] of text.toLowerCase().matchAll(/(?:(op|module|line|shape|dtype):)?(?:"([^"]*)"|(\([^)]*\)?|\S+))/g)) {
    terms.push([field || "", quoted ?? plain]);
  }
  return terms;
}

function searchable(kind) {
  if (!kind.searched) {
    const squeezed = kind.outputs.map(([shape]) => `(${(shape || []).join(",")})`).join(" ");
    kind.searched = {
      op: `${kind.operator} ${kind.name}`.toLowerCase(), module: (kind.module || "").toLowerCase(), line: kind.place.toLowerCase(),
      shape: `${squeezed} ${squeezed.replaceAll(",", "x")}`, dtype: kind.outputs.map(([, dtype]) => dtype).join(" "),
      "": `${kind.operator} ${kind.name} ${kind.label || ""} ${kind.module || ""} ${kind.place} ${kind.code || ""} ${kind.shapes} ${squeezed}`.toLowerCase(),
    };
  }
  return kind.searched;
}

function matchesQuery(kind, terms) {
  const fields = searchable(kind);
  const found = terms.every(([field, word]) => {
    if (field === "line") return /^\d+$/.test(word) ? fields.line.endsWith(`:${word}`) : fields.line.includes(word);
    if (field === "op") return word === kind.operator.toLowerCase() || fields.op.split(" ").some((name) => name.startsWith(word));
    if (field === "shape") return fields.shape.includes(word.replace(/[()]/g, "").replaceAll(" ", ""));
    return fields[field].includes(field ? word : word.startsWith("(") ? word.replaceAll(" ", "") : word);
  });
  // 2: the node's own name is meant, not only the line that it stands in
  return !found ? 0 : terms.every(([field, word]) => field || `${fields.op} ${kind.title.toLowerCase()}`.includes(word)) ? 2 : 1;
}

class NodeList {
  constructor(app) {
    this.app = app;
    this.list = byId("list"); this.rows = byId("rows"); this.count = byId("count");
    this.entries = [];
    this.at = -1;
    this.list.addEventListener("scroll", () => this.render());
    this.rows.addEventListener("click", (event) => {
      const row = event.target.closest(".item");
      if (row) this.choose(Number(row.dataset.at));
    });
    this.list.addEventListener("keydown", (event) => this.key(event));
    byId("sort").addEventListener("change", () => this.fill());
    new ResizeObserver(() => this.render()).observe(this.list);
  }

  fill() {
    const { step, matches } = this.app, by = byId("sort").value;
    let nodes = step.nodes.slice();
    if (matches) nodes = [...nodes.filter((node) => this.app.strong.has(node)), ...nodes.filter((node) => matches.has(node) && !this.app.strong.has(node))];
    if (by === "bytes") nodes.sort((a, b) => b.kind.bytes - a.kind.bytes || a.index - b.index);
    if (by === "title") nodes.sort((a, b) => a.kind.title.localeCompare(b.kind.title) || a.index - b.index);
    this.entries = nodes;
    this.rows.style.height = `${nodes.length * ROW}px`;
    this.count.textContent = matches ? `${nodes.length.toLocaleString("en")} of ${countText(step.nodes.length, "node")}` : countText(nodes.length, "node");
    this.follow(false);
    this.render();
  }

  // The row of what is selected, scrolled into sight.
  follow(scroll = true) {
    const { selected } = this.app;
    this.at = selected && selected.node ? this.entries.indexOf(selected.node) : -1;
    if (scroll && this.at >= 0) {
      const top = this.at * ROW, { scrollTop, clientHeight } = this.list;
      if (top < scrollTop || top + ROW > scrollTop + clientHeight) this.list.scrollTop = top - clientHeight / 2 + ROW / 2;
    }
    this.render();
  }

  render() {
    const { scrollTop, clientHeight } = this.list, first = Math.max(0, Math.floor(scrollTop / ROW) - 4);
    const last = Math.min(this.entries.length, Math.ceil((scrollTop + clientHeight) / ROW) + 4), rows = [];
    for (let at = first; at < last; at++) {
      const node = this.entries[at], { kind } = node;
      rows.push(el("div", { id: `item-${at}`, class: `item ${kind.leaf ? "leaf" : ""}`, role: "option", "data-at": at, style: `top:${at * ROW}px;--family:var(--${kind.family})`,
        "aria-selected": at === this.at ? "true" : "false", "aria-setsize": this.entries.length, "aria-posinset": at + 1,
        "aria-label": this.words(node) },
        el("p", {}, el("span", { class: "right" }, kind.bytes ? bytesText(kind.bytes) : ""), el("b", {}, kind.title)),
        el("div", {}, [kind.shape, kind.place || kind.module || kind.name].filter(Boolean).join("  ·  "))));
    }
    this.rows.replaceChildren(...rows);
    if (this.at >= first && this.at < last) this.list.setAttribute("aria-activedescendant", `item-${this.at}`);
    else this.list.removeAttribute("aria-activedescendant");
  }

  words(node) {
    const { kind } = node, inputs = [];
    for (let k = 0; k < node.ins.length; k += 3) inputs.push(node.home[node.ins[k]].kind.title);
    return [kind.title, kind.name, kind.shapes && `shape ${kind.shapes}`, kind.module && `module ${kind.module}`, kind.place && `line ${kind.place}`,
            inputs.length && `from ${inputs.slice(0, 6).join(", ")}`, kind.bytes && `holds ${bytesText(kind.bytes)}`].filter(Boolean).join("; ");
  }

  choose(at) {
    const node = this.entries[at];
    if (node) this.app.selectNode(node, true);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.list.clientHeight / ROW) - 1), { key } = event;
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[key];
    if (move !== undefined && !event.shiftKey) {
      const to = this.at < 0 ? 0 : Math.max(0, Math.min(this.entries.length - 1, this.at + move));
      this.choose(to);
      event.preventDefault(); event.stopPropagation();
    } else if (key === "Enter") {
      if (this.at < 0) this.choose(0);
      byId("panel").focus();
      event.preventDefault(); event.stopPropagation();
    }
  }
}
