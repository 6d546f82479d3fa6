#!/usr/bin/env python3
"""classify, embed, segment, match and transcribe on pictures and sounds against transformers, live: small random models with their processors. Labels, scores and
vectors must be those of the pipelines, or of model and processor, to 1e-5; the pixels of segments and the ids of transcripts must be the same.
A class that `calque models` does not list is left out, and said. --only NAME one part.
"""
import json
import os
import sys

import numpy as np
import PIL.Image
import soundfile
import torch
import transformers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import media_cases as cases  # noqa: E402
import tasks  # noqa: E402
from parts import calque, check, lines_of, main  # noqa: E402

VISION = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8)
LABELS = {i: f"kind {i}" for i in range(7)}
KNOWN = set()


def known(name):
    if not KNOWN:
        def walk(x):
            if isinstance(x, dict):
                for v in x.values():
                    walk(v)
            elif isinstance(x, list):
                for v in x:
                    walk(v)
            elif isinstance(x, str):
                KNOWN.add(x)
        walk(json.loads(calque("models", "--json")))
    if name not in KNOWN:
        print(f"{name:60} not there", flush=True)
    return name in KNOWN


def saved(folder, name, config, processor):
    torch.manual_seed(len(name))
    model = getattr(transformers, name)(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.05)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return model


def photos(folder):
    return [os.path.join(folder, cases.saved(folder, f"photo{i}.png", cases.scene(i, h, w))) for i, (h, w) in enumerate([(50, 70), (64, 40)])]


def lines_for(files, *arguments):
    """One document for each file."""
    out = lines_of(*arguments)
    if len(out) != len(files):
        raise RuntimeError(f"{len(out)} answers on {len(files)} files")
    return out


def options(option, files):
    return [x for f in files for x in (option, f)]


def labels_differ(found, wanted, key="labels"):
    """Lists of {label, score}; equal scores may come in another order."""
    a, b = {x.get("label", x.get("text")): x["score"] for x in found}, {x["label"]: x["score"] for x in wanted}
    return a.keys() != b.keys() or any(abs(a[k] - b[k]) > 1e-5 for k in a)


def classify(folder, args):
    t = transformers
    for name, config, kind in (("ViTForImageClassification", t.ViTConfig(**VISION, id2label=LABELS), "ViT"),
                               ("ResNetForImageClassification", t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", id2label=LABELS), "ConvNext"),
                               ("ConvNextForImageClassification", t.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, id2label=LABELS), "ConvNext"),
                               ("Dinov2ForImageClassification", t.Dinov2Config(**{k: v for k, v in VISION.items() if k != "intermediate_size"}, id2label=LABELS), "Bit"),
                               ("SwinForImageClassification", t.SwinConfig(image_size=32, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4, id2label=LABELS), "ViT")):
        if not known(name):
            continue
        at = os.path.join(folder, name)
        size = {"shortest_edge": 32} if kind in ("ConvNext", "Bit") else {"height": 32, "width": 32}
        saved(at, name, config, cases.processor({"image_processor_type": kind + "ImageProcessor", "size": size, "crop_size": {"height": 32, "width": 32}}))
        files = photos(folder)
        pipeline = transformers.pipeline("image-classification", model=at, top_k=7)
        wrong = [f"{f}: {found['labels'][:3]} instead of {wanted[:3]}" for f, found, wanted in zip(files, lines_for(files, "classify", at, *options("--image", files), "--top", 7), pipeline(files))
                 if labels_differ(found["labels"], wanted)]
        check(f"classify --image: {name}", wrong)


def embed(folder, args):
    t = transformers
    for name, config, field in (("ViTModel", t.ViTConfig(**VISION), "pooler_output"), ("Dinov2Model", t.Dinov2Config(**{k: v for k, v in VISION.items() if k != "intermediate_size"}), "pooler_output"),
                                ("CLIPVisionModelWithProjection", t.CLIPVisionConfig(**VISION, projection_dim=24), "image_embeds")):
        if not known(name):
            continue
        at = os.path.join(folder, name)
        processor = cases.processor({"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}})
        model = saved(at, name, config, processor)
        wrong = []
        files = photos(folder)
        for f, found in zip(files, lines_for(files, "embed", at, *options("--image", files))):
            with torch.no_grad():
                wanted = model(**processor(cases.as_loaded(f), return_tensors="pt"))[field][0].numpy()
            far = np.abs(np.array(found["embedding"]) - wanted).max()
            if far > 1e-5:
                wrong.append(f"{f}: {far}")
        check(f"embed --image: {name}", wrong)


def segment(folder, args):
    name = "SegformerForSemanticSegmentation"
    if not known(name):
        return
    config = transformers.SegformerConfig(num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2],
                                          mlp_ratios=[2, 2], decoder_hidden_size=16, id2label=LABELS)
    processor = cases.processor({"image_processor_type": "SegformerImageProcessor", "size": {"height": 64, "width": 64}})
    model = saved(folder, name, config, processor)
    wrong = []
    for f in photos(folder):
        mask = f + ".mask.png"
        found, = lines_of("segment", folder, "--image", f, "-o", mask)
        image = cases.as_loaded(f)
        with torch.no_grad():
            out = model(**processor(image, return_tensors="pt"))
        wanted = processor.post_process_semantic_segmentation(out, target_sizes=[image.size[::-1]])[0].numpy()
        colours = np.array(PIL.Image.open(mask)).astype(int)
        ids = np.zeros(wanted.shape, int)
        for bit in range(3):  # the lowest bits of an id are the highest of the colours
            ids |= ((colours[..., bit] >> 7) & 1) << bit
        ids |= ((colours[..., 0] >> 6) & 1) << 3
        if not np.array_equal(ids, wanted):
            wrong.append(f"{f}: {np.mean(ids != wanted):.2%} of the pixels have another label")
        shares = {s["label"]: s["share"] for s in found["segments"]}
        if shares != {LABELS[i]: float(np.mean(wanted == i)) for i in np.unique(wanted)}:
            wrong.append(f"{f}: {shares}")
    check(f"segment: {name}", wrong)


def match(folder, args):
    t = transformers
    text = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=64)
    for name in ("CLIPModel", "SiglipModel"):
        if not known(name):
            continue
        at = os.path.join(folder, name)
        os.makedirs(at)
        tokenizer = tasks.wordpiece(at)
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token or "[PAD]"
        tokenizer.save_pretrained(at)
        ends = dict(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.cls_token_id, eos_token_id=tokenizer.sep_token_id)
        if name == "CLIPModel":
            config = t.CLIPConfig(text_config={**text, **ends}, vision_config=VISION, projection_dim=24)
        else:
            config = t.SiglipConfig(text_config={**text, **ends, "projection_size": 32}, vision_config=VISION)
        processor = cases.processor({"image_processor_type": name[:-5] + "ImageProcessor", "size": {"height": 32, "width": 32}, "crop_size": {"height": 32, "width": 32}})
        saved(at, name, config, processor)
        texts = ["the old bridge", "a museum in Berlin", "seventeen people on the river"]
        pipeline = transformers.pipeline("zero-shot-image-classification", model=at, tokenizer=tokenizer, image_processor=processor)
        wrong = []
        files = photos(folder)
        for f, found in zip(files, lines_for(files, "match", at, *options("--image", files), *options("-p", texts), "--template", "This is {}.")):
            wanted = pipeline(f, candidate_labels=texts, hypothesis_template="This is {}.")
            if labels_differ(found["texts"], wanted):
                wrong.append(f"{f}: {found['texts']} instead of {wanted}")
        check(f"match: {name}", wrong)


def speech(name, **more):
    config = getattr(transformers, name.split("For")[0] + "Config")
    return config(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=(16, 16, 16), conv_stride=(5, 4, 2), conv_kernel=(10, 8, 4), vocab_size=11,
                  num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, classifier_proj_size=16, **more)


def recordings(folder):
    out = []
    for i, (seconds, rate) in enumerate([(0.7, 16000), (0.35, 16000)]):
        out.append(os.path.join(folder, f"speech{i}.wav"))
        soundfile.write(out[-1], cases.tones(i, seconds, rate)[:, 0], rate, subtype="FLOAT")
    return out


def heard(folder, args):
    for name in ("Wav2Vec2ForSequenceClassification", "HubertForSequenceClassification"):
        if not known(name):
            continue
        at = os.path.join(folder, name)
        extractor = transformers.Wav2Vec2FeatureExtractor()
        saved(at, name, speech(name, id2label=LABELS), extractor)
        files = recordings(folder)
        pipeline = transformers.pipeline("audio-classification", model=at, feature_extractor=extractor, top_k=7)
        wrong = []
        for f, found in zip(files, lines_for(files, "classify", at, *options("--audio", files), "--top", 7)):
            wanted = pipeline(soundfile.read(f, dtype="float32")[0])
            if labels_differ(found["labels"], wanted):
                wrong.append(f"{f}: {found['labels'][:3]} instead of {wanted[:3]}")
        check(f"classify --audio: {name}", wrong)


def transcribe(folder, args):
    tokens = ["<pad>", "<s>", "</s>", "<unk>", "|", "E", "T", "A", "O", "N", "I"]
    for name in ("Wav2Vec2ForCTC", "HubertForCTC"):
        if not known(name):
            continue
        at = os.path.join(folder, name)
        os.makedirs(at)
        with open(os.path.join(at, "vocab.json"), "w") as f:
            json.dump({t: i for i, t in enumerate(tokens)}, f)
        tokenizer = transformers.Wav2Vec2CTCTokenizer(os.path.join(at, "vocab.json"))
        tokenizer.save_pretrained(at)
        for norm in ("group", "layer"):
            extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=norm == "layer")
            model = saved(at, name, speech(name, feat_extract_norm=norm, do_stable_layer_norm=norm == "layer"), extractor)
            pipeline = transformers.pipeline("automatic-speech-recognition", model=model, tokenizer=tokenizer, feature_extractor=extractor)
            files = recordings(folder)
            wrong = []
            for times in ("char", "word"):
                for f, found in zip(files, lines_for(files, "transcribe", at, *options("--audio", files), "--times", times)):
                    sound = soundfile.read(f, dtype="float32")[0]
                    wanted = pipeline(sound, return_timestamps=times)
                    with torch.no_grad():
                        ids = model(**extractor(sound, sampling_rate=16000, return_tensors="pt", return_attention_mask=True)).logits.argmax(-1)[0].tolist()
                    chunks = [{"text": c["text"], "timestamp": list(c["timestamp"])} for c in wanted["chunks"]]
                    if found["ids"] != ids or found["text"] != wanted["text"] or found["chunks"] != chunks:
                        wrong.append(f"{f}, {times}: {found['text']!r} instead of {wanted['text']!r}; {found['chunks'][:2]} instead of {chunks[:2]}")
            check(f"transcribe: {name}, {norm} norm", wrong)


def written(folder, args):
    """speech_to_text: ids of generate; the tokenizer is a plain one, whose text is decoded from them."""
    name = "Speech2TextForConditionalGeneration"
    if not known(name):
        return
    tokenizer = tasks.byte_level(folder)
    config = transformers.Speech2TextConfig(vocab_size=len(tokenizer), d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
                                            decoder_ffn_dim=48, conv_channels=24, input_feat_per_channel=80, max_source_positions=400, max_target_positions=40, pad_token_id=1,
                                            bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
    extractor = transformers.Speech2TextFeatureExtractor()
    model = saved(folder, name, config, extractor)
    model.generation_config.max_length = 20
    model.generation_config.save_pretrained(folder)
    files = recordings(folder)
    wrong = []
    for f, found in zip(files, lines_for(files, "transcribe", folder, *options("--audio", files))):
        with torch.no_grad():
            ids = model.generate(**extractor(soundfile.read(f, dtype="float32")[0], sampling_rate=16000, return_tensors="pt"))[0].tolist()
        if found["ids"] != ids or found["text"] != tokenizer.decode(ids, skip_special_tokens=True):
            wrong.append(f"{f}: {found['ids']} instead of {ids}")
    check(f"transcribe: {name}", wrong)


SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|ja|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]


def whisper_model(folder, states=100):
    """A second is heard at once; the timestamps stand in the tokenizer behind its special tokens, as in Whisper's own."""
    tokenizer = tasks.byte_level(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL[1:], "eos_token": SPECIAL[0], "bos_token": SPECIAL[0], "unk_token": SPECIAL[0]})
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL}
    tokenizer.add_tokens([transformers.AddedToken(f"<|{i * 0.02:.2f}|>", special=False) for i in range(states + 1)])
    assert tokenizer.convert_tokens_to_ids("<|0.00|>") == ids["<|notimestamps|>"] + 1
    config = transformers.WhisperConfig(vocab_size=len(tokenizer), num_mel_bins=80, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
                                        decoder_ffn_dim=48, max_source_positions=states, max_target_positions=64, pad_token_id=ids[SPECIAL[0]], bos_token_id=ids[SPECIAL[0]], eos_token_id=ids[SPECIAL[0]],
                                        decoder_start_token_id=ids[SPECIAL[1]], suppress_tokens=None, begin_suppress_tokens=None)
    extractor = transformers.WhisperFeatureExtractor(chunk_length=states // 50)
    model = saved(folder, "WhisperForConditionalGeneration", config, extractor)
    model.generation_config = transformers.GenerationConfig(
        eos_token_id=ids[SPECIAL[0]], pad_token_id=ids[SPECIAL[0]], decoder_start_token_id=ids[SPECIAL[1]], lang_to_id={t: ids[t] for t in SPECIAL[2:5]}, is_multilingual=True,
        task_to_id={"translate": ids["<|translate|>"], "transcribe": ids["<|transcribe|>"]}, no_timestamps_token_id=ids["<|notimestamps|>"], prev_sot_token_id=ids["<|startofprev|>"],
        suppress_tokens=list(ids.values())[1:-1], alignment_heads=[[0, 1], [1, 2]], max_length=40)
    model.generation_config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    settings = json.load(open(os.path.join(folder, "tokenizer_config.json")))
    json.dump({**settings, "tokenizer_class": "WhisperTokenizer"}, open(os.path.join(folder, "tokenizer_config.json"), "w"))
    return model, extractor


def whispered(folder, args):
    """Whisper: text, language and chunks of the pipeline, greedy, short and in several parts."""
    if not known("WhisperForConditionalGeneration"):
        return
    model, extractor = whisper_model(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    check(f"Whisper's tokenizer: {type(tokenizer).__name__}", [] if hasattr(tokenizer, "_decode_asr") else ["not Whisper's"])
    pipeline = transformers.pipeline("automatic-speech-recognition", model=model, tokenizer=tokenizer, feature_extractor=extractor)
    files = []
    for i, (seconds, rate) in enumerate([(0.9, 16000), (2.0, 16000), (5.3, 16000)]):
        files.append(os.path.join(folder, f"speech{i}.wav"))
        soundfile.write(files[-1], cases.tones(i, seconds, rate)[:, 0], rate, subtype="FLOAT")
    for how, flags, wanted in (("text", [], {}), ("segments", ["--timestamps"], {"return_timestamps": True}), ("words", ["--times", "word"], {"return_timestamps": "word"}),
                               ("German", ["--language", "german", "--timestamps"], {"return_timestamps": True, "generate_kwargs": {"language": "de"}}),
                               ("translation", ["--task", "translate"], {"generate_kwargs": {"task": "translate"}})):
        wrong = []
        for f, found in zip(files, lines_for(files, "transcribe", folder, *options("--audio", files), *flags)):
            given = {**wanted, "generate_kwargs": {"num_beams": 1, "max_new_tokens": None, "max_length": 40, **wanted.get("generate_kwargs", {})}}
            if how != "text" and how != "translation" or "0" in os.path.basename(f) or "1" in os.path.basename(f):
                answer = pipeline(soundfile.read(f, dtype="float32")[0], **given)
            else:  # a long one has timestamps whether they are asked for or not
                answer = pipeline(soundfile.read(f, dtype="float32")[0], **{**given, "return_timestamps": True})
            chunks = [{"text": c["text"], "timestamp": list(c["timestamp"])} for c in answer.get("chunks", [])]
            if found["text"] != answer["text"] or ("chunks" in found and found["chunks"] != chunks):
                wrong.append(f"{f}: {found['text']!r} instead of {answer['text']!r}; {found.get('chunks', [])[:3]} instead of {chunks[:3]}")
        check(f"transcribe: Whisper, {how}", wrong)


PARTS = (classify, embed, segment, match, heard, transcribe, written, whispered)


if __name__ == "__main__":
    sys.exit(main(PARTS, __doc__, "the same: there is one part"))
