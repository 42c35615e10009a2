// The page of a layer: a row an operation, and the whole.
function bar(parts, whole) {
  const b = el("div", undefined, "bar");
  parts.forEach(([name, n], k) => { const p = el("b"); p.style.width = 100 * n / whole + "%"; p.style.background = shade(k, name === "idle"); p.title = `${name} ${num(n)}, ${share(n, whole)}`; b.append(p); });
  return b;
}

(async () => {
  const d = await unpacked();
  head(d);
  $("operations").replaceChildren(table([{ name: "" }, { name: "times", n: 1 }, { name: "cycles", n: 1 }, { name: "share", n: 1 }, { name: "x bound", n: 1 }, { name: "bound by" }, { name: "busiest" }, { name: "MFU", n: 1 }, { name: "HBM", n: 1 }, { name: "" }], d.rows));
  if (d.left.length) { $("left").hidden = false; $("why").replaceChildren(table([{ name: "" }, { name: "" }, { name: "" }], d.left)); }
  $("engines").replaceChildren(table([{ name: "" }, { name: "" }, { name: "busy", n: 1 }, { name: "most of the rest" }], d.engines.map(e => [e.name, bar(e.parts, d.cycles), share(e.parts[0][1], d.cycles), e.most])));
  $("commands").replaceChildren(table([{ name: "" }, { name: "", code: 1 }], d.commands));
  $("notes").replaceChildren(...d.notes.map(n => el("p", n)));
  if (d.other) { $("compare").hidden = false; $("differences").replaceChildren(el("p", d.other.title), table([{ name: "" }, { name: "cycles here", n: 1 }, { name: "there", n: 1 }, { name: "times as long", n: 1 }], d.other.rows)); }
  document.body.dataset.ready = "1";
})();
