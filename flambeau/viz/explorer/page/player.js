// The playback: a moment in the events of a step. null is rest, the whole graph as it was at the end;
// k means that the first k events have happened.

class Player {
  constructor(app) {
    this.app = app;
    this.playing = false;
    byId("to-start").onclick = () => this.go(0);
    byId("to-end").onclick = () => this.go(this.last);
    byId("back").onclick = () => this.move(-1);
    byId("on").onclick = () => this.move(1);
    byId("play").onclick = () => this.toggle();
    byId("rest").onclick = () => this.go(null);
    byId("moment").addEventListener("input", (event) => this.go(Number(event.target.value)));
    byId("speed").addEventListener("change", () => { this.since = null; });
  }

  get last() { return this.app.step.events.length; }

  go(moment, byPlay = false) {
    if (!byPlay) this.stop();
    if (!this.last) return;
    this.app.setMoment(moment === null ? null : Math.max(0, Math.min(this.last, moment)), byPlay);
  }

  move(by) {
    const { moment } = this.app;
    this.go(moment === null ? (by > 0 ? 1 : this.last - 1) : moment + by);
  }

  toggle() { if (this.playing) this.stop(); else this.start(); }

  start() {
    if (!this.last) return;
    if (this.app.moment === null || this.app.moment >= this.last) this.go(0);
    this.playing = true;
    this.since = null;
    this.show();
    requestAnimationFrame((now) => this.tick(now));
  }

  stop() {
    if (!this.playing) return;
    this.playing = false;
    this.show();
  }

  // About two events a second at speed 1, more where the whole would take over two minutes.
  tick(now) {
    if (!this.playing) return;
    const rate = Number(byId("speed").value) * Math.max(2, this.last / 120);
    if (this.since === null) { this.since = now; this.from = this.app.moment; }
    const to = Math.min(this.last, this.from + Math.floor((now - this.since) / 1000 * rate));
    if (to !== this.app.moment) this.go(to, true);
    if (to >= this.last) { this.stop(); return; }
    requestAnimationFrame((then) => this.tick(then));
  }

  // What a node shows at the moment.
  stateOf(node, moment) {
    const forward = eventAt(node, FORWARD, moment), backward = eventAt(node, BACKWARD, moment);
    const grown = eventAt(node, ACCUMULATE, moment), freed = eventAt(node, FREE, moment);
    const state = { done: node.kind.leaf || Boolean(forward), adjoint: Boolean(backward || grown), freed: Boolean(freed), words: "" };
    const stats = grown ? grown.grad || grown.stats : backward ? backward.stats : forward && forward.stats;
    if (stats) state.words = `${grown ? ".grad " : backward ? "∂ " : ""}${statsText(stats)}`;
    return state;
  }

  describe(event) {
    const { node, code, stats } = event, { kind } = node;
    if (code === FORWARD) return [kind.title, `${kind.shape}${stats ? ` = ${statsText(stats)}` : ""}`];
    if (code === BACKWARD) return [kind.title, stats ? `adjoint ${statsText(stats)}` : "sends its adjoint to its inputs"];
    if (code === ACCUMULATE) {
      if (event.captured) return [kind.title, stats ? `gradient taken, ${statsText(stats)}` : "gradient taken"];
      return [kind.title, event.grad ? `.grad is now ${statsText(event.grad)}` : "adds to .grad"];
    }
    return [kind.title, `frees ${bytesText(event.bytes || kind.bytes)}`];
  }

  show() {
    const { app } = this, { step, moment } = app, slider = byId("moment");
    const event = moment ? step.events[moment - 1] : null;
    slider.max = this.last;
    slider.value = moment === null ? this.last : moment;
    byId("rest").hidden = moment === null;
    const play = byId("play");
    play.textContent = this.playing ? "❚❚" : "▶";
    play.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    play.title = `${this.playing ? "Pause" : "Play"} (Space)`;
    for (const name of ["to-start", "back"]) byId(name).disabled = !this.last || moment === 0;
    for (const name of ["to-end", "on"]) byId(name).disabled = !this.last || moment === this.last;
    play.disabled = slider.disabled = !this.last;
    const [title, words] = event ? this.describe(event) : [null, ""];
    const name = byId("event-name"), phase = event ? EVENT_NAMES[event.code] : "";
    name.replaceChildren();
    if (event) {
      name.append(el("span", { class: event.code === FORWARD ? "forward" : "backward", style: "display:inline" }, phase), ` ${title}`);
      byId("event-words").textContent = `${moment} of ${this.last}  ·  ${words}`;
    } else {
      name.textContent = !this.last ? "No events" : moment === 0 ? "Before anything ran" : "Whole graph";
      byId("event-words").textContent = !this.last ? "" : moment === 0 ? `0 of ${this.last}` :
        `${countText(step.turning, "forward step")}, then ${countText(this.last - step.turning, "backward event")}`;
    }
    slider.setAttribute("aria-valuetext", event ? `${moment} of ${this.last}: ${phase} ${title}, ${words}` : name.textContent);
    const held = moment === null ? step.most : step.memory[moment];
    byId("held").replaceChildren(this.last ? `${moment === null ? "peak" : "held"} ` : "", el("b", {}, this.last ? bytesText(held) : ""));
    const mark = byId("memory").querySelector(".mark");
    if (mark) mark.setAttribute("x", (this.last ? (moment ?? this.last) / this.last : 0) * 1000 - 1);
    return event && `${phase} ${title}, ${words}`;
  }

  // The memory held after each event, as a hill behind the slider; where backward begins, a line.
  paintMemory() {
    const { step } = this.app, picture = byId("memory"), high = 25, wide = 1000;
    picture.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    picture.replaceChildren();
    if (!this.last) return;
    const most = step.most || 1, stride = Math.max(1, Math.floor(this.last / 1000));
    let path = `M0 ${high}`;
    for (let k = 0; k <= this.last; k += stride) {
      path += `L${(k / this.last * wide).toFixed(1)} ${(high - step.memory[k] / most * (high - 3)).toFixed(1)}`;
    }
    path += `L${wide} ${(high - step.memory[this.last] / most * (high - 3)).toFixed(1)}L${wide} ${high}Z`;
    const turn = step.turning / this.last * wide;
    picture.append(svg("rect", { x: 0, y: 0, width: turn, height: high, fill: "var(--forward)", opacity: 0.07 }),
      svg("rect", { x: turn, y: 0, width: wide - turn, height: high, fill: "var(--backward)", opacity: 0.08 }),
      svg("path", { d: path, fill: "var(--leaf)", opacity: 0.32 }),
      svg("rect", { x: turn - 0.75, y: 0, width: 1.5, height: high, fill: "var(--backward)", opacity: 0.6 }),
      svg("rect", { class: "mark", x: 0, y: 0, width: 2, height: high, fill: "var(--accent)" }));
  }
}
