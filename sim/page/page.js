class Timeline {
  constructor(d) {
    this.d = d; this.from = 0; this.to = Math.max(1, d.cycles); this.found = null;
    this.lanes = [];
    if (d.traced) this.build();
    const c = this.canvas = $("lanes");
    let held = null, two = 0;
    const points = new Map();
    c.onwheel = e => { e.preventDefault(); this.zoom(Math.exp(e.deltaY * 0.0015), this.at(e.offsetX)); };
    c.onpointerdown = e => { points.set(e.pointerId, e.offsetX); c.setPointerCapture(e.pointerId); held = e.offsetX; two = 0; };
    c.onpointerup = c.onpointercancel = e => { points.delete(e.pointerId); held = null; two = 0; };
    c.onpointermove = e => {
      if (points.size === 2 && points.has(e.pointerId)) {
        points.set(e.pointerId, e.offsetX);
        const [a, b] = [...points.values()], apart = Math.abs(a - b) || 1;
        if (two) this.zoom(two / apart, this.at((a + b) / 2));
        two = apart;
      } else if (held !== null) { this.pan((held - e.offsetX) * (this.to - this.from) / this.width); held = e.offsetX; }
      else this.hover(e);
    };
    c.onpointerleave = () => { $("tip").hidden = true; };
    c.onkeydown = e => {
      const step = (this.to - this.from) / 8, keys = { ArrowLeft: () => this.pan(-step), ArrowRight: () => this.pan(step), "+": () => this.zoom(0.5), "-": () => this.zoom(2), Home: () => this.show(0, this.d.cycles) };
      if (keys[e.key]) { keys[e.key](); e.preventDefault(); }
    };
    $("out").onclick = () => this.show(0, d.cycles);
    $("in").onclick = () => this.zoom(0.5);
    $("find").oninput = e => this.find(e.target.value);
    $("find").onkeydown = e => { if (e.key === "Enter") this.next(); };
    new ResizeObserver(() => this.draw()).observe(c);
  }
  build() {
    const d = this.d, I = d.items, C = d.copies;
    const group = (keys, begin, end) => {
      const found = new Map();
      keys.forEach((k, n) => { if (begin[n] < 0) return; if (!found.has(k)) found.set(k, []); found.get(k).push(n); });
      for (const list of found.values()) list.sort((a, b) => begin[a] - begin[b]);
      return found;
    };
    const lane = (name, kind, list, begin, end) => {
      const b = list.map(n => begin[n]), e = list.map(n => end[n] < 0 ? d.cycles : end[n]);
      let longest = 0; b.forEach((x, k) => longest = Math.max(longest, e[k] - x));
      this.lanes.push({ name, kind, list, b, e, longest, height: 20 });
    };
    const states = (name, s, end, names, engine, height) => ({ name, kind: "state", b: s.begin, e: s.begin.slice(1).concat([end]), value: s.state, states: names, engine, longest: 1 << 30, height });
    for (const [q, list] of [...group(I.queue, I.issue).entries()].sort((a, b) => a[0] - b[0])) {
      lane(d.queues[q], "item", list, I.issue, I.end);
      const s = d.engines[d.queues[q]];
      if (s) this.lanes.push(states("", s, d.recorded, d.states[d.queues[q]], d.queues[q], 9));
      if (d.queues[q] === "gpsimd") for (const [core, s] of Object.entries(d.cores)) this.lanes.push(states(core, s, d.coresRecorded, d.coreStates, core, 9));
    }
    for (const [r, list] of [...group(C.ring, C.begin).entries()].sort((a, b) => a[0] - b[0])) lane(ring(d, r), "copy", list, C.begin, C.end);
    const s = d.engines.dma;
    if (s) this.lanes.push(states("dma", s, d.recorded, d.states.dma, "dma", 12));
    for (const s of semaphores(d)) this.lanes.push(s);
    const P = d.path;
    this.lanes.push({ name: "critical path", kind: "path", list: P.begin.map((_, n) => n), b: P.begin, e: P.end, longest: 1 << 30, height: 12 });
  }
  at(x) { return this.from + (x - this.left) * (this.to - this.from) / this.width; }
  show(a, b) { const w = Math.min(Math.max(b - a, 8), this.d.cycles || 8); a = Math.max(0, Math.min(a, this.d.cycles - w)); this.from = a; this.to = a + w; this.later(); }
  zoom(k, at = (this.from + this.to) / 2) { this.show(at - (at - this.from) * k, at + (this.to - at) * k); }
  pan(by) { const w = this.to - this.from, a = Math.max(0, Math.min(this.from + by, this.d.cycles - w)); this.from = a; this.to = a + w; this.later(); }
  later() { if (!this.asked) { this.asked = true; requestAnimationFrame(() => { this.asked = false; this.draw(); }); } }
  colour(l, k) {
    const d = this.d, n = l.list ? l.list[k] : 0;
    if (l.kind === "state") return shade(l.value[k], l.value[k] === STATES_IDLE);
    if (l.kind === "semaphore") return k % 2 ? "hsl(280 30% 60%)" : "hsl(280 30% 50%)";
    if (l.kind === "copy") return dark.matches ? "hsl(205 45% 52%)" : "hsl(205 50% 55%)";
    if (l.kind === "path") return d.path.copy[k] >= 0 ? "hsl(205 50% 55%)" : d.path.item[k] >= 0 ? `hsl(${47 * d.items.queue[d.path.item[k]] + 140} 45% 50%)` : shade(0, true);
    return `hsl(${d.items.opcode[n] * 67 % 360} 45% ${dark.matches ? 52 : 55}%)`;
  }
  draw() {
    const top = 18, height = top + this.lanes.reduce((s, l) => s + l.height + 4, 0) + 4;
    const [g, whole] = fit(this.canvas, Math.max(height, 60));
    this.left = whole > 600 ? 92 : 60; this.width = whole - this.left;
    g.font = "11px system-ui"; g.textBaseline = "middle";
    const scale = this.width / (this.to - this.from), X = t => this.left + (t - this.from) * scale;
    const step = 10 ** Math.ceil(Math.log10((this.to - this.from) * 70 / this.width));
    g.fillStyle = ink("--soft");
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) { g.fillRect(X(t), 12, 1, height); g.fillText(num(t), X(t) + 3, 7); }
    let y = top;
    for (const l of this.lanes) {
      l.y = y;
      let k = Math.max(0, l.longest < 1 << 30 ? above(l.b, this.from - l.longest - 1) : above(l.b, this.from) - 1), last = -1;
      for (; k < l.b.length && l.b[k] <= this.to; k++) {
        const a = Math.max(X(l.b[k]), this.left), b = X(l.e[k]);
        const hit = this.found && l.list && l.kind !== "path" && this.found.has(l.kind[0] + l.list[k]);
        if (b < this.left || (b <= last && !hit)) continue;
        g.globalAlpha = this.found && !hit && l.list && l.kind !== "path" ? 0.25 : 1;
        g.fillStyle = this.colour(l, k);
        g.fillRect(a, y, Math.max(b - a - (b - a > 3 ? 1 : 0), 0.7), l.height);
        last = Math.max(last, Math.max(b, a + 0.7));
        // boxes that follow each other without a gap: on to the one that ends behind this pixel
        if (l.longest === 1 << 30 && scale < 0.5) k = Math.max(k, above(l.b, this.from + (last - this.left) / scale) - 2);
        const room = Math.min(b, k + 1 < l.b.length ? X(l.b[k + 1]) : b) - a;
        if (room > 46 && l.list && l.kind !== "path") { g.fillStyle = "#fff"; g.fillText(this.name(l, k), a + 3, y + l.height / 2, room - 6); }
      }
      g.globalAlpha = 1;
      g.fillStyle = ink("--paper"); g.fillRect(0, y, this.left - 2, l.height);
      g.fillStyle = ink("--ink"); g.fillText(l.name, 2, y + l.height / 2, this.left - 6);
      y += l.height + 4;
    }
    if (!this.d.traced) { g.fillStyle = ink("--ink"); g.fillText(this.d.why, 10, 36, whole - 20); }
    drawn = performance.now();
  }
  name(l, k) { const n = l.list[k], d = this.d; return l.kind === "copy" ? d.texts[d.copies.shape[n]] : opcode(d, n); }
  tell(l, k) {
    const d = this.d, span = `cycles ${num(l.b[k])} to ${num(l.e[k])} (${num(l.e[k] - l.b[k])})`;
    if (l.kind === "state") return `${l.engine}: ${l.states[l.value[k]]}\n${span}`;
    if (l.kind === "semaphore") return tellSemaphore(d, l, k) + "\n" + span;
    if (l.kind === "path") return this.tellStep(k) + "\n" + span;
    const n = l.list[k];
    if (l.kind === "copy") return `${l.name}, descriptor ${d.copies.index[n]}: ${num(d.copies.bytes[n])} bytes\n${d.texts[d.copies.shape[n]]}\n${span}${d.copies.end[n] < 0 ? ", has not ended" : ""}\n${d.texts[d.copies.line[n]]}`;
    const own = (d.spent[n] || []).map(([s, c]) => `${d.states[l.name] ? d.states[l.name][s] : s} ${num(c)}`).join(", ");
    return `${l.name} ${d.items.sequence[n]}: ${opcode(d, n)}${d.items.cause[n] ? "  FAULT " + d.causes[d.items.cause[n]] : ""}\n${d.texts[d.items.shape[n]]}\n${span}${d.items.end[n] < 0 ? ", has not retired" : ""}${d.items.first[n] >= 0 ? ", first beat " + num(d.items.first[n]) : ""}${own ? "\n" + own : ""}\n${d.texts[d.items.line[n]]}${d.texts[d.items.turn[n]] ? ", turn " + d.texts[d.items.turn[n]] : ""}\n${source(d, d.texts[d.items.line[n]])}`;
  }
  tellStep(k) {
    const d = this.d, P = d.path, i = P.item[k], c = P.copy[k];
    const who = i >= 0 ? `${d.queues[d.items.queue[i]]} ${d.items.sequence[i]} ${opcode(d, i)}, ${d.texts[d.items.line[i]]}` : c >= 0 ? `${ring(d, d.copies.ring[c])} descriptor ${d.copies.index[c]}, ${d.texts[d.copies.line[c]]}` : "";
    return `critical path: ${d.causesOfSteps[P.cause[k]]}\n${who}`;
  }
  hover(e) {
    const tip = $("tip"), l = this.lanes.find(l => e.offsetY >= l.y && e.offsetY < l.y + l.height), t = this.at(e.offsetX);
    tip.hidden = true;
    if (!l || e.offsetX < this.left) return;
    let k = above(l.b, t) - 1;
    const slack = 2 * (this.to - this.from) / this.width;
    while (k > 0 && l.e[k] + slack < t && l.b[k] > t - l.longest) k--;
    if (k < 0 || l.e[k] + slack < t) return;
    tip.textContent = this.tell(l, k); tip.hidden = false;
    tip.style.left = Math.max(4, Math.min(e.clientX + 12, innerWidth - tip.offsetWidth - 4)) + "px";
    tip.style.top = (e.clientY + 16 + tip.offsetHeight > innerHeight ? e.clientY - tip.offsetHeight - 8 : e.clientY + 16) + "px";
  }
  find(text) {
    const d = this.d; text = text.trim().toLowerCase();
    this.found = null; this.order = [];
    if (text && d.traced) {
      const hit = d.texts.map(t => t.toLowerCase().includes(text)), code = d.opcodes.map(t => (t || "").includes(text));
      this.found = new Set();
      d.items.queue.forEach((q, n) => { if (d.items.issue[n] >= 0 && (hit[d.items.line[n]] || hit[d.items.shape[n]] || hit[d.items.program[n]] || code[d.items.opcode[n]])) { this.found.add("i" + n); this.order.push([d.items.issue[n], d.items.end[n]]); } });
      d.copies.ring.forEach((r, n) => { if (d.copies.begin[n] >= 0 && (hit[d.copies.line[n]] || hit[d.copies.shape[n]])) { this.found.add("c" + n); this.order.push([d.copies.begin[n], d.copies.end[n]]); } });
      this.order.sort((a, b) => a[0] - b[0]); this.turn = -1;
    }
    $("hits").textContent = this.found ? `${num(this.found.size)} found; Enter goes to the next` : "";
    this.later();
  }
  next() { if (this.order && this.order.length) { const [a, b] = this.order[this.turn = (this.turn + 1) % this.order.length], w = Math.max((b < 0 ? 0 : b - a) * 6, 200); this.show(a - w / 3, a + w); } }
}

// A lane a semaphore: a box from each value to the next one.
function semaphores(d) {
  const found = new Map(), add = (kind, at, ends, adds) => at.forEach((s, n) => { if (s < 0 || ends[n] < 0) return; if (!found.has(s)) found.set(s, []); for (let k = adds ? adds[n] : 1; k > 0; k--) found.get(s).push([ends[n], kind, n]); });
  add("i", d.items.update, d.items.end, d.items.adds); add("c", d.copies.signal, d.copies.end);
  const waits = new Map();
  d.items.waits.forEach(([item, s, value]) => { const key = s + ":" + value; if (!waits.has(key)) waits.set(key, []); waits.get(key).push(item); });
  return [...found.entries()].sort((a, b) => a[0] - b[0]).map(([s, list]) => {
    list.sort((a, b) => a[0] - b[0]);
    const b = list.map(u => u[0]);
    return { name: "semaphore " + s, kind: "semaphore", semaphore: s, by: list, waits, b, e: b.slice(1).concat([d.cycles]), longest: 1 << 30, height: 9 };
  });
}
const ring = (d, r) => d.rings[r] || "ring " + r;
const opcode = (d, n) => [d.opcodes[d.items.opcode[n]], d.texts[d.items.program[n]]].filter(Boolean).join(" ");
const instruction = (d, n) => `${d.queues[d.items.queue[n]]} ${d.items.sequence[n]} ${opcode(d, n)}`;
function tellSemaphore(d, l, k) {
  const [, kind, n] = l.by[k], who = kind === "i" ? instruction(d, n) : `${ring(d, d.copies.ring[n])} descriptor ${d.copies.index[n]}`;
  const free = (l.waits.get(l.semaphore + ":" + (k + 1)) || []).map(i => `${instruction(d, i)}, issued at ${num(d.items.issue[i])}`);
  return `${l.name} = ${k + 1}, by ${who}${free.length ? "\nlets go " + free.slice(0, 4).join("\n") : ""}`;
}

function source(d, line) {
  const said = /^(.+?):(\d+)(?: .*)?$/.exec(line), found = said && d.sources[said[1]];
  return found && found[+said[2]] !== undefined ? found[+said[2]].trim() : "";
}

function bars(d) {
  const box = $("bars"); box.replaceChildren();
  const legend = new Map();
  for (const [name, e] of Object.entries(d.report.engines)) {
    const parts = [["busy", e.busy], ...Object.entries(e.stall), ["idle", e.idle]], names = d.states[name];
    const bar = el("div", undefined, "bar"), words = [];
    for (const [what, cycles] of parts) {
      if (!cycles) continue;
      const k = names.indexOf(what), b = el("b");
      b.style.cssText = `width:${100 * cycles / d.cycles}%;background:${shade(k, k === STATES_IDLE)}`;
      if (k > 1) b.style.backgroundImage = `repeating-linear-gradient(${k * 37}deg,#0003 0 2px,transparent 2px 5px)`;
      b.title = `${name} ${what}: ${num(cycles)} cycles, ${share(cycles, d.cycles)}`;
      bar.append(b); words.push(`${what} ${share(cycles, d.cycles)}`);
      if (k > 1 || what === "busy") legend.set(what, k);
    }
    const p = el("p", undefined), strong = el("strong", name + "  ");
    p.append(strong, el("span", words.join(", ")));
    box.append(p, bar);
  }
  const L = $("legend"); L.replaceChildren();
  L.append(el("span", "box: an instruction or descriptor, from issue to end; strip below: what the engine did" + (d.traced && Object.keys(d.cores).length ? "; gp0 and up: what each GPSIMD core did" : "")));
}

function roof(d) {
  const r = d.report, box = $("roof"); box.replaceChildren();
  const rows = Object.entries(r.bounds).map(([k, v]) => [k, v, share(v, r.cycles)]);
  const w = 480, h = 200, peak = d.peak, rate = d.hbmRate, bytes = r.hbm_bytes_read + r.hbm_bytes_written;
  if (r.macs && bytes) {
    const x0 = Math.log10(peak / rate) - 2, sx = v => 50 + (Math.log10(v) - x0) * (w - 70) / 4, sy = v => h - 25 - (Math.log10(v / peak) + 3) * (h - 45) / 3;
    const at = r.macs / bytes, got = r.macs / r.cycles, knee = peak / rate, low = 10 ** x0, high = 10 ** (x0 + 4);
    const name = { vector_port: "vector engine", scalar_port: "scalar engine", dma_port: "movers" };
    const ceilings = Object.entries(name).filter(([k]) => r.bounds[k] && r.macs / r.bounds[k] < peak).sort((a, b) => r.bounds[a[0]] - r.bounds[b[0]]);
    let last = 0;
    const others = ceilings.map(([k, what]) => { const y = Math.min(sy(Math.max(r.macs / r.bounds[k], peak / 1000)), h - 25), t = Math.max(y - 3, last + 12); last = t; return `<path d="M${sx(low)} ${y}H${sx(high)}" stroke="currentColor" stroke-dasharray="6 3" opacity=".6"/><text x="${sx(low) + 4}" y="${t}" font-size="10" fill="currentColor">at most, by the ${what}</text>`; }).join("");
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${w} ${h}" style="max-width:${w}px;width:100%" role="img" aria-label="roofline"><g fill="none" stroke="currentColor"><path d="M${sx(low)} ${sy(low * rate)}L${sx(knee)} ${sy(peak)}L${sx(high)} ${sy(peak)}"/><path stroke-dasharray="3 3" d="M${sx(Math.min(Math.max(at, low), high))} ${h - 25}V12"/></g>${others}<circle cx="${sx(Math.min(Math.max(at, low), high))}" cy="${Math.min(sy(Math.max(got, peak / 1000)), h - 25)}" r="5" fill="var(--hot)"/><g fill="currentColor" font-size="11"><text x="${sx(knee) + 8}" y="${sy(peak) - 5}">${num(peak)} multiply-adds a cycle</text><text x="4" y="${h - 6}">multiply-adds a byte of HBM, log; this run ${at.toFixed(1)}, ${got.toFixed(0)} a cycle (${share(got, peak)} of the array)</text></g></svg>`;
    const holder = el("div"); holder.innerHTML = svg; box.append(holder);
  }
  box.append(table([{ name: "bound by" }, { name: "cycles at least", n: 1 }, { name: "of the run", n: 1 }], rows.sort((a, b) => b[1] - a[1])));
}

// Share of each of so many equal times that an engine is busy.
function busy(engine, end, cycles, count) {
  const sums = new Float64Array(count), each = cycles / count;
  engine.begin.forEach((b, n) => {
    if (engine.state[n]) return;
    const e = n + 1 < engine.begin.length ? engine.begin[n + 1] : end;
    for (let k = Math.floor(b / each); k < count && k * each < e; k++) sums[k] += Math.min(e, (k + 1) * each) - Math.max(b, k * each);
  });
  return [...sums].map(s => 100 * s / each);
}

function charts(d) {
  if (!d.traced) { for (const id of ["used", "hbm", "held"]) $(id).hidden = true; return; }
  const count = Math.max(1, Math.min(400, d.cycles >> 5)), times = Array.from({ length: count }, (_, k) => k * d.cycles / count);
  chart("used", Object.entries(d.engines).map(([name, e]) => ({ name, x: times, y: busy(e, d.recorded, d.cycles, count) })), 100, "% busy", d.cycles);
  const n = Math.min(d.beats.read.length, 600) || 1, k = Math.ceil(d.beats.read.length / n), x = [], read = [], written = [];
  for (let i = 0; i < d.beats.read.length; i += k) {
    const length = Math.min(d.cycles, (i + k) * d.beats.cycles) - i * d.beats.cycles, sum = list => list.slice(i, i + k).reduce((a, b) => a + b, 0) * d.beats.bytes / length;
    x.push(i * d.beats.cycles); read.push(sum(d.beats.read)); written.push(sum(d.beats.written));
  }
  chart("hbm", [{ name: "read", x, y: read }, { name: "written", x, y: written }], d.hbmRate, "bytes a cycle, read and written together at most", d.cycles);
  chart("held", Object.entries(d.held).map(([name, h]) => ({ name, x: h.cycle, y: h.bytes.map(b => 100 * b / h.size) })), 100, "% held, from the first write to the last read", d.cycles);
  $("tiles").replaceChildren(table([{ name: "tile" }, { name: "memory" }, { name: "bytes", n: 1 }, { name: "times filled", n: 1 }, { name: "held, cycles", n: 1 }, { name: "of the run", n: 1 }],
    d.tiles.map(t => [t.name, t.space, t.bytes, t.times, t.cycles, share(t.cycles, d.cycles)]), 12));
}

const codeOf = (d, line) => { const c = el("code", source(d, line)); return c; };
function paths(d) {
  if (!d.traced) return;
  $("path").replaceChildren(table([{ name: "cycles", n: 1 }, { name: "of the run", n: 1 }, { name: "engine" }, { name: "what" }, { name: "line" }, { name: "", code: 1 }],
    d.pathLines.map(([cycles, who, cause, line]) => [cycles, share(cycles, d.cycles), who, cause, line, codeOf(d, line)]), 12));
  $("lines").replaceChildren(table([{ name: "line" }, { name: "", code: 1 }, { name: "engine" }, { name: "instructions", n: 1 }, { name: "busy", n: 1 }, { name: "its engine waited", n: 1 }, { name: "mostly for" }],
    d.lines.map(([line, engine, count, busy, waited, why]) => [line, codeOf(d, line), engine, count, busy, waited, why]), 40));
}

function compare(d) {
  if (!d.other) return;
  $("compare").hidden = false;
  const box = $("differences"), o = d.other;
  box.replaceChildren(el("p", `${o.title}: ${num(o.cycles)} cycles; this run ${num(d.cycles)}, ${(o.cycles / d.cycles).toFixed(3)} times as fast.${o.unlike ? " " + o.unlike : ""}`),
    table([{ name: "line" }, { name: "opcode" }, { name: "here", n: 1 }, { name: "there", n: 1 }, { name: "here - there, engine cycles", n: 1 }, { name: "instructions", n: 1 }], o.rows.map(r => [r[0], r[1], r[2], r[3], r[2] - r[3], r[4] === r[5] ? r[4] : `${r[4]} / ${r[5]}`]), 25));
}

function programs(d) {
  const { gpsimd_cores: cores, printed } = d.report;
  if (!cores.length && !printed) return;
  $("programs").hidden = false;
  $("printed").textContent = printed;
  if (!cores.length) return;
  const all = c => c.busy + c.idle + Object.values(c.stall).reduce((a, b) => a + b, 0);
  const waits = c => Object.entries(c.stall).filter(([, n]) => n).sort((a, b) => b[1] - a[1]).map(([why, n]) => `${why} ${share(n, all(c))}`).join(", ");
  $("gpsimd").replaceChildren(table([{ name: "core" }, { name: "instructions", n: 1 }, { name: "cycles of its own", n: 1 }, { name: "busy", n: 1 }, { name: "idle", n: 1 }, { name: "stalled for" }],
    cores.map((c, n) => [`gp${n}`, c.instructions, all(c), share(c.busy, all(c)), share(c.idle, all(c)), waits(c)])));
}

function classes(d) {
  const rows = d.report.dma_classes;
  if (rows.length < 2) return;
  $("classes").hidden = false;
  $("shares").replaceChildren(el("p", `Shares are of the ${num(rows[0].contested_cycles)} cycles in which all of them were under way.`),
    table([{ name: "class" }, { name: "descriptors", n: 1 }, { name: "bytes", n: 1 }, { name: "bytes a cycle", n: 1 }, { name: "share", n: 1 }, { name: "entitled", n: 1 }, { name: "latency: least", n: 1 }, { name: "median", n: 1 }, { name: "most", n: 1 }],
      rows.map(r => [r.class, r.descriptors, r.bytes, r.bytes_per_cycle, share(r.share, 1), share(r.entitled, 1), r.latency_cycles.least, r.latency_cycles.median, r.latency_cycles.most])));
}

let drawn = 0, timeline, draw = () => {};
(async () => {
  const d = await unpacked();
  if (d.traced) {
    for (const e of [...Object.values(d.engines), ...Object.values(d.cores)]) e.begin = grow(e.begin);
    for (const o of [d.items, d.copies, d.path]) for (const name of o.grown) o[name] = grow(o[name]);
    for (const h of Object.values(d.held)) { h.cycle = grow(h.cycle); h.bytes = grow(h.bytes); }
    const spent = [];
    d.spentItem.reduce((at, by, n) => { at += by; (spent[at] = spent[at] || []).push([d.spentState[n], d.spentCycles[n]]); return at; }, 0);
    d.spent = spent;
  }
  head(d);
  $("advice").replaceChildren(...(d.advice.length ? d.advice.map(a => el("li", a.text + (a.set.length ? ` As with ${a.set.map(s => "--set " + s).join(" ")}.` : ""))) : [el("li", d.relief)]));
  classes(d);
  programs(d);
  timeline = new Timeline(d);
  draw = () => { timeline.draw(); bars(d); roof(d); charts(d); paths(d); compare(d); };
  draw();
  whenResized(() => { timeline.draw(); charts(d); });
  document.body.dataset.ready = "1";
})();
