#!/usr/bin/env python3
"""Writes tests/task/golden/answers.json: what transformers' own question-answering pipeline answers, with the model and tokenizer of tests/task/golden.

transformers 5 has no such pipeline any more, so this script needs the last releases that have it (4.57 wrote the file; 4.40 did not join answers of one text yet). The
test of C++ and tests/peers/tasks.py read what it wrote, and the driver holds its own oracle against it. Tokenizers that pad on the left are left out: there the
pipeline masks nothing, so that parts of the question and even nothing at all are answers.
"""
import json
import os
import random
import shutil
import sys
import tempfile

import transformers
from transformers import AutoModelForQuestionAnswering, AutoTokenizer, QuestionAnsweringPipeline

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "tests", "task", "golden")
WORDS = ("the a of in on by young old Anna Peter Berlin Paris bank Nile Monday winter summer sold wrote found lost built bridge museum market century people quickly "
         "unbelievable understanding singing 1984 42 river city").split()


def text(r, low, high):
    words = [r.choice(WORDS) for _ in range(r.randrange(low, high))]
    if len(words) > 5:
        words[2] += ","
    return " ".join(words).capitalize() + r.choice(".?!")


def main():
    r = random.Random(19)
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for part in ("answer", "tokenizer"):
            for name in os.listdir(os.path.join(FOLDER, part)):
                shutil.copy(os.path.join(FOLDER, part, name), folder)
        file = os.path.join(folder, "tokenizer_config.json")
        with open(file) as f:
            config = json.load(f)
        # Release 5 has another name for this class, and other inputs where the file names none.
        config.update(tokenizer_class="PreTrainedTokenizerFast", model_input_names=["input_ids", "attention_mask"])
        with open(file, "w") as f:
            json.dump(config, f)
        model = AutoModelForQuestionAnswering.from_pretrained(folder).eval()
        for i in range(40):
            tokenizer = AutoTokenizer.from_pretrained(folder)
            options = {"top_k": r.choice([1, 3, 5]), "max_seq_len": r.choice([40, 50, 60]), "doc_stride": r.choice([4, 8]), "max_answer_len": r.choice([1, 4, 15]),
                       "handle_impossible_answer": i % 2 == 1, "align_to_words": i % 5 != 4}
            question, context = text(r, 2, 7), " ".join(text(r, 4, 12) for _ in range(r.choice([1, 3, 9])))
            found = QuestionAnsweringPipeline(model=model, tokenizer=tokenizer)(question=question, context=context, **options)
            found = found if isinstance(found, list) else [found]
            cases.append({"question": question, "context": context, "options": options, "answers": found})
    with open(os.path.join(FOLDER, "answers.json"), "w") as f:
        json.dump({"made_by": f"tools/golden/answers.py, transformers {transformers.__version__}", "cases": cases}, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    sys.exit(main())
