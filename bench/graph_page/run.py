"""How soon the page of a graph is painted and how fluently it moves, in headless Chromium without a graphics processor.

The graphs: BERT-shaped encoders exported by PyTorch and decomposed to core ATen, of about 500 and 2,000 calls, with their modules; and a chain
of 2,000 calls without modules, in which each value has further users. Painted: from the start of the navigation until the first contentful paint,
when the graph stands in its canvas, the median of several loads. Moved: all modules open; frames a second over two seconds in which every frame
moves the picture, with all of it in sight and at a size to read; and the longest time between two frames.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "peers", "graph_html"))
from devtools import Browser  # noqa: E402

CALQUE = os.environ["CALQUE_BIN"]

PAINTED = """new Promise(finish => {
  const look = () => {
    const [paint] = performance.getEntriesByName('first-contentful-paint');
    paint ? finish(paint.startTime) : setTimeout(look, 20);
  };
  look();
})"""
MOVE = """new Promise(finish => {
  const start = performance.now(), first = views[0].frames;
  let last = start, longest = 0;
  const step = now => {
    longest = Math.max(longest, now - last);
    last = now;
    if (now - start >= 2000) return finish([(views[0].frames - first) / (now - start) * 1000, longest]);
    views[0].moveTo(views[0].x + (now - start < 1000 ? 3 : -3), views[0].y - 2, views[0].scale);
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def encoder(layers, path):
    import torch
    from transformers import BertConfig, BertModel
    config = BertConfig(num_hidden_layers=layers, hidden_size=64, intermediate_size=128, num_attention_heads=4, vocab_size=100)
    with torch.no_grad():
        program = torch.export.export(BertModel(config).eval(), (torch.ones(2, 9, dtype=torch.int64),), strict=False)
        torch.export.save(program.run_decompositions(), path)


def chain(calls, path):
    """A program of `calls` calls; every fifth value is used 40 calls later as well."""
    import torch

    class Chain(torch.nn.Module):
        def forward(self, x):
            values = [x]
            for k in range(calls):
                values.append(values[-1] + values[k - 40] if k % 5 == 0 and k > 40 else torch.relu(values[-1]))
            return values[-1]

    torch.export.save(torch.export.export(Chain(), (torch.ones(3),), strict=False), path)


def measured(browser, page, rounds):
    paints = []
    for _ in range(rounds):
        browser.open(page)
        paints.append(browser.do(PAINTED))
    nodes = browser.do("views[0].boxes.filter(b => b.node !== undefined).length")
    opened = browser.do("(() => { const start = performance.now(); setAll(true); views[0].draw(); return performance.now() - start; })()")
    shown = browser.do("views[0].shown.length")
    browser.do("views[0].fit()")
    whole = browser.do(MOVE)
    browser.do("views[0].moveTo(-views[0].size[0][0] * 0.35, -views[0].size[0][1] * 0.4, 0.8)")
    near = browser.do(MOVE)
    return {"calls": nodes, "boxes_open": shown, "painted_ms": round(statistics.median(paints)), "opened_ms": round(opened), "whole_fps": round(whole[0], 1),
            "whole_longest_ms": round(whole[1]), "near_fps": round(near[0], 1), "near_longest_ms": round(near[1])}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="loads of each page")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder, Browser(1500, 1000) as browser:
        program, page = os.path.join(folder, "p.pt2"), os.path.join(folder, "p.html")
        for name, make in (("encoder, 12 layers", lambda p: encoder(12, p)), ("encoder, 48 layers", lambda p: encoder(48, p)), ("chain", lambda p: chain(2000, p))):
            make(program)
            subprocess.run([CALQUE, "trace", program, "-o", page], check=True)
            results.append({"what": name, "page_bytes": os.path.getsize(page), **measured(browser, page, options.rounds)})
            r = results[-1]
            print(f"{name}: {r['calls']} calls, page of {r['page_bytes'] / 1e6:.1f} MB; painted after {r['painted_ms']} ms, all {r['boxes_open']} boxes opened in "
                  f"{r['opened_ms']} ms; moved at {r['whole_fps']} frames/s whole (longest {r['whole_longest_ms']} ms), {r['near_fps']} near (longest {r['near_longest_ms']} ms)", flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"results": results}, f, indent=1)
            f.write("\n")
    worst = max(results, key=lambda r: r["painted_ms"])
    slowest = min(min(r["whole_fps"], r["near_fps"]) for r in results)
    print(f"latest paint {worst['painted_ms']} ms (at most 1500), slowest movement {slowest} frames/s (at least 30)")
    return worst["painted_ms"] > 1500 or slowest < 30


if __name__ == "__main__":
    sys.exit(main())
