"use strict";
// Draws a profile: modules above their steps, as wide as they take, what is held below, and two tables.
const data = JSON.parse(document.getElementById("data").textContent), steps = data.steps;
const rowHeight = 19, memoryHeight = 90;
let all = 0;
for (const s of steps) { s.begin = all; all += s.ms; s.end = all; }
const view = { from: 0, to: all || 1 };
let chosen = null;  // the key and value of a table's row

function element(tag, text, parent) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  (parent || document.body).append(e);
  return e;
}
function shape(tag, attributes, parent) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  parent.append(e);
  return e;
}
function inBytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let k = 0;
  while (n >= 1000 && k < units.length - 1) { n /= 1000; ++k; }
  return (k ? n.toFixed(1) : n) + " " + units[k];
}
const inMs = ms => ms.toFixed(ms < 10 ? 4 : 2) + " ms", inShare = ms => (all ? 100 * ms / all : 0).toFixed(1) + " %";

// A module for each piece of a path that follows on itself, step after step.
function modules() {
  const out = [];
  let open = [];
  for (const s of steps) {
    const parts = s.module ? s.module.split(".") : [];
    let same = 0;
    while (same < open.length && same < parts.length && open[same].part === parts[same]) ++same;
    open = open.slice(0, same);
    for (let k = same; k < parts.length; ++k) {
      open.push({ part: parts[k], path: parts.slice(0, k + 1).join("."), level: k, begin: s.begin, end: s.end });
      out.push(open[k]);
    }
    for (const m of open) m.end = s.end;
  }
  return out;
}
const frames = modules(), depth = frames.reduce((most, m) => Math.max(most, m.level + 1), 0);
const peak = steps.reduce((most, s) => Math.max(most, s.memory), 0);

element("h1", data.title);
element("p", `${steps.length} steps, ${inMs(data.run_ms)} (the median of ${data.runs} runs), ${data.threads} threads; their values hold at most ${inBytes(peak)}, inputs and weights aside`);
element("h2", "Modules and steps, as wide as they take");
const picture = shape("svg", { id: "time", height: (depth + 1) * rowHeight + memoryHeight + 22 }, document.body);
const about = element("p", "", document.body);
about.id = "about";
const whole = element("button", "the whole run");
whole.id = "whole";

function hue(text) {
  let h = 7;
  for (const c of text) h = (h * 31 + c.codePointAt(0)) % 360;
  return h;
}
function tell(bar) {
  const ms = bar.end - bar.begin;
  about.textContent = bar.op === undefined
    ? `${bar.path}: ${inMs(ms)}, ${inShare(ms)}`
    : `${bar.name}: ${bar.op}${bar.module ? " in " + bar.module : ""}: ${inMs(ms)}, ${inShare(ms)}; gives ${inBytes(bar.bytes)}, held ${inBytes(bar.memory)}`;
}
function show(from, to) {
  view.from = from;
  view.to = to > from ? to : from + 1e-6;
  draw();
}
function drawBar(bar, level, label, width) {
  const scale = width / (view.to - view.from);
  const x = Math.max(0, (bar.begin - view.from) * scale), w = Math.min(width, (bar.end - view.from) * scale) - x;
  if (bar.end <= view.from || bar.begin >= view.to || w < 0.2) return;
  const r = shape("rect", { class: "bar", x, y: level * rowHeight, width: w, height: rowHeight }, picture);
  if (bar.op === undefined) r.classList.add("module");
  else r.setAttribute("style", `fill:hsl(${hue(bar.op)} 60% var(--light))`);
  if (chosen && (bar.op === undefined || bar[chosen.key] !== chosen.value)) r.classList.add("dim");
  r.addEventListener("mouseenter", () => tell(bar));
  r.addEventListener("click", () => { tell(bar); show(bar.begin, bar.end); });
  const letters = Math.floor((w - 6) / 6.6);
  if (letters < 3) return;
  const t = shape("text", { x: x + 3, y: level * rowHeight + 13 }, picture);
  t.textContent = label.length <= letters ? label : label.slice(0, letters - 1) + "\u2026";
}
function drawMemory(width) {
  const top = (depth + 1) * rowHeight + 18, scale = width / (view.to - view.from), y = m => top + memoryHeight * (1 - m / (peak || 1));
  let path = `M0 ${y(0)}`;
  for (const s of steps) {
    if (s.end <= view.from || s.begin >= view.to) continue;
    const a = Math.max(0, (s.begin - view.from) * scale), b = Math.min(width, (s.end - view.from) * scale);
    path += `L${a} ${y(s.memory)}L${b} ${y(s.memory)}`;
  }
  shape("path", { class: "held", d: path + `L${width} ${y(0)}Z` }, picture);
  shape("text", { x: 3, y: top - 5 }, picture).textContent = "held by values: at most " + inBytes(peak);
}
function draw() {
  const width = picture.clientWidth;
  picture.replaceChildren();
  for (const m of frames) drawBar(m, m.level, m.part, width);
  for (const s of steps) drawBar(s, depth, s.op, width);
  drawMemory(width);
}

// One table: steps that are alike in `key`, what takes most first.
function table(title, key, parent) {
  const rows = new Map();
  for (const s of steps) {
    const row = rows.get(s[key]) || { value: s[key], calls: 0, ms: 0, bytes: 0 };
    rows.set(s[key], row);
    row.calls += 1;
    row.ms += s.ms;
    row.bytes += s.bytes;
  }
  const box = element("div", undefined, parent);
  element("h2", title, box);
  const t = element("table", undefined, box);
  t.id = key;
  const head = element("tr", undefined, t);
  for (const name of [key === "op" ? "operator" : "module", "calls", "ms", "share", "bytes given"]) element("th", name, head);
  for (const row of [...rows.values()].sort((a, b) => b.ms - a.ms)) {
    const line = element("tr", undefined, t), name = element("button", row.value || "(none)", element("td", undefined, line));
    name.setAttribute("aria-pressed", "false");
    name.addEventListener("click", () => {
      const same = chosen && chosen.key === key && chosen.value === row.value;
      for (const other of document.querySelectorAll("td button")) other.setAttribute("aria-pressed", "false");
      chosen = same ? null : { key, value: row.value };
      name.setAttribute("aria-pressed", String(!same));
      draw();
    });
    for (const text of [row.calls, row.ms.toFixed(4), inShare(row.ms), inBytes(row.bytes)]) element("td", text, line);
  }
}
const tables = element("div");
tables.id = "tables";
table("By operator", "op", tables);
table("By module", "module", tables);

whole.addEventListener("click", () => show(0, all || 1));
addEventListener("keydown", e => { if (e.key === "Escape") show(0, all || 1); });
addEventListener("resize", draw);
draw();
