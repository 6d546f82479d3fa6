#!/usr/bin/env python3
"""Makes tests/text/golden/chat_templates.jsonl with transformers: templates of our own with the conversations of
tests/peers/chat_template_cases.py, and the small templates from there. The first line holds the variables of the small ones.

    python tools/golden/chat_template_golden.py tests/text/golden/chat_templates.jsonl
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "peers"))

from tokenizers import Tokenizer, models  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402

import chat_template_cases as cases  # noqa: E402
import chat_templates as peer  # noqa: E402


def row(out, case, text, error):
    out.write(json.dumps({**case, **({"text": text} if error is None else {"error": error})}) + "\n")


def main():
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), **peer.SPECIAL)
    with open(sys.argv[1], "w") as out:
        out.write(json.dumps(cases.VARIABLES) + "\n")
        for name, template in cases.OWN.items():
            for title, conversation in cases.CONVERSATIONS.items():
                case = {"name": f"{name}, {title}", "template": template, **conversation}
                row(out, case, *peer.transformers_text(tokenizer, case))
        for template in ["{{ " + e + " }}" for e in cases.EXPRESSIONS] + cases.TEMPLATES:
            if "strftime_now" not in template:
                case = {"template": template}
                row(out, case, *peer.environment_text({**case, "variables": cases.VARIABLES}))


if __name__ == "__main__":
    main()
