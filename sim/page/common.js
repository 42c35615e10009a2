"use strict";
// What the pages of a core and of a fabric share.
const $ = id => document.getElementById(id);
const el = (tag, text, cls) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; if (cls) e.className = cls; return e; };
const num = n => Math.round(n).toLocaleString("en-US");
const share = (a, b) => b ? (100 * a / b).toFixed(1) + " %" : "-";
const dark = matchMedia("(prefers-color-scheme: dark)");
// Busy is plain, waiting hatched by its own angle: readable without colour.
const HUES = [140, 0, 45, 20, 275, 215, 325, 85, 190, 0, 250];
const shade = (k, idle) => idle ? (dark.matches ? "#2a3037" : "#e7eaee") : `hsl(${HUES[k % HUES.length]} ${k ? 62 : 45}% ${dark.matches ? 55 : 48}%)`;
const STATES_IDLE = 1;

function table(columns, rows, limit) {
  const t = el("table"), head = el("tr");
  columns.forEach(c => head.append(el("th", c.name, c.n ? "n" : "")));
  t.append(head);
  const show = count => rows.slice(t.rows.length - 1, count).forEach(row => {
    const tr = el("tr");
    row.forEach((v, k) => { const td = el("td", undefined, columns[k].n ? "n" : columns[k].code ? "code" : ""); v instanceof Node ? td.append(v) : td.textContent = columns[k].n && typeof v === "number" ? num(v) : v; tr.append(td); });
    t.append(tr);
  });
  show(limit || rows.length);
  const box = el("div", undefined, "wide");
  box.append(t);
  if (limit && rows.length > limit) {
    const more = el("button", `all ${rows.length} rows`);
    more.onclick = () => { show(rows.length); more.remove(); };
    box.append(more);
  }
  return box;
}

function fit(canvas, height) {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = height + "px";
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  return [g, width];
}
const ink = name => getComputedStyle(document.documentElement).getPropertyValue(name);

// First index whose value is above x.
function above(list, x) { let a = 0, b = list.length; while (a < b) { const m = (a + b) >> 1; list[m] > x ? b = m : a = m + 1; } return a; }

// Steps: y[n] from x[n] to x[n + 1].
function chart(id, series, top, unit, cycles) {
  const canvas = $(id), wide = canvas.clientWidth - 16, names = canvas.getContext("2d");
  names.font = "11px system-ui";
  let at = 8, row = 0;
  const places = series.map(s => { const w = 40 + names.measureText(s.name).width; if (at > 8 && at + w > wide) { at = 8; row++; } const p = [at, 120 + 14 * row]; at += w; return p; });
  const [g, w] = fit(canvas, 134 + 14 * row), X = t => 4 + t * (w - 8) / cycles, Y = v => 104 - Math.min(v / top, 1.02) * 92;
  g.font = "11px system-ui";
  series.forEach((s, k) => {
    if (!s.y.every(Number.isFinite)) throw new Error(`${s.name} of the chart ${id} has a value that is no number`);
    g.strokeStyle = g.fillStyle = `hsl(${[205, 20, 140, 280, 50, 330, 95, 240][k % 8]} 60% 50%)`; g.setLineDash([[], [5, 3], [2, 2], [8, 3, 2, 3]][k % 4]);
    g.beginPath();
    s.x.forEach((x, n) => { if (n) g.lineTo(X(x), Y(s.y[n - 1])); else g.moveTo(X(x), 104); g.lineTo(X(x), Y(s.y[n])); });
    if (s.y.length) g.lineTo(X(cycles), Y(s.y[s.y.length - 1]));
    g.stroke();
    const [x, y] = places[k];
    g.beginPath(); g.moveTo(x, y); g.lineTo(x + 22, y); g.stroke(); g.fillText(s.name, x + 26, y + 4);
  });
  g.fillStyle = ink("--soft"); g.setLineDash([]); g.fillRect(0, Y(top), w, 1); g.fillText(`${top < 10 ? +top.toPrecision(3) : num(top)} ${unit}`, 6, 10);
}

// Columns that only grow come as differences.
const grow = list => { let sum = 0; return list.map(v => sum += v); };
async function unpacked() {
  const packed = Uint8Array.from(atob($("data").textContent), c => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}
function head(d) {
  $("title").textContent = d.title;
  $("verdict").textContent = d.verdict; $("verdict").className = d.good ? "" : "bad";
  $("note").textContent = d.note;
}
function whenResized(again) { let wait; addEventListener("resize", () => { clearTimeout(wait); wait = setTimeout(again, 100); }); dark.addEventListener("change", again); }
