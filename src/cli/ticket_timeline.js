// The interactive timeline of a ticket: wheel zooms, drag measures, hover names. It draws the data of the element
// #timeline-data; names are only ever set as text. Without this script the page shows a still picture.
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("timeline-data").textContent);
  const box = document.getElementById("timeline"), canvas = document.getElementById("lanes"), g = canvas.getContext("2d");
  const note = document.getElementById("timeline-note"), table = document.getElementById("timeline-sums");
  const LANE = 22, GAP = 4, AXIS = 22, digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const value = {};
  for (let i = 0; i < 64; i++) value[digits[i]] = i;

  // A row is a sequence of blocks: length in ns, number of entries, then (entry, ns) of each. Numbers have five bits per
  // digit, the lowest first; digits from 32 on continue.
  function decode(text) {
    const blocks = [];
    let at = 0, t = 0;
    function number() {
      let n = 0, scale = 1, d;
      do {
        d = value[text[at++]];
        n += (d & 31) * scale;
        scale *= 32;
      } while (d > 31);
      return n;
    }
    while (at < text.length) {
      const length = number(), parts = [];
      for (let k = number(); k > 0; k--) parts.push([number(), number()]);
      blocks.push({ t: t, n: length, parts: parts });
      t += length;
    }
    return blocks;
  }
  const rows = data.rows.map(r => ({ name: r.name, cpu: r.cpu, entries: r.entries, blocks: decode(r.blocks) }));
  const span = data.span;
  let from = 0, to = span, drag = null, range = null;

  const style = () => getComputedStyle(document.documentElement);
  const colour = kind => style().getPropertyValue("--" + kind).trim();
  function duration(ns) {
    if (ns < 1) return "0";
    const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
    const [scale, name] = units.find(u => ns >= u[0]) || units[3];
    const v = ns / scale;
    return (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2)) + " " + name;
  }
  // Time of day in UTC; data.second is the second in which the window starts, data.fraction the ns after it.
  function clock(ns, step) {
    const all = data.fraction + ns, s = Math.floor(all / 1e9), d = new Date((data.second + s) * 1000);
    const places = step >= 1e9 ? 0 : Math.min(9, Math.ceil(9 - Math.log10(step)));
    const fraction = String(Math.floor(all - s * 1e9)).padStart(9, "0").slice(0, places);
    return d.toISOString().slice(11, 19) + (places ? "." + fraction : "");
  }
  // Index of the block that contains t.
  function find(blocks, t) {
    let a = 0, b = blocks.length - 1;
    while (a < b) {
      const m = (a + b + 1) >> 1;
      if (blocks[m].t <= t) a = m; else b = m - 1;
    }
    return a;
  }
  // Sums of a row within [a, b): ns by entry. Blocks at the edges count in proportion.
  function sums(row, a, b) {
    const ns = new Array(row.entries.length).fill(0);
    for (let i = find(row.blocks, a); i < row.blocks.length && row.blocks[i].t < b; i++) {
      const k = row.blocks[i], part = (Math.min(b, k.t + k.n) - Math.max(a, k.t)) / k.n;
      if (part > 0) for (const [e, n] of k.parts) ns[e] += n * part;
    }
    return ns;
  }

  const left = () => (canvas.clientWidth < 600 ? 0 : 210);
  const top_of = i => AXIS + i * (LANE + GAP + (left() ? 0 : 14)) + (left() ? 0 : 14);
  const x_of = t => left() + (t - from) / (to - from) * (canvas.clientWidth - left());
  const t_of = x => from + (x - left()) / (canvas.clientWidth - left()) * (to - from);

  function draw() {
    const w = canvas.clientWidth, h = top_of(rows.length) + 2, ratio = window.devicePixelRatio || 1;
    canvas.style.height = h + "px";
    canvas.width = w * ratio;
    canvas.height = h * ratio;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    const ink = colour("ink"), soft = colour("soft"), line = colour("line"), kinds = {};
    for (const k of ["ran", "stolen", "own", "vmm", "throttled", "idle", "unknown"]) kinds[k] = colour(k);
    const about = (to - from) / Math.max(2, (w - left()) / 110), power = 10 ** Math.floor(Math.log10(about));
    const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= about);
    for (let t = Math.ceil((data.fraction + from) / step) * step - data.fraction; t < to; t += step) {
      if (x_of(t) < left()) continue;
      g.fillStyle = line;
      g.fillRect(x_of(t), AXIS - 4, 1, h - AXIS);
      g.fillStyle = soft;
      g.fillText(clock(t, step), x_of(t) + 3, AXIS / 2);
    }
    rows.forEach((row, i) => {
      const y = top_of(i), pixels = Math.ceil(w - left());
      g.fillStyle = ink;
      if (left()) g.fillText(row.name, 0, y + LANE / 2, left() - 8);
      else g.fillText(row.name, 0, y - 8, w);
      // One column per pixel: what it lost stands from the bottom, in proportion.
      for (let p = 0; p < pixels; p++) {
        const a = t_of(left() + p), b = t_of(left() + p + 1), ns = sums(row, Math.max(0, a), Math.min(span, b));
        const by = {};
        ns.forEach((n, e) => { if (n) by[row.entries[e].kind] = (by[row.entries[e].kind] || 0) + n; });
        let y1 = y + LANE;
        for (const k of ["stolen", "throttled", "vmm", "own", "ran", "unknown"]) {
          if (!by[k]) continue;
          const height = Math.min(LANE, by[k] / (b - a) * LANE);
          g.fillStyle = kinds[k];
          g.fillRect(left() + p, y1 - height, 1, height);
          y1 -= height;
        }
        g.fillStyle = kinds.idle;
        g.fillRect(left() + p, y + LANE, 1, 1);
      }
      names(row, y);
    });
    if (range) {
      g.fillStyle = colour("ink");
      g.globalAlpha = 0.15;
      g.fillRect(x_of(range[0]), AXIS, x_of(range[1]) - x_of(range[0]), h - AXIS);
      g.globalAlpha = 1;
    }
    show_sums();
  }
  // Writes names into bars that are wide enough; neighbours with the same entry are one bar.
  function names(row, y) {
    let i = find(row.blocks, Math.max(0, from));
    while (i < row.blocks.length && row.blocks[i].t < to) {
      const parts = row.blocks[i].parts, x = Math.max(left(), x_of(row.blocks[i].t));
      const same = k => k.parts.length === 1 && k.parts[0][0] === parts[0][0];
      for (i++; parts.length === 1 && i < row.blocks.length && row.blocks[i].t < to && same(row.blocks[i]); i++);
      const end = Math.min(canvas.clientWidth, x_of(i < row.blocks.length ? row.blocks[i].t : span));
      if (end - x < 40 || parts.length !== 1) continue;
      const e = row.entries[parts[0][0]];
      if (e.kind === "idle") continue;
      g.save();
      g.beginPath();
      g.rect(x, y, end - x - 2, LANE);
      g.clip();
      g.fillStyle = e.kind === "ran" || e.kind === "unknown" ? "#101418" : "#fff";
      g.fillText(e.name, x + 4, y + LANE / 2);
      g.restore();
    }
  }
  function cell(tr, text, number) {
    const td = document.createElement("td");
    td.textContent = text;
    if (number) td.className = "n";
    tr.appendChild(td);
  }
  function show_sums() {
    const [a, b] = range || [from, to];
    table.textContent = "";
    rows.forEach(row => {
      const ns = sums(row, a, b), order = ns.map((n, e) => e).filter(e => ns[e] > 0 && row.entries[e].kind !== "idle" &&
        (row.cpu || row.entries[e].kind !== "ran")).sort((x, y) => ns[y] - ns[x]).slice(0, 3);
      const counts = e => e.kind === "ran" || (row.cpu && e.kind !== "idle");
      const ran = ns.reduce((s, n, e) => s + (counts(row.entries[e]) ? n : 0), 0);
      const tr = document.createElement("tr");
      cell(tr, row.name);
      cell(tr, duration(ran), true);
      cell(tr, order.map(e => row.entries[e].name + " " + duration(ns[e])).join(", "));
      table.appendChild(tr);
    });
    document.getElementById("timeline-range").textContent = (range ? "range " : "shown: ") + duration(b - a) + ", " +
      clock(a, (b - a) / 1000) + " to " + clock(b, (b - a) / 1000);
  }
  function show(a, b) {
    const n = Math.min(span, Math.max(50, b - a));
    from = Math.min(Math.max(0, a), span - n);
    to = from + n;
    draw();
  }
  function zoom(factor, t) {
    show(t - (t - from) * factor, t + (to - t) * factor);
  }
  canvas.addEventListener("wheel", e => {
    e.preventDefault();
    zoom(e.deltaY < 0 ? 0.8 : 1.25, t_of(e.offsetX));
  }, { passive: false });
  canvas.addEventListener("pointerdown", e => {
    drag = t_of(e.offsetX);
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener("pointermove", e => {
    const t = Math.min(span, Math.max(0, t_of(e.offsetX)));
    if (drag !== null && Math.abs(x_of(drag) - e.offsetX) > 3) {
      range = [Math.min(drag, t), Math.max(drag, t)];
      draw();
      return;
    }
    const i = rows.findIndex((r, k) => e.offsetY >= top_of(k) && e.offsetY < top_of(k) + LANE);
    if (i < 0 || e.offsetX < left()) return;
    const block = rows[i].blocks[find(rows[i].blocks, t)];
    note.textContent = rows[i].name + ", " + clock(t, 1000) + ": " + (block.parts.map(([k, n]) =>
      rows[i].entries[k].name + (block.parts.length > 1 ? " " + duration(n) : "")).join(", ") || "not alive") +
      " (" + duration(block.n) + ")";
  });
  canvas.addEventListener("pointerup", () => {
    if (drag !== null && !range) draw();
    drag = null;
  });
  canvas.addEventListener("dblclick", () => {
    if (range) show(range[0], range[1]);
    range = null;
    draw();
  });
  canvas.addEventListener("keydown", e => {
    const n = to - from, middle = (from + to) / 2;
    const keys = {
      ArrowLeft: () => show(from - n / 4, to - n / 4), ArrowRight: () => show(from + n / 4, to + n / 4),
      "+": () => zoom(0.5, middle), "=": () => zoom(0.5, middle), w: () => zoom(0.5, middle),
      "-": () => zoom(2, middle), s: () => zoom(2, middle), "0": () => show(0, span), Home: () => show(0, span),
      Enter: () => range && show(range[0], range[1]), Escape: () => { range = null; draw(); },
    };
    if (keys[e.key]) {
      e.preventDefault();
      keys[e.key]();
    }
  });
  // Links "#at=START+LENGTH", in ns since the start of the window, show their place.
  function follow() {
    const m = /^#at=(\d+)\+(\d+)$/.exec(location.hash);
    if (!m) return;
    const a = Number(m[1]), n = Number(m[2]);
    range = [a, a + n];
    show(a - 2 * n, a + 3 * n);
    box.scrollIntoView({ block: "nearest" });
  }
  window.addEventListener("hashchange", follow);
  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.documentElement.classList.add("scripted");
  show(data.moment[0] - 3 * data.moment[1], data.moment[0] + 4 * data.moment[1]);
  follow();
})();
