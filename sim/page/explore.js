// The page of a sweep: points, what nothing beats, sensitivities, the table.
let places = [];
const cell = v => v === null || v === undefined ? "" : typeof v === "number" ? (Number.isInteger(v) ? num(v) : String(+v.toPrecision(5))) : String(v);

(async () => {
  const d = await unpacked(), at = Object.fromEntries(d.columns.map((c, n) => [c, n]));
  head(d);
  const name = row => `${row[at.variant]}; ${row[at.workload]} ${d.columns.filter(c => c.startsWith("param ") && row[at[c]] !== null).map(c => `${c.slice(6)}=${row[at[c]]}`).join(" ")}; seed ${row[at.seed]}`;
  const best = new Set(d.pareto), link = n => { if (!d.pages[n]) return el("span", d.rows[n][at.key]); const a = el("a", d.rows[n][at.key]); a.href = `runs/${d.rows[n][at.key]}/report.html`; return a; };
  for (const [id, wanted] of [["x", d.objectives.length > 1 ? d.objectives[1][0] : d.varied.find(v => d.numbers.includes(v)) || d.numbers[0]], ["y", d.objectives[0][0]]]) {
    for (const c of d.numbers) { const o = el("option", c); o.value = c; $(id).append(o); }
    $(id).value = wanted;
    $(id).onchange = () => plot();
  }
  $("log").onchange = () => plot();
  function plot() {
    const [g, w] = fit($("plot"), 320), X = $("x").value, Y = $("y").value, log = $("log").checked;
    const points = d.rows.map((r, n) => [n, r[at[X]], r[at[Y]]]).filter(p => typeof p[1] === "number" && typeof p[2] === "number" && (!log || (p[1] > 0 && p[2] > 0)));
    const f = log ? Math.log10 : v => v, span = k => { const v = points.map(p => f(p[k])), a = Math.min(...v), b = Math.max(...v); return b > a ? [a, b] : [a - 1, b + 1]; };
    g.font = "11px system-ui"; g.fillStyle = ink("--soft"); places = [];
    if (!points.length) { g.fillText("no run has both", 10, 20); return; }
    const [x0, x1] = span(1), [y0, y1] = span(2), px = v => 88 + (f(v) - x0) / (x1 - x0) * (w - 112), py = v => 290 - (f(v) - y0) / (y1 - y0) * 268;
    const back = v => cell(log ? 10 ** v : v);
    g.fillText(back(x0), 84, 306); g.textAlign = "right"; g.fillText(back(x1), w - 6, 306); g.fillText(back(y0), 80, 292); g.fillText(back(y1), 80, 26); g.textAlign = "left";
    g.fillText(`${Y}, up; ${X}, across`, 92, 318);
    g.strokeStyle = ink("--line"); g.strokeRect(84, 14, w - 98, 282);
    g.strokeStyle = g.fillStyle = "hsl(205 60% 50%)";
    for (const [n, x, y] of points) { g.beginPath(); g.arc(px(x), py(y), best.has(n) ? 5 : 4, 0, 7); best.has(n) ? g.fill() : g.stroke(); places.push([px(x), py(y), n]); }
  }
  const near = e => places.map(p => [Math.hypot(p[0] - e.offsetX, p[1] - e.offsetY), p[2]]).sort((a, b) => a[0] - b[0])[0];
  $("plot").onpointermove = e => {
    const tip = $("tip"), found = near(e);
    tip.hidden = !found || found[0] > 14;
    if (tip.hidden) return;
    const r = d.rows[found[1]];
    tip.textContent = `${name(r)}\n${$("x").value}: ${cell(r[at[$("x").value]])}\n${$("y").value}: ${cell(r[at[$("y").value]])}`;
    tip.style.left = Math.max(4, Math.min(e.clientX + 12, innerWidth - tip.offsetWidth - 4)) + "px"; tip.style.top = e.clientY + 14 + "px";
  };
  $("plot").onpointerleave = () => { $("tip").hidden = true; };
  $("plot").onclick = e => { const found = near(e); if (found && found[0] <= 14 && d.pages[found[1]]) location.href = `runs/${d.rows[found[1]][at.key]}/report.html`; };
  const objectives = d.objectives.map(o => o[0]), there = c => c in at, said = r => r[at.status] === "ok" ? "" : cell(r[at.sentence]);
  const first = ["workload", "layer", ...(d.named ? ["variant"] : [])].filter(there), rest = [...d.varied, "seed", "status"].filter(there);
  const plain = c => c.replace(/^(set|param) /, ""), cells = (r, some) => some.map(c => c in at ? cell(r[at[c]]) : "");
  const wide = [{ name: "run" }, ...first.map(c => ({ name: c })), ...objectives.map(c => ({ name: c, n: 1 })), ...rest.map(c => ({ name: plain(c) })), { name: "" }];
  const line = n => [link(n), ...cells(d.rows[n], [...first, ...objectives, ...rest]), said(d.rows[n])];
  $("pareto").replaceChildren(table(wide, d.pareto.map(line), 20));
  const all = text => { const found = d.rows.map((_, n) => n).filter(n => !text || d.rows[n].some(v => String(v).toLowerCase().includes(text))); $("hits").textContent = text ? `${num(found.length)} found` : ""; $("table").replaceChildren(table(wide, found.map(line), 50)); };
  $("find").oninput = e => all(e.target.value.trim().toLowerCase());
  all("");
  $("fields").replaceChildren(...Object.entries(d.sensitivity).flatMap(([column, rows]) => rows.length ? [el("h3", column), table([{ name: "workload" }, { name: "field" }, { name: "share", n: 1 }, { name: "elasticity", n: 1 }, { name: "rank correlation", n: 1 }], rows.map(r => [r.workload, r.field, share(r.share, 1), r.elasticity === null ? "" : r.elasticity.toFixed(3), r.spearman === null ? "" : r.spearman.toFixed(3)]), 20)] : []));
  if (d.seeds.length) { $("many").hidden = false; $("seeds").replaceChildren(table([{ name: "run" }, { name: "seeds", n: 1 }, { name: "" }, { name: "least", n: 1 }, { name: "median", n: 1 }, { name: "most", n: 1 }], d.seeds.map(s => [s.what, s.seeds, s.equal ? "equal for all" : "", cell(s.min), cell(s.median), cell(s.max)]), 20)); }
  plot();
  whenResized(plot);
  document.body.dataset.ready = "1";
})();
