#!/usr/bin/env python3
"""Writes the seeds of the fuzzer of sounds that libsndfile makes: FLAC of every width, with and without channels that depend on each other,
of short and of constant blocks, FLAC inside Ogg, and the other containers that it reads by default."""
import os

import numpy as np
import soundfile

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "fuzz", "corpus", "sound")


def main():
    rng = np.random.default_rng(0)
    time = np.arange(700) / 8000
    tone = 0.4 * np.sin(2 * np.pi * 440 * time) + 0.02 * rng.standard_normal(700)
    both = np.stack([tone, 0.9 * tone + 0.01 * rng.standard_normal(700)], 1)
    for name, data, rate, subtype, kind in (
            ("flac8.flac", tone, 8000, "PCM_S8", "FLAC"), ("flac24.flac", tone, 8000, "PCM_24", "FLAC"), ("flac_both.flac", both, 16000, "PCM_16", "FLAC"),
            ("flac_noise.flac", rng.uniform(-1, 1, 300), 44100, "PCM_16", "FLAC"), ("flac_silence.flac", np.zeros(9000), 8000, "PCM_16", "FLAC"),
            ("flac_six.flac", np.stack([tone[:200]] * 6, 1), 11025, "PCM_16", "FLAC"), ("ogg.opus", tone, 8000, "OPUS", "OGG"),
            ("aiff.aiff", tone[:200], 8000, "PCM_16", "AIFF"), ("au.au", tone[:200], 8000, "ULAW", "AU"), ("caf.caf", tone[:200], 8000, "ALAC_16", "CAF"),
            ("w64.w64", tone[:200], 8000, "IMA_ADPCM", "W64"), ("mp3.mp3", tone, 16000, "MPEG_LAYER_III", "MP3")):
        soundfile.write(os.path.join(FOLDER, name), data, rate, subtype=subtype, format=kind)


if __name__ == "__main__":
    main()
