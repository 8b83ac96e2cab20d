"use strict";
(() => {
const minute = 60;
const $ = id => document.getElementById(id);
const main = $("main");

// ---- elements: everything that comes from outside becomes text, never markup ----

const hidden = /[\p{C}\p{DI}\p{Zl}\p{Zp}\u2800]|(?! )\p{Zs}/gu;
const escape = c => Array.from({ length: c.length }, (_, i) => "\\u" + c.charCodeAt(i).toString(16).padStart(4, "0")).join("");
// label returns a one-line text with invisible and direction-changing characters written out.
const label = text => text.replace(hidden, escape);
const lines = text => text.split("\n").map(label).join("\n");
// spaced returns a label with the blanks that HTML drops; named does so for a name that may contain text that only looks escaped.
const spaced = text => label(text.replace(/^ | $| (?= )/g, escape));
const named = name => spaced(name.replace(/\\(?=u[0-9a-f]{4}|x[0-9a-f]{2})/g, escape));

function h(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === false) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.flat().filter(c => c !== undefined && c !== null && c !== false));
  return e;
}
const bdi = name => h("bdi", null, named(name));
const quoted = text => h("bdi", null, spaced(text)); // of text that the server has escaped already

// An address is a name in URL form, which identifies a resource: bytes that aren't UTF-8 are lost in the name's text,
// and escaped is the address of such a name.
const address = (name, escaped) => escaped || encodeURIComponent(name);
const link = (name, escaped) => h("a", { href: "#/r/" + address(name, escaped) }, nameAt(address(name, escaped)));
// written returns the name of an address, with invalid UTF-8 written out; proper returns a valid address.
const written = at => at.replace(/(?:%[0-9a-f]{2})+/gi, run => {
  try { return decodeURIComponent(run); } catch { return run.toLowerCase().replace(/%([89a-f].)/g, "\\x$1").replace(/%(..)/g, (_, x) => String.fromCharCode(parseInt(x, 16))); }
});
const proper = text => text.replace(/%(?![0-9a-f]{2})|[^\w%!'()*.~-]/giu, encodeURIComponent);
function nameAt(at) {
  try { return bdi(decodeURIComponent(at)); } catch { return quoted(written(at)); }
}

const whole = n => n >= 1e6 ? (n / 1e6).toFixed(1) + "M" : n >= 1e4 ? (n / 1e3).toFixed(1) + "k" : String(Math.round(n * 100) / 100);
const ms = t => !t ? "–" : t >= 1000 ? (t / 1000).toFixed(2) + "s" : t >= 10 ? t.toFixed(0) + "ms" : t.toFixed(2) + "ms";
const clock = t => new Date(t).toLocaleTimeString([], { hour12: false });
const share = f => Math.round(f * 100) + " %";

// ---- the API ----

let token = sessionStorage.getItem("token") || "";
let asking; // one prompt for a token at a time

// bytes returns a text for a header: in UTF-8, without characters that headers can't have.
const bytes = text => String.fromCharCode(...new TextEncoder().encode(text.replace(/[\0-\x1f\x7f]/g, "")));

function askToken(why) {
  asking ||= new Promise(done => {
    const box = $("token-dialog");
    $("token-why").textContent = why;
    $("token").value = "";
    box.addEventListener("close", () => {
      asking = undefined;
      if (box.returnValue === "ok") sessionStorage.setItem("token", token = $("token").value);
      done(box.returnValue === "ok");
    }, { once: true });
    box.showModal();
  });
  return asking;
}

async function ask(path, options = {}) {
  for (;;) {
    const headers = { ...options.headers };
    if (token) headers.Authorization = "Bearer " + bytes(token);
    const r = await fetch(path, { ...options, headers });
    if (r.status === 401) {
      const { error } = await r.json();
      if (await askToken(error)) continue;
      throw new Error(error);
    }
    return r;
  }
}

// exact keeps the written form of an exception's value that JavaScript can't represent. inexact finds such a value
// in a rule that a browser without raw JSON has changed.
const exact = (key, v, at) => key === "value" && inexact(v) && JSON.rawJSON ? JSON.rawJSON(at.source) : v;
const inexact = v => Number.isInteger(v) && !Number.isSafeInteger(v);

async function get(path, options) {
  const r = await ask(path, options);
  const value = JSON.parse(await r.text(), exact);
  if (!r.ok) throw Object.assign(new Error(value.error), { status: r.status });
  return value;
}

const post = (path, body) => get(path, { method: "POST", headers: { "Content-Type": "application/json" }, body });

// ---- known resources ----

const known = new Map(); // by address
let end = 0;             // the last complete second
let timed = false;       // percentiles are on

function learn(r) {
  const whole = list => list.slice(0, minute - 1); // the last one is incomplete
  const at = address(r.name, r.escaped);
  known.set(at, {
    at, name: r.name, escaped: r.escaped, overflow: r.overflow, inFlight: r.inFlight, waiting: r.waiting, marks: r.marks || [],
    pass: whole(r.history.pass), block: whole(r.history.block), rt: whole(r.history.rtMs), p95: r.minute.p95Ms,
  });
}

async function loadResources() {
  const all = await get("/api/resources?limit=10000");
  known.clear();
  all.resources.forEach(learn);
  end = all.endUnix - 1;
  timed = all.percentiles;
  showAlerts(all.alerts);
  view.resources?.();
}

const sum = list => list.reduce((a, b) => a + b, 0);
const last = list => list[list.length - 1] || 0;

function takeFrame(frame) {
  showAlerts(frame.alerts);
  if (frame.endUnix <= end) return;
  if (frame.endUnix > end + 1) { loadResources().catch(fail); return; }
  end = frame.endUnix;
  const rows = new Map(frame.resources.map(row => [address(row[0], row[8]), row]));
  for (const [at, [name, , , , , , , , escaped]] of rows) {
    if (!known.has(at)) {
      const none = () => new Array(minute - 1).fill(0);
      known.set(at, { at, name, escaped, inFlight: 0, waiting: 0, marks: [], pass: none(), block: none(), rt: none() });
    }
  }
  for (const r of known.values()) {
    const [, pass = 0, block = 0, , , rt = 0, inFlight = 0] = rows.get(r.at) || [];
    r.pass.push(pass); r.pass.shift();
    r.block.push(block); r.block.shift();
    r.rt.push(rt); r.rt.shift();
    r.inFlight = inFlight;
  }
  view.frame?.(frame);
}

// ---- alerts, on every page ----

const states = { failed: "could not be loaded; its last good rules stay", cached: "is unreachable; its rules are from the cache", stale: "was not confirmed lately" };
let alerting = "[]";
function showAlerts(list = []) {
  const text = JSON.stringify(list);
  if (text === alerting) return;
  alerting = text;
  const since = a => a.since ? ", " + new Date(a.since).toLocaleString([], { hour12: false }) : "";
  $("alerts").replaceChildren(...list.map(a => h("p", null, a.what === "store" ?
    "The store of shared limits is unreachable: " + a.rules + (a.rules === 1 ? " rule falls" : " rules fall") + " back to onFailure" :
    ["Rules of ", quoted(a.name), " – the source " + states[a.state] + since(a) + (a.error ? ": " + label(a.error) : "")])));
}

// ---- events ----

function state(text, live) {
  $("state").textContent = text;
  $("state").classList.toggle("live", !!live);
}

let events = 0;
function note(text, at) {
  const list = $("event-list");
  list.prepend(h("li", null, h("time", { datetime: at, class: "dim" }, clock(at)), " " + text));
  while (list.children.length > 100) list.lastChild.remove();
  $("event-count").textContent = "(" + ++events + ")";
  $("said").textContent = text;
}

const on = {
  frame: takeFrame,
  burst: e => note(named(e.resource) + " began to block: " + e.blocked + " in a second", e.at),
  breaker: e => { note("breaker " + named(e.rule) + " of " + named(e.resource) + ": " + e.from + " → " + e.to + (e.why ? ": " + label(e.why) : ""), e.at); loadMarks(); view.breaker?.(e); },
  reload: e => { note(e.error ? "rules of " + named(e.source || "a source") + " not loaded: " + label(e.error) : "rules: revision " + e.revision + " " + (e.change || ""), e.at); view.reload?.(e); },
};

let marking;
function loadMarks() { // data missing in frames: delayed, once for several
  marking ||= setTimeout(() => {
    marking = undefined;
    get("/api/resources?limit=10000").then(all => all.resources.forEach(r => {
      const own = known.get(address(r.name, r.escaped));
      if (own) { own.marks = r.marks || []; own.p95 = r.minute.p95Ms; }
    })).then(() => view.marks?.()).catch(() => {});
  }, 300);
}

async function listen() {
  for (let pause = 1; ; pause = Math.min(pause * 2, 15)) {
    try {
      const r = await ask("/api/events");
      if (!r.ok) throw new Error((await r.json()).error);
      await loadResources();
      state("live", true);
      pause = 1;
      const from = r.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await from.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const name = /^event: (.*)$/m.exec(part), data = /^data: (.*)$/m.exec(part);
          if (name && data) on[name[1]]?.(JSON.parse(data[1]));
        }
      }
      state("reconnecting");
    } catch (e) {
      state("not connected: " + e.message);
    }
    await new Promise(done => setTimeout(done, pause * 1000));
  }
}

// ---- charts, by uPlot ----

const color = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const seconds = Array.from({ length: minute - 1 }, (_, i) => i);

function spark(kind) {
  const small = matchMedia("(max-width: 720px)").matches;
  const series = (c, fill) => ({ stroke: color(c), fill: fill ? color(c) + "33" : undefined, width: 1, points: { show: false } });
  const box = h("div", { class: "spark", "aria-hidden": "true" });
  const plot = new uPlot({
    width: small ? 78 : 122, height: 26, cursor: { show: false }, legend: { show: false }, select: { show: false },
    padding: [2, 0, 2, 0], scales: { x: { time: false }, y: { range: (u, lo, hi) => [0, Math.max(hi, 1e-3)] } },
    axes: [{ show: false }, { show: false }],
    series: kind === "rt" ? [{}, series("rt", true)] : [{}, series("pass", true), series("block", true)],
  }, kind === "rt" ? [seconds, seconds] : [seconds, seconds, seconds], box);
  return { box, plot };
}

function bigChart(box) {
  const line = (text, c, more) => ({ label: text, stroke: color(c), width: 2, points: { show: false }, value: (u, v) => v == null ? "–" : whole(v), ...more });
  const axis = { stroke: color("dim"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 } };
  const plot = new uPlot({
    width: box.clientWidth || 600, height: 220, cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (u, lo, hi) => [0, Math.max(hi * 1.05, 1)] } },
    axes: [{ ...axis, space: 90, values: (u, ticks) => ticks.map(t => clock(t * 1000)) }, { ...axis, size: 52 }],
    series: [{ label: "time", value: (u, t) => t == null ? "–" : clock(t * 1000) }, line("offered", "offered", { width: 1 }), line("passed", "pass"), line("blocked", "block"), line("limit", "limit", { dash: [6, 4] })],
  }, [[], [], [], [], []], box);
  new ResizeObserver(() => box.isConnected && plot.setSize({ width: box.clientWidth, height: 220 })).observe(box);
  return plot;
}

// ---- views: the open one handles events ----

let view = {};
let leave = () => {};

// stale keeps the view: the server may be back soon. A bug of this page is reported on the browser's console.
const stale = e => { if (e.name !== "AbortError") console.error(e); };
const fail = e => { if (e.name !== "AbortError") main.replaceChildren(h("p", { class: "bad", role: "alert" }, label(e.message))); };

// part is a piece of a view that is rebuilt only when its content changes.
function part(box, key, value, make) {
  const text = JSON.stringify(value);
  box.was ||= {};
  if (box.was[key] === text) return;
  box.was[key] = text;
  box.querySelector(`[data-part="${key}"]`).replaceChildren(...[make(value)].flat());
}

function showResources() {
  const body = h("tbody");
  const head = h("p", { class: "dim", role: "status" });
  const sheet = h("table", { id: "resources" },
      h("caption", { class: "hidden" }, "Resources, by traffic in the last minute"),
      h("thead", null, h("tr", null,
        h("th", { scope: "col" }, "Resource"),
        h("th", { scope: "col", class: "n" }, "pass/s"), h("th", { scope: "col", class: "n" }, "block/s"),
        h("th", { scope: "col" }, "last minute"),
        h("th", { scope: "col", class: "n wide" }, "RT"), h("th", { scope: "col", class: "wide" }, "RT, last minute"),
        h("th", { scope: "col", class: "n wide p95", title: "95 of 100 calls of the last minute were no slower" }, "p95"),
        h("th", { scope: "col", class: "n wide" }, "in flight"), h("th", { scope: "col", class: "n wide" }, "blocked/min"))),
      body);
  main.replaceChildren(h("h1", null, "Resources"), head, h("div", { class: "scroll" }, sheet));
  const rows = new Map();
  const seen = new Set(); // visible rows: only they have charts and are updated
  const watch = new IntersectionObserver(entries => entries.forEach(e => {
    const row = e.target.row;
    if (e.isIntersecting) { seen.add(row); draw(row); } else { seen.delete(row); drop(row); }
  }), { rootMargin: "200px" });

  function drop(row) {
    for (const s of row.sparks || []) { s.plot.destroy(); s.box.remove(); }
    row.sparks = undefined;
  }
  function draw(row) {
    const r = row.of;
    if (!row.sparks) {
      row.sparks = [spark("traffic"), spark("rt")];
      row.cells[3].append(row.sparks[0].box);
      row.cells[5].append(row.sparks[1].box);
    }
    row.sparks[0].plot.setData([seconds, r.pass, r.block]);
    row.sparks[1].plot.setData([seconds, r.rt]);
    const texts = [, whole(last(r.pass)), whole(last(r.block)), , ms(last(r.rt)), , ms(r.p95), String(r.inFlight), whole(sum(r.block))];
    texts.forEach((text, i) => { if (row.cells[i].textContent !== text) row.cells[i].textContent = text; });
    const marks = r.marks.join("\n");
    if (row.marks !== marks) {
      row.marks = marks;
      row.cells[0].replaceChildren(row.link, ...r.marks.map(m => h("span", { class: "mark" }, m)));
    }
    row.cells[2].classList.toggle("block", last(r.block) > 0);
  }
  function rowOf(r) {
    const row = { of: r, marks: "", link: link(r.name, r.escaped) };
    const classes = ["name", "n pass", "n", "s", "n wide rt", "s wide", "n wide rt p95", "n wide", "n wide"];
    row.cells = classes.map((c, i) => i ? h("td", { class: c }) : h("th", { class: "name", scope: "row" }, row.link));
    row.cells[0].className = "name";
    row.tr = h("tr", null, row.cells);
    row.tr.row = row;
    watch.observe(row.tr);
    rows.set(r.at, row);
    return row;
  }
  let sorted = "";
  function sort() {
    const query = $("search").value.trim().toLowerCase();
    const list = [...known.values()].filter(r => !query || r.name.toLowerCase().includes(query))
      .map(r => [r, sum(r.pass) + sum(r.block)]).sort((a, b) => b[1] - a[1] || (a[0].name < b[0].name ? -1 : 1)).map(p => p[0]);
    sheet.classList.toggle("timed", timed);
    head.textContent = query ? list.length + " of " + known.size + " resources" : known.size + " resources, those with most traffic first";
    const order = JSON.stringify(list.map(r => r.at));
    if (order === sorted) return;
    sorted = order;
    const focused = document.activeElement?.closest?.("tr")?.row;
    body.replaceChildren(...list.map(r => {
      const row = rows.get(r.at) || rowOf(r);
      row.of = r;
      return row.tr;
    }));
    for (const [at, row] of rows) if (!known.has(at)) { drop(row); watch.unobserve(row.tr); rows.delete(at); }
    if (focused) focused.link.focus();
  }
  const all = () => { for (const row of rows.values()) row.of = known.get(row.of.at) || row.of; sort(); seen.forEach(draw); };
  let ticks = 0;
  view = {
    name: "resources",
    resources: all,
    marks: () => seen.forEach(draw),
    frame: () => {
      // Rows stay in place while somebody uses them.
      if (ticks++ % 3 === 0 && !body.matches(":hover") && !body.contains(document.activeElement)) sort();
      if (timed && ticks % 5 === 0) loadMarks();
      seen.forEach(draw);
    },
    search: sort,
    theme: () => seen.forEach(row => { drop(row); draw(row); }),
    move: by => {
      const links = [...body.querySelectorAll("a")];
      const at = links.indexOf(document.activeElement);
      links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
    },
  };
  leave = () => { watch.disconnect(); rows.forEach(drop); };
  all();
}

const figure = (name, value, c) => h("div", null, h("span", { class: "dim" }, name), h("b", { class: c }, value));
const section = (title, key) => [h("h2", null, title), h("div", { "data-part": key, class: "scroll" })];
const table = (heads, rows, none) => rows.length === 0 ? h("p", { class: "empty" }, none) :
  h("table", null, h("thead", null, h("tr", null, heads.map(t => h("th", { scope: "col" }, t)))), h("tbody", null, rows.map(cells => h("tr", null, cells.map(c => h("td", null, c))))));

function fullness(full, m) {
  if (full === undefined) return h("span", { class: "dim" }, m?.atHand ? whole(m.measured) + " of " + whole(m.limit) + " at hand" : "–");
  const i = h("i");
  i.style.width = Math.min(100, full * 100) + "%";
  let text = share(full); // a rule that is as full as one of its values has no measure
  if (m) text += " (" + whole(m.measured) + " of " + whole(m.limit) + (m.unit ? " " + m.unit : "") + ", " + m.of + (m.for ? ", " + spaced(m.for) : "") + ")";
  return h("span", null, h("span", { class: "full" + (full >= 1 ? " over" : full >= .8 ? " much" : ""), "aria-hidden": "true" }, i), text);
}

function ruleRow(r, writable) {
  return [
    [h("span", { class: "dim" }, (r.list || r.kind) + " "), bdi(r.id), r.mode !== "enforce" && h("span", { class: "mark plain" }, r.mode),
      r.storeAway && h("span", { class: "mark", title: "The store of this limit doesn't answer" }, "store away")],
    h("code", null, label(summary(r.rule))),
    fullness(r.full, r.measures?.[0]),
    r.mode === "shadow" ? whole(r.shadowBlocked) + " would have been" : whole(r.refused),
    writable && r.rule && !r.rule.exceptions?.some(e => inexact(e.value)) ?
      h("button", { type: "button", onclick: () => edit(r), "aria-label": "Change the rule " + named(r.id) }, "Change") : "",
  ];
}

const summary = rule => !rule ? "" : Object.entries(rule).filter(([k]) => !["id", "resource", "mode"].includes(k)).map(([k, v]) => k + ": " + (typeof v === "object" ? JSON.stringify(v) : v)).join(", ");

let writable = false;

function ruleTable(list, withResource) {
  const heads = ["Rule", "Says", "How full now", "Refused", ""];
  return table(withResource ? ["Resource", ...heads] : heads,
    list.map(r => withResource ? [!r.resource ? h("span", { class: "dim" }, "all") : r.resource === "*" || r.rule?.match ? bdi(r.resource) : link(r.resource), ...ruleRow(r, writable)] : ruleRow(r, writable)), "No rule applies.");
}

// whyOf returns the reason of a breaker's state, and its counts when it opened.
const whyOf = b => label(b.why || "") + (b.trip ? " – opened " + clock(b.trip.at) + " with " + whole(b.trip.bad) + " bad of " + whole(b.trip.calls) : "");

function timeline(changes, now) {
  if (changes.length === 0) return h("p", { class: "empty" }, "No breaker changes.");
  const lines = new Map();
  for (const c of changes) {
    const key = JSON.stringify([c.rule, c.resource]);
    lines.set(key, [c, ...(lines.get(key) || [])]); // oldest first
  }
  return [...lines.values()].map(list => {
    const from = Date.parse(list[0].at), length = Math.max(1, Date.parse(now) - from);
    const bar = h("div", { class: "bar", role: "img", "aria-label": list.map(c => clock(c.at) + " " + c.to).join(", ") });
    list.forEach((c, i) => {
      const piece = h("i", { class: c.to, title: clock(c.at) + " " + c.from + " → " + c.to + (c.why ? ": " + label(c.why) : "") });
      piece.style.flexGrow = Math.max(.002, ((i + 1 < list.length ? Date.parse(list[i + 1].at) : Date.parse(now)) - Date.parse(c.at)) / length);
      bar.append(piece);
    });
    return h("div", null, h("div", null, bdi(list[0].rule), h("span", { class: "dim" }, " of "), link(list[0].resource)), bar,
      h("ol", { class: "dim" }, list.slice(-8).reverse().map(c => h("li", null, clock(c.at) + "  " + c.from + " → " + c.to + (c.why ? ": " + label(c.why) : "")))));
  });
}

function showResource(at) {
  const chartBox = h("div", { class: "chart", role: "img" });
  main.replaceChildren(
    h("p", null, h("a", { href: "#/" }, "← all resources")),
    h("h1", null, nameAt(at)),
    h("div", { "data-part": "figures", class: "figures" }), chartBox,
    ...section("Rules", "rules"), ...section("Last refusals", "refusals"), ...section("Callers", "origins"),
    ...section("Hot values", "hot"), ...section("Breakers", "breakers"),
    h("h2", null, "Explain"), explainForm(at));
  let plot = bigChart(chartBox), data;
  const stop = new AbortController();
  let busy = false;
  async function load() {
    if (busy) return;
    busy = true;
    try {
      data = await get("/api/resource?name=" + at, { signal: stop.signal });
      if (!stop.signal.aborted) show();
    } catch (e) {
      data ? stale(e) : fail(e);
    } finally {
      busy = false;
    }
  }
  function show() {
    const { pass, block } = data.history;
    const x = seconds.map(i => data.endUnix - minute + 1 + i);
    const passed = pass.slice(0, minute - 1), blocked = block.slice(0, minute - 1);
    plot.setData([x, passed.map((p, i) => p + blocked[i]), passed, blocked, x.map(() => data.limit ?? null)]);
    chartBox.setAttribute("aria-label", "The last minute: " + whole(data.minute.pass) + " passed and " + whole(data.minute.block) + " blocked; the last second " +
      data.lastSecond.pass + " and " + data.lastSecond.block + (data.limit === undefined ? "" : "; the limit is " + whole(data.limit) + " a second"));
    const s = data.lastSecond, m = data.minute;
    const percentiles = ["p50Ms", "p95Ms", "p99Ms"].filter(p => m[p] !== undefined);
    part(main, "figures", [s, m, data.inFlight, data.waiting, data.limit, data.units], () => [
      figure("pass/s", whole(s.pass), "pass"), figure("block/s", whole(s.block), s.block ? "block" : ""), figure("RT", ms(s.avgRtMs), "rt"),
      percentiles.map(p => figure(p.slice(0, 3), ms(m[p]), "rt")),
      figure("in flight", String(data.inFlight)), figure("waiting", String(data.waiting)),
      data.limit !== undefined && figure("limit/s", whole(data.limit)), figure("blocked in a minute", whole(m.block)), figure("errors in a minute", whole(m.exception)),
      (data.units || []).map(({ unit, minute: n }) => [figure(unit + " in a minute", whole(n.reserved - n.refunded + n.overdrawn)),
        ["refunded", "overdrawn", "forgiven", "refused", "uncosted"].map(x => n[x] > 0 && figure(unit + " " + x, whole(n[x])))]),
    ].flat(3).filter(Boolean));
    part(main, "rules", data.rules, list => ruleTable(list, false));
    part(main, "refusals", data.refusals, list => table(["When", "Calls", "Why", "Caller", "Value"],
      list.map(r => [clock(r.last), String(r.count), quoted(r.reason), r.origin ? bdi(r.origin) : "", r.value ? quoted(r.value) : ""]), "No recent refusals."));
    part(main, "origins", data.origins, list => table(["Caller", "pass/s", "block/s", "passed in a minute", "blocked in a minute", "in flight"],
      list.map(o => [bdi(o.name), whole(o.lastSecond.pass), whole(o.lastSecond.block), whole(o.minute.pass), whole(o.minute.block), String(o.inFlight)]), "No call has an origin."));
    part(main, "hot", data.hotValues, list => table(["Value", "Rule", "How full now", "Passed", "Refused", "In flight"],
      list.map(v => [quoted(v.value), bdi(v.rule), fullness(v.full, v.measure), whole(v.passed), whole(v.refused), String(v.inFlight)]), "No rule limits single values here."));
    part(main, "breakers", [data.breakers, data.changes], () => [
      table(["Breaker", "State", "Why", "Calls", "Bad", "Neutral", "Next probe"], data.breakers.map(b => [bdi(b.rule), h("b", { class: b.state === "closed" ? "pass" : "block" }, b.state),
        whyOf(b), whole(b.calls), whole(b.bad), whole(b.neutral || 0), b.retryAt ? clock(b.retryAt) : ""]), "No breaker watches this resource."),
      data.changes.length > 0 && timeline(data.changes, data.at)].flat().filter(Boolean));
  }
  view = { name: "resources", frame: load, reload: load, theme: () => { plot.destroy(); plot = bigChart(chartBox); if (data) show(); } };
  leave = () => { stop.abort(); plot.destroy(); };
  load();
}

function showTree() {
  const box = h("div", { class: "tree" });
  main.replaceChildren(h("h1", null, "Tree"), h("p", { class: "dim" }, "Calls by context, nested like the calls: units per second passed and blocked, and the response time."), box);
  const folded = new Set(), built = new Map();
  let times = new Map(); // p95 by resource, if percentiles are on
  const stop = new AbortController();
  const figures = n => whole(n.lastSecond.pass) + " pass, " + whole(n.lastSecond.block) + " block, " + ms(n.lastSecond.exited ? n.lastSecond.rtMs / n.lastSecond.exited : 0) + (times.has(address(n.name, n.escaped)) && n.kind === "call" ? ", p95 " + ms(times.get(address(n.name, n.escaped))) : "") + (n.inFlight ? ", " + n.inFlight + " in flight" : "");
  const pathOf = (above, n) => above + JSON.stringify([n.kind, address(n.name, n.escaped)]);
  function node(n, path) {
    path = pathOf(path, n);
    const numbers = h("span", { class: "n" }, figures(n));
    built.set(path, numbers);
    const name = n.kind === "call" ? link(n.name, n.escaped) : nameAt(address(n.name, n.escaped));
    if (!n.children?.length) return h("li", null, h("div", { class: "leaf" }, name, numbers));
    const d = h("details", { open: !folded.has(path) }, h("summary", null, name, numbers), h("ul", null, n.children.map(c => node(c, path))));
    d.addEventListener("toggle", () => d.open ? folded.delete(path) : folded.add(path));
    return h("li", null, d);
  }
  const paths = (n, path, to) => { path = pathOf(path, n); to.push([path, n]); (n.children || []).forEach(c => paths(c, path, to)); return to; };
  let was = "";
  async function load() {
    try {
      const { root, resources } = await get("/api/tree", { signal: stop.signal });
      times = new Map((resources || []).filter(r => r.p95Ms !== undefined).map(r => [address(r.name, r.escaped), r.p95Ms]));
      const list = paths(root, "", []), shape = list.map(p => p[0]).join();
      if (shape === was) { // only numbers have changed
        for (const [path, n] of list) { const e = built.get(path); if (e) e.textContent = figures(n); }
        return;
      }
      was = shape;
      built.clear();
      box.replaceChildren(h("ul", null, node(root, "")));
    } catch (e) { was ? stale(e) : fail(e); }
  }
  let ticks = 0;
  view = { name: "tree", frame: () => { if (known.size < 200 || ticks++ % 5 === 0) load(); } };
  leave = () => stop.abort();
  load();
}

function showRules() {
  main.replaceChildren(h("h1", null, "Rules"), h("p", { class: "dim", "data-part": "head" }), h("div", { class: "scroll", "data-part": "rules" }),
    h("h2", null, "Sources"), h("div", { class: "scroll", "data-part": "sources" }));
  const stop = new AbortController();
  let busy = false, loaded = false;
  async function load() {
    if (busy) return;
    busy = true;
    try {
      const all = await get("/api/rules", { signal: stop.signal });
      loaded = true;
      writable = all.writable;
      part(main, "head", [all.rules.length, all.revision, all.hash], () => all.rules.length + " rules in force, revision " + all.revision + (all.hash ? ", " + all.hash : ""));
      const query = $("search").value.trim().toLowerCase();
      const list = all.rules.filter(r => !query || (r.id + " " + r.resource).toLowerCase().includes(query));
      part(main, "rules", list, l => ruleTable(l, true));
      part(main, "sources", all.sources, l => table(["Source", "Rules", "Loaded", "Problem"], l.map(s =>
        [bdi(s.source), String(s.rules), s.lastSuccess ? clock(s.lastSuccess) : "–", s.ok ? "" : h("span", { class: "bad" }, label(s.lastError || "not loaded"))]), "No rules were loaded."));
    } catch (e) { loaded ? stale(e) : fail(e); } finally { busy = false; }
  }
  let ticks = 0;
  view = { name: "rules", frame: () => { if (ticks++ % 2 === 0) load(); }, reload: load, search: load };
  leave = () => stop.abort();
  load();
}

function showBreakers() {
  main.replaceChildren(h("h1", null, "Breakers"), h("div", { class: "scroll", "data-part": "states" }), h("h2", null, "What they did"), h("div", { "data-part": "changes" }));
  const stop = new AbortController();
  let loaded = false;
  async function load() {
    try {
      const all = await get("/api/breakers", { signal: stop.signal });
      loaded = true;
      part(main, "states", all.breakers, l => table(["Breaker", "Resource", "State", "Since", "Why", "Calls", "Bad", "Neutral", "Next probe"], l.map(b =>
        [bdi(b.rule), link(b.resource), h("b", { class: b.state === "closed" ? "pass" : "block" }, b.state), b.since ? clock(b.since) : "", whyOf(b), whole(b.calls), whole(b.bad), whole(b.neutral || 0), b.retryAt ? clock(b.retryAt) : ""]), "There are no breakers, or no call has needed one yet."));
      part(main, "changes", all.changes, l => timeline(l, all.at));
    } catch (e) { loaded ? stale(e) : fail(e); }
  }
  view = { name: "breakers", frame: load, breaker: load };
  leave = () => stop.abort();
  load();
}

// explainForm asks about the resource of an address, if there is one, even if an input can't hold its name (with line feeds).
function explainForm(at) {
  const field = (name, text, value, more) => h("label", null, text, h("input", { name, value, autocomplete: "off", spellcheck: "false", ...more }));
  const out = h("div", { role: "status" });
  const form = h("form", { class: "ask", onsubmit: async event => {
    event.preventDefault();
    const q = new URLSearchParams();
    for (const name of ["origin", "context", "units"]) if (form.elements[name].value) q.set(name, form.elements[name].value);
    const resource = form.elements.resource.value === given ? at : encodeURIComponent(form.elements.resource.value);
    q.set("inbound", form.elements.inbound.checked);
    for (const [field, key] of [["args", "arg."], ["costs", "cost."]]) {
      for (const pair of form.elements[field].value.split(/\s+/).filter(Boolean)) {
        const at = pair.indexOf("=");
        q.set(key + pair.slice(0, Math.max(at, 0)), pair.slice(at + 1));
      }
    }
    try {
      const x = await get("/api/explain?resource=" + resource + "&" + q);
      out.replaceChildren(h("pre", null, lines(x.text)),
        h("p", { class: "dim" }, x.assumed.length > 0 ? "Assumed about the call: " + x.assumed.join(", ") + "." : ""));
    } catch (e) { out.replaceChildren(h("p", { class: "bad" }, label(e.message))); }
  } },
    field("resource", "Resource", written(at), { required: true }), field("origin", "Caller", ""), field("context", "Context", ""),
    field("units", "Units", "1", { inputmode: "numeric" }), field("args", "Arguments, such as user=ann 0=7", ""), field("costs", "Costs, such as tokens=1200", ""),
    h("label", null, h("span", null, "Inbound: system rules apply "), h("input", { name: "inbound", type: "checkbox", class: "box", checked: true })),
    h("button", { class: "main" }, "Explain a call"));
  const given = form.elements.resource.value;
  return h("div", null, form, out);
}

function showExplain() {
  main.replaceChildren(h("h1", null, "Explain"), h("p", { class: "dim" }, "What the rules would decide for a call arriving now. It isn't counted."), explainForm(""));
  view = { name: "explain" };
  leave = () => {};
}

// ---- changing a rule: first its diff is shown, then it is applied ----

function edit(r) {
  const box = $("edit-dialog"), text = $("edit-text"), apply = $("edit-apply"), error = $("edit-error"), diff = $("edit-diff");
  let shown;
  const reset = () => { shown = undefined; apply.disabled = true; diff.textContent = ""; error.textContent = ""; };
  $("edit-title").textContent = "Change the " + (r.list || r.kind) + " rule " + named(r.id);
  text.value = JSON.stringify({ ...r.rule, id: r.id }, null, 2).replace(hidden, c => c === "\n" ? c : escape(c));
  reset();
  text.oninput = reset;
  const send = async (path, more) => {
    error.textContent = "";
    try {
      JSON.parse(text.value); // checks that it is one value; it is sent as written
      return await post(path, `{"rules":{${JSON.stringify(r.list || r.kind)}:[${text.value}]}${more}}`);
    } catch (e) { error.textContent = label(e.message); }
  };
  $("edit-cancel").onclick = () => box.close();
  $("edit-show").onclick = async () => {
    reset();
    shown = await send("/api/rules/diff", "");
    if (shown) { diff.textContent = lines(shown.diff); apply.disabled = false; apply.focus(); }
  };
  apply.onclick = async () => { if (await send("/api/rules/apply", `,"proof":${JSON.stringify(shown.proof)}`)) { box.close(); view.reload?.(); } };
  box.showModal();
}

// ---- navigation ----

const views = [["#/", showResources], ["#/tree", showTree], ["#/rules", showRules], ["#/breakers", showBreakers], ["#/explain", showExplain]];

function route() {
  leave();
  leave = () => {};
  view = {};
  main.was = undefined;
  const at = location.hash || "#/";
  if (at.startsWith("#/r/")) showResource(proper(at.slice(4)));
  else (views.find(v => v[0] === at) || views[0])[1]();
  for (const a of document.querySelectorAll("nav a")) {
    if (a.dataset.view === view.name) a.setAttribute("aria-current", "page"); else a.removeAttribute("aria-current");
  }
  document.title = (main.querySelector("h1")?.textContent || "") + " – Penstock";
  scrollTo(0, 0);
}

addEventListener("hashchange", () => { route(); main.focus({ preventScroll: true }); });
document.querySelector(".skip").addEventListener("click", event => { event.preventDefault(); main.focus(); });

$("search").addEventListener("input", () => {
  if (view.search) view.search();
  else if (location.hash !== "#/") { location.hash = "#/"; }
});
$("search").addEventListener("keydown", event => {
  if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); main.querySelector("tbody a")?.focus(); }
  if (event.key === "Enter") main.querySelector("tbody a")?.click();
});
addEventListener("keydown", event => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (typing && event.target.value) { event.target.value = ""; event.target.dispatchEvent(new Event("input")); }
    else if (typing) event.target.blur();
    else if (location.hash && location.hash !== "#/") location.hash = "#/";
    return;
  }
  if (typing) return;
  if (event.key === "/") { event.preventDefault(); $("search").focus(); }
  else if (/^[1-5]$/.test(event.key)) location.hash = views[event.key - 1][0];
  else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && view.move) { event.preventDefault(); view.move(event.key === "ArrowDown" ? 1 : -1); }
});

$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  localStorage.setItem("theme", root.dataset.theme = dark ? "light" : "dark");
  view.theme?.();
});
if (localStorage.getItem("theme")) document.documentElement.dataset.theme = localStorage.getItem("theme");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.theme?.());

route();
get("/api/rules").then(all => { writable = all.writable; }).catch(() => {});
listen();
})();
