#!/usr/bin/env python3
"""A graph's page and picture, opened and used in a real browser: python tests/peers/graph_html.py [--pictures FOLDER]

Chromium (Debian's package `chromium`, headless) loads pages; mouse, wheel and keys arrive through its DevTools protocol, and what the page
then shows is asked of it. The pages: a golden graph, tiny-lm, a program that PyTorch exported where torch is there, two programs side by
side, and one whose names try to leave their place.
"""
import json
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "graph_html"))
from devtools import Browser  # noqa: E402

BIN = os.path.join(os.environ["CALQUE_BUILD"], "bin")
GOLDEN = os.path.join(HERE, "..", "graph", "golden", "code.json")
HOSTILE = ["</script><script>document.title='broken'</script>", "<img src=x onerror=\"document.title='broken'\">", "quote\"'`${document.title='broken'}",
           "line\u2028paragraph\u2029", "\u202egnp.exe\u202c\u200f", "nul\0esc\x1b[31m", "]]>--><!--", "&lt;script&gt;", "e\u0301\U0001f469\u200d\U0001f4bb"]

passed, failed = 0, []


def check(what, found, expected=True):
    global passed
    if found == expected:
        passed += 1
    else:
        failed.append(what)
        print(f"{what}: expected {expected!r}, found {found!r}")


def calque(*arguments):
    done = subprocess.run([os.path.join(BIN, "calque"), *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 1) or done.stderr:
        raise SystemExit(f"calque {' '.join(arguments)}: {done.stderr}")


def write(path, program, *arguments):
    with open(path, "wb") as f:
        subprocess.run([os.path.join(BIN, program), *arguments], check=True, stdout=f)


class Folder:
    """Files of this run; pictures of the pages go where --pictures says."""

    def __init__(self, browser, path, pictures):
        self.browser, self.path, self.pictures = browser, path, pictures

    def file(self, name, text=None):
        path = os.path.join(self.path, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        return path

    def picture(self, name):
        if self.pictures:
            self.browser.picture(os.path.join(self.pictures, name + ".png"))


def on_screen(browser, box, view=0):
    """The middle of a box's head on the screen."""
    return browser.do(f"(() => {{ const v = views[{view}], r = v.rect[{box}], c = v.canvas.getBoundingClientRect();"
                      f"return [c.left + v.x + v.scale * (r[0] + r[2] / 2), c.top + v.y + v.scale * (r[1] + Math.min(r[3], 24) / 2)]; }})()")


SHOWN = "[...views[0].shown].map(b => views[0].boxes[b])"


def moving(folder, browser):
    case = next(c for c in json.load(open(GOLDEN)) if c["name"] == "attention")
    page = folder.file("golden.html")
    write(page, "graph_html", folder.file("golden.txt", case["symbols"] + case["text"]))
    browser.open(page)
    check("title", browser.do("document.title"), "page <test>")
    calls = [line.split(" ")[0][1:] for line in case["text"].splitlines() if line.startswith("%") and "get_attr" not in line]
    titles = browser.do("views[0].boxes.filter(b => b.node !== undefined).map(b => views[0].nodes[b.node].name)")
    check("boxes are calls and inputs", set(titles) <= set(calls) | {"output"})
    state = "[views[0].x, views[0].y, views[0].scale]"
    before = browser.do(state)
    browser.mouse("mouseWheel", 500, 400, deltaX=0, deltaY=-300)
    browser.do("new Promise(requestAnimationFrame)")
    after = browser.do(state)
    check("the wheel zooms in", after[2] > before[2])
    left, top = browser.do("(() => { const r = views[0].canvas.getBoundingClientRect(); return [r.left, r.top]; })()")
    for k, at in ((0, 500 - left), (1, 400 - top)):
        check("what is under the pointer stays there", abs((at - before[k]) / before[2] - (at - after[k]) / after[2]) < 1)
    browser.mouse("mousePressed", 100, 300, button="left")
    browser.mouse("mouseMoved", 150, 330, button="left", buttons=1)
    browser.mouse("mouseReleased", 150, 330, button="left")
    moved = browser.do(state)
    check("dragging moves", [round(moved[0] - after[0]), round(moved[1] - after[1])], [50, 30])
    browser.key("ArrowRight")
    check("arrows move", browser.do("views[0].x") < moved[0])
    browser.key("f")
    check("f fits all", browser.do("views[0].shown.every(b => { const v = views[0], r = v.rect[b]; return v.scale * r[0] + v.x > -2 && v.scale * (r[0] + r[2]) + v.x"
                                   " < v.canvas.clientWidth + 2 && v.scale * r[1] + v.y > -2 && v.scale * (r[1] + r[3]) + v.y < v.canvas.clientHeight + 2; })"))
    browser.key("/", "/")
    check("/ goes to the search", browser.do("document.activeElement === search"))
    for c in "SOFTMAX":
        browser.key(c, c)
    check("search finds whatever the case", browser.do("[...views[0].found].map(b => views[0].nodes[views[0].boxes[b].node].name)"), ["_softmax"])
    check("and says how many", browser.do("count.textContent"), "1 of 1 found")
    check("and tells of it", browser.do("details.querySelector('h2').textContent"), "_softmax")
    check("the panel has the call", browser.do("details.textContent.includes('aten._softmax.default')"))
    check("inputs and users are marked", browser.do("[...views[0].neighbours().boxes].map(b => views[0].nodes[views[0].boxes[b].node].name)"
                                                 " .every(n => n === '_softmax' || views[0].nodes.some(m => m.name === '_softmax' && (m.inputs.some(k => views[0].nodes[k].name === n) "
                                                 "|| views[0].nodes.some((u, k) => u.name === n && u.inputs.includes(views[0].nodes.indexOf(m)))))) && views[0].neighbours().boxes.size > 2"))
    browser.do("search.value = 'no such thing'; search.dispatchEvent(new Event('input'))")
    check("nothing is found", browser.do("[views[0].found.size, count.textContent]"), [0, "nothing found"])
    browser.key("Escape")
    check("Escape closes the panel", browser.do("details.hidden"))
    check("nothing was asked of the network", browser.requests(), [])


def modules(folder, browser):
    page = folder.file("tiny.html")
    calque("trace", "tiny-lm", "-o", page)
    browser.open(page)
    folder.picture("tiny-lm")
    check("layers are there by name", browser.do(f"{SHOWN}.filter(b => /^model.layers.\\d+$/.test(b.path || '') && b.level).length"), 6)
    layer = browser.do("views[0].boxes.findIndex(b => b.path === 'model.layers.1' && b.level)")
    check("a further layer is closed at first", browser.do(f"views[0].open[{layer}]"), False)
    browser.do(f"views[0].center({layer})")
    x, y = on_screen(browser, layer)
    browser.click(x, y)
    check("a click opens it", browser.do(f"views[0].open[{layer}]"))
    check("and it stays where it is", [round(k) for k in on_screen(browser, layer)], [round(x), round(y)])
    check("and shows what it holds", browser.do(f"{SHOWN}.some(b => b.path === 'model.layers.1.self_attn')"))
    check("the panel names those that are alike", browser.do("[...details.querySelectorAll('.link')].map(e => e.textContent)"), [f"model.layers.{k}" for k in range(6)])
    folder.picture("tiny-lm-layer")
    browser.click(*on_screen(browser, layer))
    check("a click on its head closes it", browser.do(f"views[0].open[{layer}]"), False)
    browser.key("Enter")
    check("Enter opens it again", browser.do(f"views[0].open[{layer}]"))
    browser.key("c")
    check("c closes all", browser.do("views[0].modules().some(m => views[0].open[m])"), False)
    browser.do("search.value = 'layers.4.self_attn.q_proj.weight'; search.dispatchEvent(new Event('input'))")
    check("search opens what it finds", browser.do("views[0].chosen >= 0 && views[0].shown.includes(views[0].chosen)"))
    check("a weight is found in the box that takes it", browser.do("views[0].boxes[views[0].chosen].weights.map(w => w.path)"), ["model.layers.4.self_attn.q_proj.weight"])
    folder.picture("tiny-lm-found")
    check("no box is a weight or a size", browser.do("views[0].boxes.some(b => b.node !== undefined && ['get_attr'].includes(views[0].nodes[b.node].op))"), False)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    light = browser.do("(readColours(), colour.back)")
    browser.do("views[0].draw()")
    folder.picture("tiny-lm-dark")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    check("dark and light have colours of their own", browser.do("(readColours(), colour.back)") != light)
    check("nothing was asked of the network", browser.requests(), [])


def hostile(folder, browser):
    lines = ["%x : f32[2] = placeholder"] + [f"%n{k} : f32[2] = aten.relu.default(%{'x' if k == 0 else f'n{k - 1}'})" for k in range(len(HOSTILE))]
    text = "".join(f"name %n{k} = {json.dumps(name)}\n" for k, name in enumerate(HOSTILE)) + "\n".join(lines) + f"\nreturn (%n{len(HOSTILE) - 1},)\n"
    source, page, picture = folder.file("hostile.txt", text), folder.file("hostile.html"), folder.file("hostile.svg")
    write(page, "graph_html", source)
    browser.open(page)
    check("all boxes are there", browser.do("views[0].shown.length"), len(HOSTILE) + 2)
    for k, name in enumerate(HOSTILE):
        browser.do(f"go(views[0], {k + 2})")
        shown = browser.do("details.querySelector('h2').textContent")
        check(f"{name!r} is text", browser.do("[details.querySelectorAll('script, img').length, document.images.length]"), [0, 0])
        if name.isascii() and name.isprintable():
            check(f"{name!r} is itself", shown, name)
        check(f"{name!r} turns nothing round", any(c in shown for c in "\u2028\u2029\u202e\u202c\u200f\0\x1b"), False)
    check("no script of a name ran", browser.do("document.title"), "page <test>")
    check("nothing was asked of the network", browser.requests(), [])
    folder.picture("hostile")
    write(picture, "graph_html", "svg", source)
    xml.dom.minidom.parse(picture)
    browser.open(picture)
    check("the picture is valid in the browser", browser.do("document.documentElement.tagName + document.querySelectorAll('parsererror, script, img').length"), "svg0")


def text_fits(folder, browser):
    picture = folder.file("tiny.svg")
    calque("trace", "tiny-lm", "-o", picture)
    xml.dom.minidom.parse(picture)
    browser.open(picture)
    folder.picture("tiny-lm-svg")
    check("texts of the picture fit their boxes", browser.do("""[...document.querySelectorAll('g')].filter(g => {
      const r = g.querySelector('rect');
      return r && [...g.querySelectorAll('text')].some(t => { const a = t.getBBox(), b = r.getBBox();
        return a.x < b.x || a.x + a.width > b.x + b.width + 1 || a.y < b.y - 1 || a.y + a.height > b.y + b.height + 2; });
    }).length"""), 0)


def differences(folder, browser):
    a = folder.file("a.txt", "%x : f32[2, 3] = placeholder\n%y : f32[2, 3] = placeholder\n%a : f32[2, 3] = aten.add.Tensor(%x, %y)\n%b : f32[2, 3] = aten.relu.default(%a)\n"
                    "%c : f32[2, 1] = aten.sum.dim_IntList(%b, [1], True)\n%d : f32[2, 3] = aten.div.Tensor(%b, %c)\nreturn (%d,)\n")
    b = folder.file("b.txt", "%x : f32[2, 3] = placeholder\n%y : f32[2, 3] = placeholder\n%a : f32[2, 3] = aten.add.Tensor(%x, %y)\n%t : f32[2, 3] = aten.tanh.default(%a)\n"
                    "%b : f32[2, 3] = aten.relu.default(%t)\n%c : f32[1, 3] = aten.sum.dim_IntList(%b, [0], True)\nreturn (%b,)\n")
    page = folder.file("diff.html")
    write(page, "graph_html", a, b)
    browser.open(page)
    folder.picture("differences")
    states = "views.map(v => Object.fromEntries(v.boxes.map((b, k) => [b.node === undefined ? '' : v.nodes[b.node].name, v.state[k]]).filter(x => x[0])))"
    check("what differs is marked", browser.do(states),
          [{"x": "same", "y": "same", "a": "same", "b": "changed", "c": "changed", "d": "removed", "output": "changed"},
           {"x": "same", "y": "same", "a": "same", "t": "added", "b": "changed", "c": "changed", "output": "changed"}])
    check("and counted", browser.do("count.textContent"), "3 changed, 1 only in A, 1 only in B")
    seen = []
    for _ in range(5):
        seen.append(browser.do("details.querySelector('h2').textContent"))
        browser.key("n")
    check("n goes through the differences", sorted(seen), ["b", "c", "d", "output", "t"])
    browser.do("go(views[0], views[0].boxes.findIndex(b => b.node !== undefined && views[0].nodes[b.node].name === 'c'))")
    check("the other side is chosen too", browser.do("views[1].nodes[views[1].boxes[views[1].chosen].node].name"), "c")
    check("the panel has both values", browser.do("details.textContent.includes('f32[2, 1]') && details.textContent.includes('f32[1, 3]')"))


def programs(folder, browser):
    try:
        import torch
    except ImportError:
        return
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.norm = torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8)

        def forward(self, x):
            return torch.relu(self.norm(self.query(x))) + x

    class Model(torch.nn.Module):
        def __init__(self, last):
            super().__init__()
            self.layers, self.last = torch.nn.ModuleList(Layer() for _ in range(3)), last

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.last(x)

    torch.manual_seed(0)
    paths = []
    for name, last in (("gelu", torch.nn.GELU()), ("tanh", torch.nn.Tanh())):
        paths.append(folder.file(name + ".pt2"))
        torch.export.save(torch.export.export(Model(last).eval(), (torch.randn(4, 8),)), paths[-1])
    page = folder.file("program.html")
    calque("trace", paths[0], "-o", page)
    browser.open(page)
    folder.picture("program")
    check("a program of PyTorch has its modules", browser.do("views[0].boxes.filter(b => b.level && b.path).map(b => b.path)"), ["layers.0", "layers.1", "layers.2"])
    check("and its weights in their calls", browser.do("views[0].boxes.filter(b => b.title === 'linear').map(b => b.weights.map(w => w.path + ' ' + w.val))"),
          [[f"layers.{k}.query.weight f32[8, 8]", f"layers.{k}.query.bias f32[8]"] for k in range(3)])
    calque("diff", *paths, "-o", page)
    browser.open(page)
    folder.picture("programs")
    check("programs differ where they do", browser.do("different.map(([v, b]) => v.boxes[b].title)"), ["gelu", "output", "tanh"])


def profiles(folder, browser):
    page = folder.file("profile.html")
    calque("profile", "tiny-lm", "-n", "3", "-o", page)
    told = json.loads(subprocess.run([os.path.join(BIN, "calque"), "profile", "tiny-lm", "-n", "1", "--json"], capture_output=True, check=True).stdout)
    browser.open(page)
    folder.picture("profile")
    check("a profile's title", browser.do("document.title"), "tiny-lm")
    check("it has every step", browser.do("steps.map(s => [s.name, s.op, s.module, s.bytes, s.memory])"), [[s[k] for k in ("name", "op", "module", "bytes", "memory_bytes")] for s in told["steps"]])
    for key, rows in (("op", "operators"), ("module", "modules")):
        found = browser.do(f"[...document.querySelectorAll('#{key} tr')].slice(1).map(r => [r.cells[0].textContent, Number(r.cells[1].textContent)])")
        check(f"the table by {key} has every row", sorted(found), sorted([r["name"] or "(none)", r["calls"]] for r in told[rows]))
        times = browser.do(f"[...document.querySelectorAll('#{key} tr')].slice(1).map(r => Number(r.cells[2].textContent))")
        check(f"the table by {key} begins with what takes most", times, sorted(times, reverse=True))
    check("layers stand above their steps", browser.do("frames.filter(m => /^model\\.layers\\.\\d+$/.test(m.path)).map(m => [m.level, m.path])"), [[2, f"model.layers.{k}"] for k in range(6)])
    check("a layer is as wide as its steps", browser.do("frames.every(m => Math.abs(m.end - m.begin - steps.filter(s => s.begin >= m.begin && s.end <= m.end).reduce((a, s) => a + s.ms, 0)) < 1e-9)"))
    check("memory is drawn", browser.do("picture.querySelector('.held').getBBox().height > 50"))
    x, y = browser.do("(() => { const r = [...picture.querySelectorAll('.module')].sort((a, b) => b.getBBox().width - a.getBBox().width)[0].getBoundingClientRect(); return [r.x + r.width / 2, r.y + 5]; })()")
    browser.do("show(frames[2].begin, frames[2].end)")
    near = browser.do("[view.from, view.to]")
    browser.key("Escape")
    check("Escape shows the whole run", browser.do("view.from === 0 && view.to === all && view.to > " + str(near[1] - near[0])))
    browser.click(x, y)
    check("a click goes nearer and tells", browser.do("frames.some(m => m.begin === view.from && m.end === view.to && about.textContent.startsWith(m.path + ': '))"))
    browser.do("whole.click()")
    browser.do("document.querySelector('#op td button').click()")
    check("a row marks its steps", browser.do("[picture.querySelectorAll('.bar:not(.module):not(.dim)').length > 0, picture.querySelectorAll('.bar.module:not(.dim)').length]"), [True, 0])
    browser.do("document.querySelector('#op td button').click()")
    check("and once more marks none", browser.do("picture.querySelectorAll('.dim').length"), 0)
    check("nothing was asked of the network", browser.requests(), [])
    lines = ["%x : f32[2] = placeholder"] + [f"%n{k} : f32[2] = aten.relu.default(%{'x' if k == 0 else f'n{k - 1}'})" for k in range(len(HOSTILE))]
    text = "".join(f"name %n{k} = {json.dumps(name)}\n" for k, name in enumerate(HOSTILE)) + "\n".join(lines) + f"\nreturn (%n{len(HOSTILE) - 1},)\n"
    write(page, "graph_html", "profile", folder.file("hostile_profile.txt", text))
    browser.open(page)
    folder.picture("profile-hostile")
    check("all steps are there", browser.do("steps.length"), len(HOSTILE))
    for key in ("op", "module"):
        rows = browser.do(f"[...document.querySelectorAll('#{key} td:first-child')].map(e => e.textContent)")
        for name in HOSTILE:
            if name.isascii() and name.isprintable():
                check(f"{name!r} is a row by {key}", name in rows)
    browser.do("steps.forEach(tell)")
    check("names turn nothing round", any(c in row for row in rows for c in "\u2028\u2029\u202e\u202c\u200f\0\x1b"), False)
    check("no element came of a name", browser.do("[document.images.length, document.scripts.length]"), [0, 2])
    check("no script of a name ran", browser.do("document.title"), "page <test>")
    check("nothing was asked of the network", browser.requests(), [])


def main():
    pictures = sys.argv[sys.argv.index("--pictures") + 1] if "--pictures" in sys.argv else None
    if pictures:
        os.makedirs(pictures, exist_ok=True)
    with tempfile.TemporaryDirectory() as path, Browser() as browser:
        folder = Folder(browser, path, pictures)
        for part in (moving, modules, hostile, text_fits, differences, programs, profiles):
            part(folder, browser)
    print(f"{passed} passed, {len(failed)} failed")
    return len(failed) != 0


if __name__ == "__main__":
    sys.exit(main())
