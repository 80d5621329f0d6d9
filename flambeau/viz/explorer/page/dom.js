// Small pieces of page: elements, and icons drawn as paths.

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const byId = (id) => document.getElementById(id);

// Bars of a histogram from its least value to its greatest, zero marked where it lies between.
function histogram(stats, colour) {
  const width = 288, height = 64, most = Math.max(1, ...stats.bins), count = stats.bins.length, step = width / count;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height + 16}`, class: "histogram", role: "img",
    "aria-label": `histogram of ${stats.count} values from ${numberText(stats.min)} to ${numberText(stats.max)}` });
  stats.bins.forEach((bin, k) => {
    const tall = bin ? Math.max(1.5, bin / most * height) : 0;
    const bar = svg("rect", { x: (k * step + 0.6).toFixed(1), y: (height - tall).toFixed(1), width: (step - 1.2).toFixed(1),
                              height: tall.toFixed(1), rx: 1, fill: colour });
    const wide = (stats.max - stats.min) / count;
    bar.append(svg("title", {}, `${numberText(stats.min + k * wide, 3)} … ${numberText(stats.min + (k + 1) * wide, 3)}: ${bin}`));
    picture.append(bar);
  });
  picture.append(svg("line", { x1: 0, x2: width, y1: height + 0.5, y2: height + 0.5, class: "axis" }));
  if (stats.min < 0 && stats.max > 0) {
    const x = -stats.min / (stats.max - stats.min) * width;
    picture.append(svg("line", { x1: x, x2: x, y1: 0, y2: height, class: "zero" }));
    if (x > 50 && x < width - 50) picture.append(svg("text", { x, y: height + 13, "text-anchor": "middle" }, "0"));
  }
  picture.append(svg("text", { x: 0, y: height + 13 }, numberText(stats.min, 3)),
                 svg("text", { x: width, y: height + 13, "text-anchor": "end" }, numberText(stats.max, 3)));
  return picture;
}

// A line through numbers, one for each training step; the current one is marked.
function sparkline(values, current, colour, label) {
  const known = values.filter((v) => typeof v === "number"), width = 288, height = 40;
  const low = Math.min(...known), high = Math.max(...known), span = high - low || 1;
  const x = (k) => 3 + k / Math.max(1, values.length - 1) * (width - 6), y = (v) => 4 + (1 - (v - low) / span) * (height - 8);
  let path = "", drawing = false;
  values.forEach((v, k) => {
    if (typeof v !== "number") { drawing = false; return; }
    path += `${drawing ? "L" : "M"}${x(k).toFixed(1)} ${y(v).toFixed(1)}`;
    drawing = true;
  });
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "sparkline", role: "img", "aria-label": label });
  picture.append(svg("path", { d: path, fill: "none", stroke: colour, "stroke-width": 1.6, "stroke-linejoin": "round" }));
  if (typeof values[current] === "number") picture.append(svg("circle", { cx: x(current), cy: y(values[current]), r: 3.4, fill: colour }));
  return picture;
}
