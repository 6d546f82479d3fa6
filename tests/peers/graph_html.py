#!/usr/bin/env python3
"""A graph's HTML page, opened and used in a real browser: python tests/peers/graph_html.py [PROGRAM]

Chromium (Debian's package `chromium`, headless) loads the page; a script added at its end pans, zooms, searches and clicks, and
writes what it sees into the document, which is then read back.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "graph", "golden", "code.json")

ACTIONS = r"""
<script>
const log = {};
const transform = () => world.getAttribute('transform');
const wheel = dy => view.dispatchEvent(new WheelEvent('wheel', {deltaY: dy, clientX: 300, clientY: 200, bubbles: true, cancelable: true}));
const pointer = (type, x, y) => (type === 'pointerdown' ? view : window).dispatchEvent(new PointerEvent(type, {clientX: x, clientY: y, bubbles: true}));
try {
  log.title = document.title;
  log.drawn = document.querySelectorAll('.node').length;
  log.edges = document.querySelectorAll('.edge').length;
  log.overlaps = boxes.some((a, i) => boxes.some((b, j) => i < j && a.y === b.y && a.x < b.x + b.w && b.x < a.x + a.w));
  let before = transform();
  wheel(-300);
  log.zoomed = transform() !== before && scale > 0;
  const s = scale, x = dx, y = dy;
  pointer('pointerdown', 100, 100); pointer('pointermove', 150, 130); pointer('pointerup', 150, 130);
  log.panned = [dx - x, dy - y, scale === s];
  input.value = 'SOFTMAX'; input.dispatchEvent(new Event('input'));
  log.found = [...document.querySelectorAll('.node.found .name')].map(e => e.textContent);
  log.count = document.getElementById('count').textContent;
  input.value = 'no such thing'; input.dispatchEvent(new Event('input'));
  log.none = document.querySelectorAll('.node.found').length;
  elements[index.get('_softmax')].dispatchEvent(new MouseEvent('click', {bubbles: true}));
  log.chosen = document.getElementById('what').textContent;
  log.details = JSON.parse(document.getElementById('json').textContent).target;
  log.near = document.querySelectorAll('.node.near').length;
  document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}));
  log.closed = document.getElementById('details').style.display;
  document.getElementById('fit').click();
  log.fits = boxes.every(b => scale * b.x + dx > -2 && scale * (b.x + b.w) + dx < view.clientWidth + 2);
} catch (e) { log.error = String(e); }
const result = document.createElement('pre');
result.id = 'result';
result.textContent = JSON.stringify(log);
document.body.appendChild(result);
</script>
"""


def open_page(browser, html):
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "page.html")
        with open(page, "w") as f:
            f.write(html.replace("</body>", ACTIONS + "</body>"))
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile", "--window-size=1200,800",
                   "--virtual-time-budget=5000", "--dump-dom", "file://" + page]
        dom = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    found = re.search(r'<pre id="result">(.*?)</pre>', dom, re.S)
    if not found:
        raise SystemExit("the page's script did not run to its end")
    return json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def main():
    arguments = [a for a in sys.argv[1:] if a != "--all"]
    program = arguments[0] if arguments else os.path.join(os.environ["CALQUE_BUILD"], "bin", "graph_html")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        raise SystemExit("no browser: install Debian's package chromium")
    case = next(c for c in json.load(open(GOLDEN)) if c["name"] == "attention")
    html = subprocess.run([program], input=case["symbols"] + case["text"], check=True, capture_output=True, text=True).stdout
    nodes = len(case["text"].splitlines())
    log = open_page(browser, html)
    expected = {
        "title": "page <test>", "drawn": nodes, "overlaps": False, "zoomed": True, "panned": [50, 30, True], "found": ["_softmax"], "count": "1 found",
        "none": 0, "chosen": "_softmax", "details": "aten._softmax.default", "near": 3, "closed": "none", "fits": True,
    }
    failed = 0
    for key, value in expected.items():
        if log.get(key) != value:
            print(f"{key}: expected {value!r}, found {log.get(key)!r}")
            failed += 1
    if "error" in log or log.get("edges", 0) < nodes - 4:
        print(f"error: {log.get('error')}, {log.get('edges')} edges")
        failed += 1
    print(f"{len(expected) + 1 - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
