// The page of a link or a switch: counts in time, latencies, ports.
const more = list => list.slice(1).map((v, n) => v - list[n]);

function inTime(d) {
  const s = d.series, x = s.cycle.slice(0, -1), cycles = s.cycle[s.cycle.length - 1], per = more(s.cycle).map(c => c / s.flit_cycles);
  const rate = list => more(list).map((v, n) => v / per[n] / d.ports);
  const top = lines => Math.max(...lines.flatMap(l => l.y), 1e-9);
  const show = (id, lines, unit, least) => chart(id, lines, Math.max(least || 0, top(lines)), unit, cycles);
  const load = [{ name: "offered", x, y: rate(s.offered) }, { name: "delivered", x, y: rate(s.delivered) }];
  if (s.blocked.some(v => v)) load.push({ name: "could not be made", x, y: rate(s.blocked) });
  if (d.system === "link") load.push({ name: "payload flits on the wire", x, y: rate(s.payload_flits) });
  show("load", load, d.system === "link" ? "packets, or flits, an end a flit time" : "flits a port a flit time", d.system === "link" ? 0 : 1);
  const delivered = more(s.delivered);
  show("classes", d.classes.map(c => ({ name: "class " + c, x, y: more(s.by_class.map(row => row[c])).map((v, n) => delivered[n] ? 100 * v / delivered[n] : 0) })), "% of what is delivered", 100);
  const ports = s.waiting[0].length, sum = s.waiting.map(row => row.reduce((a, b) => a + b, 0)).slice(1);
  const queues = [{ name: d.system === "link" ? "packets taken and not delivered, both ends" : "flits at a source, mean", x, y: sum.map(v => v / ports) }];
  if (ports > 1) queues.push({ name: "at the fullest source", x, y: s.waiting.slice(1).map(row => Math.max(...row)) });
  show("waiting", queues, "at the end of each time", 1);
  show("replays", [{ name: "flits refused", x, y: more(s.refused) }, { name: "replays", x, y: more(s.replays) }, { name: "downs", x, y: more(s.downs) }], d.system === "link" ? "in each time, of both ends" : "in each time, of the endpoints", 1);
}

function latencies(d) {
  const found = d.latency.filter(l => l.cycles.length), last = Math.max(1, ...found.map(l => l.cycles[l.cycles.length - 1]));
  const least = Math.min(last - 1, ...found.map(l => l.cycles[0])), log = v => Math.log(Math.max(v, 1) / Math.max(least, 1)) / Math.log(Math.max(2, last + 1) / Math.max(least, 1));
  const bins = 120, lines = found.map(l => {
    const total = l.units.reduce((a, b) => a + b, 0), y = new Array(bins).fill(0);
    l.cycles.forEach((c, n) => { y[Math.min(bins - 1, Math.floor(log(c) * bins))] += 100 * l.units[n] / total; });
    return { name: "class " + l.cls, x: y.map((_, n) => n), y };
  });
  const most = Math.max(1, ...lines.flatMap(l => l.y));
  chart("latency", lines, most, `% a step; ${num(least)} to ${num(last)}${last === d.beyond ? " or more" : ""} cycles, log`, bins);
  $("quantiles").replaceChildren(table([{ name: "of" }, { name: "p50, link cycles", n: 1 }, { name: "p99", n: 1 }, { name: "largest", n: 1 }, { name: d.units, n: 1 }], d.quantiles));
}

(async () => {
  const d = await unpacked();
  head(d);
  const draw = () => { if (d.series) { inTime(d); latencies(d); } };
  if (!d.series) for (const c of document.querySelectorAll("canvas")) c.parentNode.hidden = true;
  if (d.series && d.series.event_cycle.length) {
    $("happened").hidden = false;
    $("events").replaceChildren(table([{ name: "link cycle", n: 1 }, { name: "what" }, { name: d.system === "link" ? "lane" : "port", n: 1 }], d.series.event_cycle.map((c, n) => [c, d.series.event_kind[n], d.series.event_port[n]]), 20));
  }
  if (d.byPort) { $("ports").hidden = false; $("by_port").replaceChildren(table([{ name: "port", n: 1 }, { name: "delivered from it, flits a flit time", n: 1 }, { name: "delivered to it", n: 1 }], d.byPort.map(r => [r[0], r[1].toFixed(4), r[2].toFixed(4)]), 16)); }
  $("figures").replaceChildren(table([{ name: "" }, { name: "", n: 1 }], d.figures));
  if (d.other) { $("compare").hidden = false; $("differences").replaceChildren(el("p", d.other.title), table([{ name: "" }, { name: "here", n: 1 }, { name: "there", n: 1 }], d.other.rows)); }
  draw();
  whenResized(draw);
  document.body.dataset.ready = "1";
})();
