// A layered layout: boxes in rows by how far they are from the inputs, edges downward.
//
// problem: { widths, heights, order, tails, heads } (typed arrays; order[i] is the box's place in time),
//          and optionally fold: whether a tall drawing is broken into columns; pins: for each box 1 to keep it
//          in the first row (where edges come in), 2 in the last (where they go out), else 0.
// answer:  { x, y (centres), layer, width, height, routes }; routes[e] is a flat list x, y, x, y ... of
//          the points between the two ends of edge e, null where the edge goes straight.
//
// The function stands by itself: its text is also the program of the worker that lays out large graphs.
function layeredLayout(problem) {
  const GAP_X = 24, GAP_Y = 40, DUMMY = 12, LONGEST = 24;
  const { widths, heights, order, pins } = problem;
  const count = widths.length;
  const answer = { x: new Float64Array(count), y: new Float64Array(count), layer: new Int32Array(count),
                   width: 0, height: 0, routes: new Array(problem.tails.length).fill(null) };
  if (!count) return answer;

  // Parts that no edge joins are laid out by themselves and set on shelves, in the order of time.
  function parts() {
    const owner = Int32Array.from({ length: count }, (_, v) => v);
    const root = (v) => { while (owner[v] !== v) v = owner[v] = owner[owner[v]]; return v; };
    for (let e = 0; e < problem.tails.length; e++) owner[root(problem.tails[e])] = root(problem.heads[e]);
    const found = new Map();
    for (let v = 0; v < count; v++) {
      const r = root(v);
      (found.get(r) || found.set(r, { boxes: [], edges: [] }).get(r)).boxes.push(v);
    }
    for (let e = 0; e < problem.tails.length; e++) found.get(root(problem.tails[e])).edges.push(e);
    return [...found.values()];
  }
  function shelved(pieces) {
    const inside = new Int32Array(count);
    let area = 0, widest = 0;
    for (const piece of pieces) {
      piece.boxes.forEach((v, k) => { inside[v] = k; });
      const of = (values) => Float64Array.from(piece.boxes, (v) => values[v]);
      piece.laid = layeredLayout({ widths: of(widths), heights: of(heights), order: of(order), fold: problem.fold,
        tails: piece.edges.map((e) => inside[problem.tails[e]]), heads: piece.edges.map((e) => inside[problem.heads[e]]) });
      piece.first = Math.min(...of(order));
      area += (piece.laid.width + GAP_X) * (piece.laid.height + GAP_Y);
      widest = Math.max(widest, piece.laid.width);
    }
    pieces.sort((a, b) => a.first - b.first);
    const room = Math.max(widest, Math.sqrt(area * 1.5));
    let left = 0, top = 0, shelf = 0;
    for (const { boxes, edges, laid } of pieces) {
      if (left && left + laid.width > room) { left = 0; top += shelf + GAP_Y; shelf = 0; }
      boxes.forEach((v, k) => { answer.x[v] = laid.x[k] + left; answer.y[v] = laid.y[k] + top; answer.layer[v] = laid.layer[k]; });
      edges.forEach((e, k) => { answer.routes[e] = laid.routes[k] && laid.routes[k].map((p, j) => p + (j % 2 ? top : left)); });
      answer.width = Math.max(answer.width, left + laid.width);
      answer.height = Math.max(answer.height, top + laid.height);
      left += laid.width + GAP_X;
      shelf = Math.max(shelf, laid.height);
    }
    return answer;
  }
  if (!pins) {
    const pieces = parts();
    if (pieces.length > 1) return shelved(pieces);
  }

  // An edge against time closes a circle (a line in a loop, a ghost of an earlier step): it is drawn, but
  // does not count for the layers.
  const tails = [], heads = [], names = [];
  for (let e = 0; e < problem.tails.length; e++) {
    const a = problem.tails[e], b = problem.heads[e];
    if (order[a] < order[b]) { tails.push(a); heads.push(b); names.push(e); }
  }

  function adjacency(n, from, to) {
    const start = new Int32Array(n + 1);
    for (const v of from) start[v + 1]++;
    for (let v = 0; v < n; v++) start[v + 1] += start[v];
    const fill = start.slice(0, n), list = new Int32Array(from.length);
    for (let e = 0; e < from.length; e++) list[fill[from[e]]++] = to[e];
    return { start, list };
  }

  const inTime = Array.from({ length: count }, (_, i) => i).sort((a, b) => order[a] - order[b]);
  const below = adjacency(count, tails, heads), above = adjacency(count, heads, tails);
  const layer = answer.layer;

  function assignLayers() {
    for (const v of inTime) {
      let depth = 0;
      for (let k = above.start[v]; k < above.start[v + 1]; k++) depth = Math.max(depth, layer[above.list[k]] + 1);
      layer[v] = depth;
    }
    // What has no more edges in than out moves down to what uses it: a parameter stands by its product.
    for (let round = 0; round < 2; round++) {
      for (let k = count - 1; k >= 0; k--) {
        const v = inTime[k];
        const ins = above.start[v + 1] - above.start[v], outs = below.start[v + 1] - below.start[v];
        if (!outs || ins > outs || (pins && pins[v])) continue;
        let lowest = Infinity;
        for (let j = below.start[v]; j < below.start[v + 1]; j++) lowest = Math.min(lowest, layer[below.list[j]]);
        layer[v] = Math.max(layer[v], lowest - 1);
      }
    }
    if (pins) {
      let last = 0;
      for (let v = 0; v < count; v++) if (!pins[v]) last = Math.max(last, ++layer[v]);
      for (let v = 0; v < count; v++) if (pins[v]) layer[v] = pins[v] === 1 ? 0 : last + 1;
    }
    const used = [...new Set(layer)].sort((a, b) => a - b), rank = new Map(used.map((l, i) => [l, i]));
    for (let v = 0; v < count; v++) layer[v] = rank.get(layer[v]);
    return used.length;
  }
  const depth = assignLayers();

  // Columns: a drawing much taller than wide is cut where few edges cross, like text on a page.
  const columnOf = new Int32Array(depth);
  let columns = 1;
  function fold() {
    const rowHeight = new Float64Array(depth), rowWidth = new Float64Array(depth);
    for (let v = 0; v < count; v++) {
      rowHeight[layer[v]] = Math.max(rowHeight[layer[v]], heights[v]);
      rowWidth[layer[v]] += widths[v] + GAP_X;
    }
    let tall = 0, wide = 0;
    for (let l = 0; l < depth; l++) { tall += rowHeight[l] + GAP_Y; wide = Math.max(wide, rowWidth[l]); }
    wide = Math.min(wide, 2200);
    if (!problem.fold || tall < 2600 || tall < 3 * wide) return;
    const parts = Math.max(1, Math.round(Math.sqrt(1.2 * tall / (1.6 * wide + 150))));
    if (parts < 2) return;
    const crossing = new Int32Array(depth + 1);
    for (let e = 0; e < tails.length; e++) {
      const a = layer[tails[e]], b = layer[heads[e]];
      if (b - a <= LONGEST) { crossing[a + 1]++; crossing[b + 1]--; }
    }
    for (let l = 1; l <= depth; l++) crossing[l] += crossing[l - 1];
    let filled = 0, column = 0, left = tall, each = tall / parts;
    for (let l = 0; l < depth; l++) {
      filled += rowHeight[l] + GAP_Y;
      columnOf[l] = column;
      if (filled < each * 0.96 || column === parts - 1) continue;
      let cut = l + 1;
      for (let k = cut + 1; k < Math.min(depth, cut + 5); k++) if (crossing[k] < crossing[cut]) cut = k;
      for (; l + 1 < cut; l++) {
        columnOf[l + 1] = column;
        filled += rowHeight[l + 1] + GAP_Y;
      }
      left -= filled;
      filled = 0;
      each = left / (parts - ++column);
    }
    columns = column + 1;
  }
  fold();

  // Dummies carry an edge through the layers that it passes; edges too long for that go straight.
  const layers = Array.from({ length: depth }, () => []);
  for (const v of inTime) layers[layer[v]].push(v);
  const vLayer = Array.from(layer), vWidth = Array.from(widths), segTail = [], segHead = [];
  const chains = [];
  let budget = 6 * count + 2000;
  for (let e = 0; e < tails.length; e++) {
    const a = tails[e], b = heads[e], span = layer[b] - layer[a];
    if (span > LONGEST || span - 1 > budget || columnOf[layer[a]] !== columnOf[layer[b]]) continue;
    budget -= span - 1;
    let last = a;
    const chain = [];
    for (let l = layer[a] + 1; l < layer[b]; l++) {
      const d = vLayer.length;
      vLayer.push(l); vWidth.push(DUMMY); layers[l].push(d);
      segTail.push(last); segHead.push(d); chain.push(d);
      last = d;
    }
    segTail.push(last); segHead.push(b);
    chains.push([names[e], chain]);
  }
  const total = vLayer.length;
  const down = adjacency(total, segTail, segHead), up = adjacency(total, segHead, segTail);
  const place = new Float64Array(total);
  const renumber = (row) => { for (let k = 0; k < row.length; k++) place[row[k]] = k; };
  layers.forEach(renumber);

  function crossings() {
    let sum = 0;
    for (let l = 1; l < depth; l++) {
      const tree = new Int32Array(layers[l - 1].length + 2);
      let seen = 0;
      for (const v of layers[l]) {
        const ends = [];
        for (let k = up.start[v]; k < up.start[v + 1]; k++) ends.push(place[up.list[k]]);
        for (const p of ends) {
          let before = 0;
          for (let i = p + 1; i > 0; i -= i & -i) before += tree[i];
          sum += seen - before;
        }
        for (const p of ends) {
          for (let i = p + 1; i < tree.length; i += i & -i) tree[i]++;
          seen++;
        }
      }
    }
    return sum;
  }

  // Order within layers: by the mean place of the neighbours, downward and upward by turns.
  function sweep(rows, side) {
    const want = new Float64Array(total);
    for (const row of rows) {
      if (row.length < 2) continue;
      for (const v of row) {
        const first = side.start[v], last = side.start[v + 1];
        if (first === last) { want[v] = place[v]; continue; }
        let sum = 0;
        for (let k = first; k < last; k++) sum += place[side.list[k]];
        want[v] = sum / (last - first);
      }
      row.sort((a, b) => want[a] - want[b] || place[a] - place[b]);
      renumber(row);
    }
  }
  const small = total < 4000, upward = layers.slice().reverse();
  let best = layers.map((row) => row.slice()), fewest = small ? crossings() : Infinity;
  for (let round = 0; round < (small ? 10 : 4) && fewest > 0; round++) {
    if (round % 2) sweep(upward, down); else sweep(layers, up);
    if (!small) continue;
    const now = crossings();
    if (now < fewest) { fewest = now; best = layers.map((row) => row.slice()); }
  }
  if (small) for (let l = 0; l < depth; l++) { layers[l].splice(0, layers[l].length, ...best[l]); renumber(layers[l]); }

  // Horizontal places: each row as near to its neighbours' as its order and the gaps allow (the exact
  // least squares answer by pooling adjacent violators), rows by turns downward and upward.
  const x = new Float64Array(total);
  for (const row of layers) {
    let at = 0;
    for (const v of row) { x[v] = at + vWidth[v] / 2; at += vWidth[v] + GAP_X; }
    for (const v of row) x[v] -= at / 2;
  }
  function settle(row, want, weight) {
    const blocks = []; // [sum of weights, weighted sum of targets less offsets, first, last]
    let offset = 0;
    const offsets = new Float64Array(row.length);
    for (let k = 0; k < row.length; k++) {
      const v = row[k];
      if (k) {
        const thin = row[k - 1] >= count && v >= count;
        offset += (vWidth[row[k - 1]] + vWidth[v]) / 2 + (thin ? 6 : GAP_X);
      }
      offsets[k] = offset;
      let block = [weight[k], weight[k] * (want[k] - offset), k, k];
      while (blocks.length && blocks[blocks.length - 1][1] / blocks[blocks.length - 1][0] >= block[1] / block[0]) {
        const left = blocks.pop();
        block = [left[0] + block[0], left[1] + block[1], left[2], block[3]];
      }
      blocks.push(block);
    }
    for (const [w, s, first, last] of blocks) for (let k = first; k <= last; k++) x[row[k]] = s / w + offsets[k];
  }
  const rounds = total < 4000 ? 14 : 6;
  for (let round = 0; round < rounds; round++) {
    const rows = round % 2 ? upward : layers, near = round % 2 ? down : up, far = round % 2 ? up : down;
    const both = round >= rounds - 2;
    for (const row of rows) {
      const want = new Float64Array(row.length), weight = new Float64Array(row.length);
      row.forEach((v, k) => {
        let sum = 0, heavy = 0;
        for (const side of both ? [near, far] : [near]) {
          for (let j = side.start[v]; j < side.start[v + 1]; j++) {
            const u = side.list[j], pull = u >= count && v >= count ? 8 : u >= count || v >= count ? 2 : 1;
            sum += pull * x[u];
            heavy += pull;
          }
        }
        want[k] = heavy ? sum / heavy : x[v];
        weight[k] = heavy || 0.05;
      });
      settle(row, want, weight);
    }
  }

  // Vertical places, column by column.
  const rowHeight = new Float64Array(depth);
  for (let v = 0; v < count; v++) rowHeight[layer[v]] = Math.max(rowHeight[layer[v]], heights[v]);
  const rowY = new Float64Array(depth), left = new Float64Array(columns).fill(Infinity);
  const right = new Float64Array(columns).fill(-Infinity);
  for (let v = 0; v < total; v++) {
    const c = columnOf[vLayer[v]];
    left[c] = Math.min(left[c], x[v] - vWidth[v] / 2);
    right[c] = Math.max(right[c], x[v] + vWidth[v] / 2);
  }
  const shift = new Float64Array(columns);
  let at = 0;
  for (let c = 0; c < columns; c++) { shift[c] = at - left[c]; at += right[c] - left[c] + 110; }
  answer.width = at - 110;
  let y = 0;
  for (let l = 0; l < depth; l++) {
    if (l && columnOf[l] !== columnOf[l - 1]) y = 0;
    else if (l && pins && (rowHeight[l] === 0 || rowHeight[l - 1] === 0)) y -= GAP_Y - 14; // a row of pins
    rowY[l] = y + rowHeight[l] / 2;
    answer.height = Math.max(answer.height, y + rowHeight[l]);
    y += rowHeight[l] + GAP_Y;
  }
  for (let v = 0; v < count; v++) {
    answer.x[v] = x[v] + shift[columnOf[layer[v]]];
    answer.y[v] = rowY[layer[v]];
  }
  // Boxes of very different heights: each as high up as what stands above it allows, instead of rows.
  const tallest = Math.max(...heights);
  if (tallest > 150 && total < 1500 && columns === 1) {
    const top = new Float64Array(total), high = new Float64Array(total), done = [];
    for (let v = 0; v < count; v++) high[v] = heights[v];
    const overlap = (u, v) => Math.abs(x[u] - x[v]) < (vWidth[u] + vWidth[v]) / 2 + (u < count && v < count ? 14 : 4);
    const pinned = (v) => (pins && v < count ? pins[v] : 0);
    let least = 14; // how far down the row above begins: what has no inputs stands no higher than that
    for (const row of layers) {
      for (const v of row) {
        let y = pinned(v) ? 0 : up.start[v] === up.start[v + 1] ? least : 14;
        for (let k = up.start[v]; k < up.start[v + 1]; k++) {
          const u = up.list[k];
          y = Math.max(y, top[u] + high[u] + (pinned(u) ? 14 : u < count && v < count ? GAP_Y : GAP_Y / 2));
        }
        for (const u of done) if (overlap(u, v)) y = Math.max(y, top[u] + high[u] + (u < count && v < count ? GAP_Y - 12 : 8));
        top[v] = y;
      }
      done.push(...row);
      least = Math.max(least, ...row.filter((v) => !pinned(v)).map((v) => top[v]));
    }
    let end = 0;
    for (let v = 0; v < total; v++) if (pinned(v) !== 2) end = Math.max(end, top[v] + high[v]);
    for (let v = 0; v < count; v++) if (pinned(v) === 2) top[v] = end + 14;
    for (const row of upward) { // then what may stand lower does: by what uses it
      for (const v of row) {
        if (v >= count || pinned(v) || up.start[v + 1] - up.start[v] > down.start[v + 1] - down.start[v]) continue;
        let y = Infinity;
        for (let k = down.start[v]; k < down.start[v + 1]; k++) y = Math.min(y, top[down.list[k]] - high[v] - GAP_Y);
        if (y === Infinity) continue;
        for (const u of done) if (u !== v && top[u] >= top[v] + high[v] && overlap(u, v)) y = Math.min(y, top[u] - high[v] - 14);
        top[v] = Math.max(top[v], y);
      }
    }
    answer.height = Math.max(...Array.from(top, (t, v) => t + high[v]));
    for (let v = 0; v < count; v++) answer.y[v] = top[v] + high[v] / 2;
    for (const [e, chain] of chains) {
      const points = [];
      chain.forEach((d, k) => {
        const next = k + 1 < chain.length ? top[chain[k + 1]] : top[problem.heads[e]];
        points.push(x[d] + shift[0], top[d], x[d] + shift[0], Math.max(top[d], next - GAP_Y));
      });
      answer.routes[e] = points;
    }
    return answer;
  }

  for (const [e, chain] of chains) {
    if (!chain.length) { answer.routes[e] = []; continue; }
    const points = [];
    for (const d of chain) {
      const l = vLayer[d];
      points.push(x[d] + shift[columnOf[l]], rowY[l] - rowHeight[l] / 2, x[d] + shift[columnOf[l]],
                  rowY[l] + rowHeight[l] / 2);
    }
    answer.routes[e] = points;
  }
  return answer;
}
