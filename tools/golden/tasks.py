"""Writes tests/task/golden/: a small WordPiece tokenizer, small random models that share it, and expected.json with what transformers' pipelines (or, for questions
and sentences, its models) answer on a few texts. python tools/golden/tasks.py, and then tools/golden/answers.py with an older release.
"""
import json
import os
import shutil
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "peers"))

import random  # noqa: E402

import torch  # noqa: E402
import transformers  # noqa: E402

import tasks  # noqa: E402

FOLDER = os.path.join(ROOT, "tests", "task", "golden")
tasks.SHAPE.update(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=11)
TEXTS = ["Anna sold the old bridge.", "Peter, who runs a museum in Berlin, found seventeen people at the station on Monday!", "unbelievable ☃ river", "x"]


def kept(folder, name):
    """The model's own files; the tokenizer's are the same for all."""
    target = os.path.join(FOLDER, name)
    os.makedirs(target, exist_ok=True)
    for file in ("config.json", "model.safetensors"):
        shutil.copy(os.path.join(folder, file), target)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    said = {"texts": TEXTS}
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = tasks.wordpiece(folder)
        os.makedirs(os.path.join(FOLDER, "tokenizer"))
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(os.path.join(folder, file), os.path.join(FOLDER, "tokenizer"))

        labels = dict(num_labels=3, id2label={0: "joy", 1: "anger", 2: "fear"}, label2id={"joy": 0, "anger": 1, "fear": 2})
        for kind in ("single_label_classification", "multi_label_classification"):
            model = tasks.bert(folder, "BertForSequenceClassification", tokenizer, problem_type=kind, **labels)
            kept(folder, kind)
            pipe = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
            said[kind] = pipe(TEXTS, top_k=3)
            said[kind + "_pair"] = pipe([{"text": TEXTS[0], "text_pair": TEXTS[1]}], top_k=3)[0]
        x = tokenizer(TEXTS[:2], padding=True, return_tensors="pt")
        said["inputs"] = {k: v.tolist() for k, v in x.items()}

        names = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
        model = tasks.bert(folder, "BertForTokenClassification", tokenizer, num_labels=5, id2label=dict(enumerate(names)), label2id={n: i for i, n in enumerate(names)})
        kept(folder, "words")
        pipe = transformers.pipeline("token-classification", model=model, tokenizer=tokenizer, aggregation_strategy="simple")
        said["words"] = [[{k: float(v) if k == "score" else v for k, v in w.items()} for w in text] for text in pipe(TEXTS)]

        model = tasks.bert(folder, "BertForMaskedLM", tokenizer)
        kept(folder, "fill")
        pipe = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer)
        said["fill"] = pipe("Anna [MASK] the old bridge.", top_k=3)
        said["fill_two"] = pipe("Anna [MASK] the old [MASK].", top_k=3)

        model = tasks.bert(folder, "BertForQuestionAnswering", tokenizer)
        kept(folder, "answer")
        r = random.Random(1)
        context = " ".join(tasks.sentence(r) for _ in range(10))
        said["context"] = context
        said["answers"] = tasks.spans(model, tokenizer, "Who found the river?", context, 3, 40, 10, True)

        model = tasks.bert(folder, "BertModel", tokenizer)
        kept(folder, "embed")
        with torch.no_grad():
            said["means"] = [model(**tokenizer(t, return_tensors="pt")).last_hidden_state[0].mean(0).tolist() for t in TEXTS]
    with open(os.path.join(FOLDER, "expected.json"), "w") as f:
        json.dump(said, f, indent=1)


if __name__ == "__main__":
    main()
