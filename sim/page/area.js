// The page of an area: a map, units, parts, RAM macros.
(async () => {
  const d = await unpacked();
  head(d);
  $("map").append(document.importNode(new DOMParser().parseFromString(d.picture, "image/svg+xml").documentElement, true));
  const r = d.report, whole = r.total.area_ge, all = r.units;
  const deep = u => { const e = el("span", String(u.levels)); if (u.too_deep) { e.style.color = "var(--hot)"; e.style.fontWeight = 600; } return e; };
  const columns = [{ name: "unit" }, { name: "number", n: 1 }, { name: "GE each", n: 1 }, { name: "GE", n: 1 }, { name: "share", n: 1 }, { name: "flip-flops", n: 1 }, { name: "RAM bits", n: 1 }, { name: "levels", n: 1 }, { name: "of", n: 1 }, { name: "ps", n: 1 }, { name: "longest path" }];
  const row = u => [u.name, u.count, u.area_ge, u.total_area_ge, share(u.total_area_ge, whole), u.total_flip_flops, u.total_ram_bits, deep(u), u.levels_allowed, u.period_ps, u.path[1] ? `${u.path[0]} to ${u.path[1]}` : ""];
  const show = text => $("units").replaceChildren(table(columns, all.filter(u => !text || u.name.toLowerCase().includes(text)).map(row), 40));
  $("find").oninput = e => show(e.target.value.trim().toLowerCase());
  show("");
  $("parts").append(table([{ name: "part" }, { name: "GE", n: 1 }, { name: "share", n: 1 }, { name: "flip-flops", n: 1 }, { name: "RAM bits", n: 1 }], [...r.branches, { name: "total", ...r.total }].map(b => [b.name, b.area_ge, share(b.area_ge, whole), b.flip_flops, b.ram_bits])));
  if (r.macros.length) $("macros").append(table([{ name: "rows", n: 1 }, { name: "bits a row", n: 1 }, { name: "ports" }, { name: "number", n: 1 }, { name: "bits", n: 1 }], [...r.macros].sort((a, b) => b.bits - a.bits).map(m => [m.depth, m.width_bits, `${m.reads} read, ${m.writes} write`, m.count, m.bits])));
  else $("rams").hidden = true;
  document.body.dataset.ready = "1";
})();
