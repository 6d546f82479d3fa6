'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const [TITLE, LINE, HEAD, PAD] = [12, 10, 26, 14];
const FONT = 'Helvetica, Arial, "Liberation Sans", sans-serif';
const twoGraphs = data.graphs.length > 1;
const element = (name, properties = {}, ...children) => {
  const e = Object.assign(document.createElement(name), properties);
  e.append(...children.filter(c => c !== null));
  return e;
};

// ---- colours ----------------------------------------------------------------------------------------------------------
let colour = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const get = name => style.getPropertyValue('--' + name).trim();
  for (const name of ['back', 'ink', 'soft', 'faint', 'accent', 'line', 'frame', 'frameline', 'added', 'removed', 'changed', 'found', 'bar']) colour[name] = get(name);
  colour.fill = {}; colour.edge = {};
  for (const [look, name] of [['input', 'io'], ['output', 'io'], ['weights', 'weights'], ['view', 'view'], ['pointwise', 'pointwise'], ['reduction', 'reduction'], ['other', 'box'], ['module', 'module']]) {
    colour.fill[look] = get(name);
    colour.edge[look] = get(name + 'line');
  }
}

// ---- one graph in its canvas ------------------------------------------------------------------------------------------

// x becomes x and what is inserted left of it: open modules need more room than closed ones.
class Stretch {
  constructor() { this.pieces = []; }
  widen(begin, end, size) {
    const more = size - (this.at(end) - this.at(begin));
    if (more > 0) this.pieces.push([begin, end, more]);
  }
  at(x) {
    let out = x;
    for (const [begin, end, more] of this.pieces) out += more * Math.min(1, Math.max(0, (x - begin) / (end - begin)));
    return out;
  }
}

class View {
  constructor(graph, number) {
    this.graph = graph;
    this.number = number;
    this.boxes = graph.boxes;
    this.nodes = graph.nodes;
    this.open = this.boxes.map(b => Boolean(b.open));
    this.users = this.nodes.map(() => []);
    this.nodes.forEach((n, i) => n.inputs.forEach(k => this.users[k].push(i)));
    this.scale = 1; this.x = 0; this.y = 0;
    this.chosen = -1;   // a box
    this.found = new Set();
    this.frames = 0;    // drawn so far
    this.canvas = element('canvas', {tabIndex: 0});
    this.canvas.setAttribute('role', 'img');
    this.canvas.setAttribute('aria-label', 'the graph ' + graph.name);
    this.pane = element('div', {className: 'pane'}, this.canvas);
    if (twoGraphs) this.pane.append(element('div', {className: 'name', textContent: (number ? 'B: ' : 'A: ') + graph.name}));
    this.context = this.canvas.getContext('2d', {alpha: false});
    this.states();
    this.arrange();
    this.listen();
  }

  // What differs: of nodes what the match says, of modules what they hold.
  states() {
    this.state = this.boxes.map(() => '');
    if (!twoGraphs) return;
    const alone = this.number ? 'added' : 'removed';
    for (let b = this.boxes.length; b-- > 1;) {
      const box = this.boxes[b];
      if (box.node !== undefined) {
        const own = [box.node, ...(box.folded || []), ...(box.weights || []).map(w => w.node)].map(k => this.nodes[k]);
        const node = this.nodes[box.node];
        this.state[b] = node.partner === undefined ? alone : own.some(n => n.changed || n.partner === undefined) ? 'changed' : 'same';
      } else {
        const inside = new Set();
        for (let c = b + 1; c < box.end; c = this.boxes[c].end) inside.add(this.state[c]);
        this.state[b] = inside.size === 1 && !inside.has('changed') ? [...inside][0] : 'changed';
      }
    }
  }

  // ---- places, as picture.cpp has them
  isOpen(b) { return b >= 0 && this.open[b]; }
  frame(m) {
    const s = this.size[m];
    return [Math.max(s[0] + 2 * PAD, this.boxes[m].w), s[1] + HEAD + PAD];
  }
  measure(m) {
    const level = this.boxes[m].level;
    const inside = level.places.filter(p => this.isOpen(p[0]));
    for (const p of inside) this.measure(p[0]);
    const across = this.across[m] = new Stretch(), down = this.down[m] = new Stretch();
    inside.sort((a, b) => this.frame(b[0])[0] - this.frame(a[0])[0]);
    for (const p of inside) across.widen(p[1], p[1] + p[3], this.frame(p[0])[0]);
    inside.sort((a, b) => this.frame(b[0])[1] - this.frame(a[0])[1]);
    for (const p of inside) down.widen(p[2], p[2] + p[4], this.frame(p[0])[1]);
    this.size[m] = [across.at(level.w), down.at(level.h)];
  }
  port(place, rect, x, number, comesIn) {
    if (!this.isOpen(place[0])) return rect[0] + (x - place[1]);
    const inside = this.boxes[place[0]].level;
    const border = inside.places[comesIn ? number : inside.exits + number];
    return rect[0] + (rect[2] - this.size[place[0]][0]) / 2 + this.across[place[0]].at(border[1] + border[3] / 2);
  }
  place(m, x, y, top, bottom) {
    const level = this.boxes[m].level, across = this.across[m], down = this.down[m];
    const rects = level.places.map((p, k) => {
      const [w, h] = this.isOpen(p[0]) ? this.frame(p[0]) : [p[3], p[4]];
      const cx = (across.at(p[1]) + across.at(p[1] + p[3])) / 2, cy = (down.at(p[2]) + down.at(p[2] + p[4])) / 2;
      const rect = [x + cx - w / 2, y + cy - h / 2, w, h];
      if (p[0] < 0) rect[1] = k < level.entries ? top : bottom;
      else { this.rect[p[0]] = rect; this.shown.push(p[0]); }
      if (this.isOpen(p[0])) this.place(p[0], rect[0] + (w - this.size[p[0]][0]) / 2, rect[1] + HEAD, rect[1], rect[1] + h);
      return rect;
    });
    for (const [source, sourcePort, values, strokes] of level.lines)
      for (const [target, targetPort, flags, flat] of strokes) {
        const points = [];
        for (let k = 0; k < flat.length; k += 2) points.push(x + across.at(flat[k]), y + down.at(flat[k + 1]));
        const n = points.length, to = rects[target];
        points[n - 4] = points[n - 2] = this.port(level.places[target], to, flat[n - 2], targetPort, true);
        points[n - 1] = to[1];
        if (!flags) {
          const from = rects[source];
          points[0] = points[2] = this.port(level.places[source], from, flat[0], sourcePort, false);
          points[1] = from[1] + from[3];
        }
        let left = points[0], right = points[0];
        for (let k = 2; k < n; k += 2) { left = Math.min(left, points[k]); right = Math.max(right, points[k]); }
        this.strokes.push({points, values, module: m, to: level.places[target][0], from: level.places[source][0], left, right});
      }
  }
  arrange() {
    this.across = []; this.down = []; this.size = [];
    this.rect = []; this.shown = []; this.strokes = [];
    for (const b of this.boxes)
      if (b.level && b.level.exits === undefined)
        b.level.exits = b.level.places.length - [...b.level.places].reverse().findIndex(p => p[0] >= 0);
    this.measure(0);
    this.place(0, 0, 0, 0, this.size[0][1]);
    this.near = null;
  }

  // ---- drawing
  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
  }
  // The lines of the values that the chosen box takes and gives, from box to box, and those boxes, as far as they are shown.
  neighbours() {
    if (this.near) return this.near;
    const near = this.near = {boxes: new Set(), strokes: new Set()}, chosen = this.chosen;
    if (chosen < 0) return near;
    const holds = (m, b) => b >= m && b < this.boxes[m].end;
    const taken = new Set(this.strokes.filter(s => s.to === chosen).flatMap(s => s.values));
    for (const s of this.strokes) {
      if (holds(chosen, s.module)) continue;
      const comes = s.values.some(v => taken.has(v)) && (s.to >= 0 ? holds(s.to, chosen) : !holds(s.module, chosen));
      if (!comes && !s.values.some(v => holds(chosen, v))) continue;
      near.strokes.add(s);
      for (const b of [s.from, s.to]) if (b >= 0 && !this.open[b]) near.boxes.add(b);
    }
    return near;
  }
  trace(s, c) {
    const p = s.points;
    c.moveTo(p[0], p[1]);
    for (let k = 2; k < p.length; k += 2) {
      if (p[k] === p[k - 2] || this.scale < 0.12) { c.lineTo(p[k], p[k + 1]); continue; }
      const middle = (p[k - 1] + p[k + 1]) / 2;
      c.bezierCurveTo(p[k - 2], middle, p[k], middle, p[k], p[k + 1]);
    }
  }
  draw() {
    const c = this.context, ratio = window.devicePixelRatio || 1, scale = this.scale;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = colour.back;
    c.fillRect(0, 0, this.canvas.width, this.canvas.height);
    c.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * this.x, ratio * this.y);
    const left = -this.x / scale, top = -this.y / scale;
    const right = left + this.canvas.clientWidth / scale, bottom = top + this.canvas.clientHeight / scale;
    const visible = r => r[0] < right && r[0] + r[2] > left && r[1] < bottom && r[1] + r[3] > top;
    const near = this.neighbours();
    const shown = this.shown.filter(b => visible(this.rect[b]));
    const frames = shown.filter(b => this.open[b]);
    for (const b of frames) this.drawFrame(b);
    const lines = this.strokes.filter(s => s.left < right && s.right > left && s.points[1] < bottom && s.points[s.points.length - 1] > top);
    const some = near.strokes.size > 0;
    this.drawLines(lines.filter(s => !near.strokes.has(s)), colour.line, 1.2, some ? 0.45 : 1);
    for (const b of shown) if (!this.open[b]) this.drawBox(b, near.boxes.has(b));
    if (some) this.drawLines(lines.filter(s => near.strokes.has(s)), colour.accent, 2, 1);
    c.globalAlpha = 1;
    if (TITLE * scale > 5) for (const b of frames) this.head(b, this.rect[b], '\u2212');
    ++this.frames;
  }
  drawLines(lines, style, width, alpha) {
    const c = this.context;
    c.globalAlpha = alpha;
    c.strokeStyle = c.fillStyle = style;
    c.lineWidth = Math.max(width, 0.6 / this.scale);
    c.beginPath();
    for (const s of lines) this.trace(s, c);
    c.stroke();
    if (this.scale > 0.25) {
      c.beginPath();
      for (const s of lines) {
        if (s.to < 0) continue;
        const n = s.points.length, x = s.points[n - 2], y = s.points[n - 1];
        c.moveTo(x, y); c.lineTo(x - 3.5, y - 6.5); c.lineTo(x + 3.5, y - 6.5); c.closePath();
      }
      c.fill();
    }
    c.globalAlpha = 1;
  }
  path(r) {
    const c = this.context;
    c.beginPath();
    if (this.scale > 0.5) c.roundRect(r[0], r[1], r[2], r[3], 5);
    else c.rect(r[0], r[1], r[2], r[3]);
  }
  // The edge says what is chosen, found or different.
  edge(b, style, isNear) {
    const c = this.context, state = this.state[b];
    const mark = b === this.chosen ? colour.accent : this.found.has(b) ? colour.found : state && state !== 'same' ? colour[state] : isNear ? colour.accent : '';
    c.strokeStyle = mark || style;
    c.lineWidth = mark ? Math.max(2.5, 1.5 / this.scale) : Math.max(1, 0.5 / this.scale);
    c.stroke();
  }
  drawFrame(b) {
    const c = this.context, r = this.rect[b];
    this.path(r);
    c.globalAlpha = 0.07; c.fillStyle = colour.frame; c.fill(); c.globalAlpha = 1;
    this.edge(b, colour.frameline, false);
  }
  head(b, r, sign) {
    const c = this.context, box = this.boxes[b];
    c.fillStyle = colour.ink;
    c.font = `bold ${TITLE}px ${FONT}`;
    const room = r[2] - 20 - (sign ? 16 : 0);
    if (this.open[b]) {  // lines pass behind it
      c.lineWidth = 3; c.strokeStyle = colour.back;
      c.strokeText(box.title, r[0] + 10, r[1] + 17, room);
    }
    c.fillText(box.title, r[0] + 10, r[1] + 17, room);
    const used = Math.min(room, c.measureText(box.title).width);
    c.font = `${LINE}px ${FONT}`;
    c.fillStyle = colour.faint;
    const detail = sign && this.open[b] ? `${box.detail} ${box.type.split('.').pop()}`.trim() : box.detail;
    if (detail && room - used > 12) c.fillText(detail, r[0] + 15 + used, r[1] + 17, room - used - 5);
    if (sign) { c.font = `${TITLE + 2}px ${FONT}`; c.fillText(sign, r[0] + r[2] - 17, r[1] + 17); }
  }
  drawBox(b, isNear) {
    const c = this.context, r = this.rect[b], box = this.boxes[b], module = box.look === 'module';
    const faded = this.state[b] === 'same' && twoGraphs;
    this.path(r);
    c.fillStyle = colour.fill[box.look];
    c.fill();
    this.edge(b, colour.edge[box.look], isNear);
    if (box.kind && r[2] * this.scale > 12) {  // modules that are alike have a band of one colour
      c.fillStyle = `hsl(${(box.kind * 137) % 360} 55% 55%)`;
      c.fillRect(r[0] + 1, r[1] + 5, 4, r[3] - 10);
    }
    if (LINE * this.scale < 4) return;
    if (faded) c.globalAlpha = 0.65;
    this.head(b, r, module ? '+' : '');
    c.font = `${LINE}px ${FONT}`;
    c.fillStyle = colour.soft;
    box.lines.forEach((line, k) => c.fillText(line, r[0] + 10, r[1] + 32 + 14 * k, r[2] - 20));
    c.globalAlpha = 1;
  }

  // ---- moving
  moveTo(x, y, scale) { this.x = x; this.y = y; this.scale = scale; schedule(); }
  fit() {
    const [w, h] = this.size[0], [cw, ch] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const scale = Math.min(1.3, cw / (w + 50), ch / (h + 50));
    this.moveTo((cw - scale * w) / 2, (ch - scale * h) / 2, scale);
  }
  // Wide enough to read, from the top.
  start() {
    this.fit();
    if (this.scale >= 0.55) return;
    const scale = Math.min(0.9, Math.max(0.55, this.canvas.clientWidth / (this.size[0][0] + 50)));
    this.moveTo((this.canvas.clientWidth - scale * this.size[0][0]) / 2, 30, scale);
  }
  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const scale = Math.min(6, Math.max(0.01, this.scale * factor)), k = scale / this.scale;
    this.moveTo(x - (x - this.x) * k, y - (y - this.y) * k, scale);
  }
  center(b) {
    const r = this.rect[b], scale = Math.max(this.scale, 0.7);
    const height = Math.min(r[3], this.canvas.clientHeight / scale - 80);  // of a tall frame the top
    this.moveTo(this.canvas.clientWidth / 2 - scale * (r[0] + r[2] / 2), this.canvas.clientHeight / 2 - scale * (r[1] + height / 2), scale);
  }
  at(x, y) {
    const wx = (x - this.x) / this.scale, wy = (y - this.y) / this.scale;
    for (let k = this.shown.length; k-- > 0;) {
      const r = this.rect[this.shown[k]];
      if (wx >= r[0] && wx <= r[0] + r[2] && wy >= r[1] && wy <= r[1] + r[3]) {
        if (this.open[this.shown[k]] && wy > r[1] + HEAD) continue;  // of an open module only its head
        return this.shown[k];
      }
    }
    return -1;
  }
  // Opens or closes modules; `anchor` stays where it is on the screen.
  setOpen(modules, value, anchor = -1) {
    const before = anchor >= 0 && this.rect[anchor];
    for (const m of modules) this.open[m] = value;
    this.arrange();
    const after = anchor >= 0 && this.rect[anchor];
    if (before && after) {
      this.x += this.scale * (before[0] + before[2] / 2 - after[0] - after[2] / 2);
      this.y += this.scale * (before[1] - after[1]);
    }
    schedule();
  }
  modules() { return this.boxes.map((_, b) => b).filter(b => b > 0 && this.boxes[b].level); }
  // Opens what the box is in.
  reveal(b) {
    const closed = [];
    for (let m = this.boxes[b].parent; m > 0; m = this.boxes[m].parent) if (!this.open[m]) closed.push(m);
    if (closed.length) this.setOpen(closed, true);
  }
  listen() {
    const canvas = this.canvas;
    let drag = null;
    canvas.addEventListener('wheel', e => {
      e.preventDefault();
      const unit = e.deltaMode === 1 ? 30 : 1;
      views.forEach(v => v.zoom(Math.exp(-e.deltaY * unit * 0.0015), e.offsetX, e.offsetY));
    }, {passive: false});
    canvas.addEventListener('pointerdown', e => {
      if (e.button !== 0) return;
      try { canvas.setPointerCapture(e.pointerId); } catch { /* made by a script */ }
      drag = {x: e.clientX, y: e.clientY, moved: false};
    });
    canvas.addEventListener('pointermove', e => {
      if (!drag) return;
      if (!drag.moved && Math.abs(e.clientX - drag.x) + Math.abs(e.clientY - drag.y) < 4) return;
      drag.moved = true;
      canvas.classList.add('moving');
      views.forEach(v => v.moveTo(v.x + e.clientX - drag.x, v.y + e.clientY - drag.y, v.scale));
      drag.x = e.clientX; drag.y = e.clientY;
    });
    const end = e => {
      canvas.classList.remove('moving');
      if (drag && !drag.moved && e.type === 'pointerup') this.click(this.at(e.offsetX, e.offsetY));
      drag = null;
    };
    canvas.addEventListener('pointerup', end);
    canvas.addEventListener('pointercancel', end);
  }
  click(b) {
    if (b >= 0 && this.boxes[b].level) toggle(this, b);
    choose(this, b);
  }
}

// ---- the page ---------------------------------------------------------------------------------------------------------
const search = element('input', {id: 'search', type: 'search', placeholder: 'search names, modules, shapes ( / )'});
search.setAttribute('aria-label', 'search');
const count = element('span', {id: 'count', className: 'soft'});
count.setAttribute('role', 'status');
const details = element('aside', {id: 'details', hidden: true});
const views = data.graphs.map((g, k) => new View(g, k));
const button = (text, title, run) => element('button', {textContent: text, title, onclick: run});

let scheduled = false;
function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => { scheduled = false; views.forEach(v => v.draw()); });
}

// The box of the other graph that stands for this one.
function twin(view, b) {
  if (!twoGraphs || b < 0) return [null, -1];
  const other = views[1 - view.number], box = view.boxes[b];
  if (box.node !== undefined) {
    const partner = view.nodes[box.node].partner;
    return [other, partner === undefined || other.nodes[partner].box === undefined ? -1 : other.nodes[partner].box];
  }
  return [other, other.boxes.findIndex((o, k) => k > 0 && o.level && o.path === box.path && o.part === box.part)];
}

function toggle(view, b) {
  const value = !view.open[b];
  view.setOpen([b], value, b);
  const [other, o] = twin(view, b);
  if (o > 0) other.setOpen([o], value, o);
}

// Shows in the other graph the same place as in this one.
function align(view, b, other, o) {
  const [r, p] = [view.rect[b], other.rect[o]], scale = view.scale;
  other.moveTo(view.x + scale * (r[0] + r[2] / 2 - p[0] - p[2] / 2), view.y + scale * (r[1] - p[1]), scale);
}

function choose(view, b) {
  views.forEach(v => { v.chosen = -1; v.near = null; });
  view.chosen = b;
  let [other, o] = twin(view, b), place = b;
  if (o >= 0) {
    other.reveal(o);
    other.chosen = o;
  }
  // What only one has is shown beside where it would be: what stands before it in both.
  while (other && o < 0 && place > 1) o = twin(view, --place)[1];
  if (o >= 0) {
    while (!other.rect[o]) o = other.boxes[o].parent;
    if (view.rect[place]) align(view, place, other, o);
  }
  tell(view, b);
  schedule();
}

function go(view, b) {
  view.reveal(b);
  view.center(b);
  choose(view, b);
}

// ---- the side panel
function link(view, k, name) {
  const n = view.nodes[k];
  const e = element('button', {className: 'link', textContent: name || n.name, title: n.val || ''});
  if (n.box === undefined) e.disabled = true;
  e.onclick = () => go(view, n.box);
  return e;
}
const part = (title, ...content) => content.some(c => c !== null) ? [element('h3', {textContent: title}), ...content] : [];
const code = text => text === undefined || text === '' ? null : element('code', {textContent: text});

function tell(view, b) {
  details.hidden = b < 0;
  if (b < 0) return resized();
  const box = view.boxes[b];
  details.replaceChildren(element('button', {className: 'close', textContent: '\u00d7', title: 'close (Esc)', onclick: () => choose(view, -1)}),
    ...(box.level ? tellModule(view, b) : tellNode(view, b)).filter(e => e !== null));
  details.scrollTop = 0;
  resized();
}

function tellModule(view, b) {
  const box = view.boxes[b];
  const alike = box.kind ? view.modules().filter(m => view.boxes[m].kind === box.kind) : [];
  return [
    element('h2', {textContent: box.path || 'the whole graph'}), element('code', {textContent: box.type}),
    ...part('holds', element('div', {textContent: `${box.operators} calls` + (box.parameters ? `, ${box.parameters.toLocaleString('en')} elements of weights` : '')})),
    ...(alike.length > 1 ? part(`alike: ${alike.length} modules with the same calls on the same sizes`, ...alike.map(m => element('button', {className: 'link', textContent: view.boxes[m].path, onclick: () => go(view, m)}))) : []),
    ...part('', button(view.open[b] ? 'close' : 'open', 'Enter', () => { toggle(view, b); tell(view, b); }))];
}

function tellNode(view, b) {
  const box = view.boxes[b], n = view.nodes[box.node];
  const partner = n.partner === undefined ? null : views[1 - view.number].nodes[n.partner];
  const differs = key => partner && JSON.stringify(partner[key]) !== JSON.stringify(n[key]);
  const row = (title, key, show = code) => {
    const out = part(title, show(n[key]));
    return differs(key) ? [...out, element('div', {className: 'changed'}, (view.number ? 'in A: ' : 'in B: '), show(partner[key]) || 'nothing')] : out;
  };
  const list = items => items && items.length ? element('pre', {textContent: items.join('\n')}) : null;
  const stack = (n.modules || []).map(([path, type]) => `${data.texts[path] || '(the model)'}  ${data.texts[type].split('.').pop()}`);
  const state = view.state[b];
  return [
    element('h2', {textContent: n.name}),
    element('code', {textContent: n.op + '  ' + n.target}),
    twoGraphs ? element('div', {className: state, textContent: state === 'same' ? 'the same in both' : state === 'changed' ? 'differs' : `only in ${view.number ? 'B' : 'A'}`}) : null,
    ...(differs('target') ? [element('div', {className: 'changed', textContent: `in ${view.number ? 'A' : 'B'}: ${partner.target}`})] : []),
    ...row('value', 'val'),
    ...row('arguments', 'args', list),
    ...part('weights', ...(box.weights || []).map(w => {
      const other = view.nodes[w.node].partner === undefined || !twoGraphs ? null : views[1 - view.number].nodes[view.nodes[w.node].partner];
      return element('div', {className: other && other.val !== view.nodes[w.node].val ? 'changed' : ''}, code(`${w.path}${w.view ? ' .' + w.view : ''} : ${w.val}`));
    })),
    ...(box.weights || []).filter(w => view.nodes[w.node].graph !== undefined).flatMap(w => part('the graph ' + w.path, element('pre', {textContent: data.texts[view.nodes[w.node].graph]}))),
    ...part('module', stack.length ? element('pre', {textContent: stack.join('\n')}) : null),
    ...part('takes', ...n.inputs.map(k => link(view, k, view.nodes[k].weight))),
    ...part('taken by', ...view.users[box.node].map(k => link(view, k))),
    ...part('folded in: sizes, checks, items', list((box.folded || []).map(k => `${view.nodes[k].name} = ${view.nodes[k].target}(${view.nodes[k].args.join(', ')})${view.nodes[k].val ? ' : ' + view.nodes[k].val : ''}`))),
    ...part('source', n.source === undefined ? null : code(data.texts[n.source])),
    ...part('operator before decomposition', code(n.original)),
    ...part('stack trace', n.trace === undefined ? null : element('pre', {textContent: data.texts[n.trace].trimEnd()}))];
}

// ---- search
let hits = [], at = -1;
const words = view => view.words || (view.words = view.boxes.map((box, b) => {
  const of = k => { const n = view.nodes[k]; return `${n.name}\n${n.target}\n${n.val || ''}\n${n.weight || ''}`; };
  if (box.level) return b ? `${box.path}\n${box.type}` : '';
  const n = view.nodes[box.node];
  return [of(box.node), n.op, box.path || '', ...(box.folded || []).map(of), ...(box.weights || []).map(w => `${w.path}\n${w.val}`)].join('\n');
}).map(text => text.toLowerCase()));

function find() {
  const text = search.value.trim().toLowerCase();
  hits = []; at = -1;
  for (const view of views) {
    view.found.clear();
    if (text) words(view).forEach((w, b) => { if (w.includes(text)) { hits.push([view, b]); view.found.add(b); } });
  }
  tellCount();
  if (hits.length) next(1); else schedule();
}
function tellCount() {
  if (search.value.trim()) count.textContent = hits.length ? `${at + 1} of ${hits.length} found` : 'nothing found';
  else if (twoGraphs) count.textContent = summary();
  else count.textContent = `${data.graphs[0].nodes.length.toLocaleString('en')} nodes`;
}
function next(step) {
  if (!hits.length) return;
  at = (at + step + hits.length) % hits.length;
  tellCount();
  go(...hits[at]);
}

// ---- differences
const different = [];
if (twoGraphs) {
  views[0].nodes.forEach((n, k) => { if (n.box !== undefined && views[0].boxes[n.box].node === k && views[0].state[n.box] !== 'same') different.push([views[0], n.box]); });
  views[1].nodes.forEach((n, k) => { if (n.box !== undefined && views[1].boxes[n.box].node === k && views[1].state[n.box] === 'added') different.push([views[1], n.box]); });
}
let difference = -1;
function summary() {
  const of = state => different.filter(([v, b]) => v.state[b] === state).length;
  return different.length ? `${of('changed')} changed, ${of('removed')} only in A, ${of('added')} only in B` : 'the graphs are the same';
}
function nextDifference(step) {
  if (!different.length) return;
  difference = (difference + step + different.length) % different.length;
  go(...different[difference]);
}

// ---- the frame around it
const setAll = value => views.forEach(v => { v.setOpen(v.modules(), value); v.start(); });
document.body.append(
  element('header', {}, element('b', {textContent: document.title}), search, count, element('span', {className: 'space'}),
    ...(twoGraphs ? [button('\u2190 difference', 'p', () => nextDifference(-1)), button('difference \u2192', 'n', () => nextDifference(1))] : []),
    button('open all', 'o', () => setAll(true)), button('close all', 'c', () => setAll(false)),
    button('\u2212', '-', () => views.forEach(v => v.zoom(1 / 1.3))), button('+', '+', () => views.forEach(v => v.zoom(1.3))), button('fit', 'f', () => views.forEach(v => v.fit()))),
  element('main', {}, ...views.map(v => v.pane)), details);
const keys = [['weights', 'with weights'], ['pointwise', 'element by element'], ['reduction', 'reduction'], ['view', 'view'], ['other', 'other'], ['module', 'module: click opens']];
const key = element('div', {id: 'key'}, ...keys.map(([look, text]) => {
  const mark = element('i');
  mark.style.background = `var(--${look === 'other' ? 'box' : look})`;
  mark.style.borderColor = `var(--${look === 'other' ? 'box' : look}line)`;
  return element('span', {}, mark, text);
}), ...(twoGraphs ? ['removed', 'added', 'changed'].map(s => { const mark = element('i'); mark.style.borderColor = mark.style.background = `var(--${s})`; return element('span', {}, mark, {removed: 'only in A', added: 'only in B', changed: 'differs'}[s]); }) : []));
views[0].pane.append(key);

function resized() { views.forEach(v => v.resize()); schedule(); }
search.addEventListener('input', find);
search.addEventListener('keydown', e => { if (e.key === 'Enter') next(e.shiftKey ? -1 : 1); });
document.addEventListener('keydown', e => {
  if (e.key === 'Escape') { search.blur(); choose(views[0], -1); return; }
  if (e.target.tagName === 'INPUT' || e.ctrlKey || e.metaKey || e.altKey) return;
  const move = (dx, dy) => views.forEach(v => v.moveTo(v.x + dx, v.y + dy, v.scale));
  const chosen = views.find(v => v.chosen >= 0);
  const run = {
    '/': () => search.focus(), f: () => views.forEach(v => v.fit()), o: () => setAll(true), c: () => setAll(false),
    '+': () => views.forEach(v => v.zoom(1.3)), '=': () => views.forEach(v => v.zoom(1.3)), '-': () => views.forEach(v => v.zoom(1 / 1.3)),
    ArrowLeft: () => move(80, 0), ArrowRight: () => move(-80, 0), ArrowUp: () => move(0, 80), ArrowDown: () => move(0, -80),
    PageUp: () => move(0, 0.8 * innerHeight), PageDown: () => move(0, -0.8 * innerHeight), Home: () => views.forEach(v => v.start()),
    n: () => nextDifference(1), p: () => nextDifference(-1),
    Enter: () => { if (chosen && chosen.boxes[chosen.chosen].level) { toggle(chosen, chosen.chosen); tell(chosen, chosen.chosen); } },
  }[e.key];
  if (!run || (e.key === 'Enter' && e.target.tagName === 'BUTTON')) return;
  e.preventDefault();
  run();
});
addEventListener('resize', resized);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readColours(); schedule(); });
readColours();
tellCount();
resized();
views.forEach(v => v.start());
if (different.length) nextDifference(1);
