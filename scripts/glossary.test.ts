/** The public names of contract, core, store and client are made of the words of docs/glossary.md, and of general ones. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** Words that say what kind of thing a name is, or that every reader of HTTP and Redis knows. */
const GENERAL = `
  admin age ages answer api asn at base by bytes call cancel catalogue channel chars check checks class classify code codes content count counted country counts
  create date dead decide decision default delay delivering depth detail details doctor drop dry due duplicate each empty end ended enhancement error escape event events
  expand factor fault faults field fields filled filter format found from gender genders header health hex http id ids
  in index interval is job json judge key keys kind known label labelled last late latest letter level limit list listed load log
  lower case make max member memory metrics min ms name names new no normalizable not note of on open options order other outcomes over page parse
  part path per phase phases place plan policy process processes public query question quoted rate read reading
  readiness reason reasons redis ref relay render reply reports request response result results role row run rows schema seconds send share
  since size slow state states stats status store stream table text texts time times to total trace traceparent tracestate transition type
  types unescaped unfilled unknown until url user uuid value values verdicts version view wait with within wrapping yaml
`
  .trim()
  .split(/\s+/);

/** The words of the glossary's first column, and their plurals. */
function glossaryWords(): Set<string> {
  const rows = readFileSync(`${ROOT}docs/glossary.md`, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| "));
  const words = rows.flatMap((row) => (row.split("|")[1] ?? "").toLowerCase().match(/[a-z]+/g) ?? []);
  return new Set(words);
}

/** The names that a package's index exports. */
function exportsOf(name: string): string[] {
  const index = readFileSync(`${ROOT}packages/${name}/src/index.ts`, "utf8");
  return [...index.matchAll(/export (?:type )?\{([^}]*)\}/g)]
    .flatMap(([, list = ""]) => list.split(","))
    .map((item) => item.trim().replace(/^type /, ""))
    .filter((item) => item !== "");
}

/** `ACK_WAIT_MS` and `openStore` as single words, in lower case. */
function wordsOf(name: string): string[] {
  return name
    .replaceAll("_", " ")
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(" ");
}

/** A word in the forms in which names use it. */
function stemsOf(word: string): string[] {
  return [
    word,
    word.replace(/s$/, ""),
    word.replace(/ies$/, "y"),
    word.replace(/(ed|ing|r)$/, ""),
    word.replace(/d$/, ""),
  ];
}

const known = new Set([...glossaryWords(), ...GENERAL]);

test.each(["contract", "core", "store", "client"])(
  "every public name of %s is made of the glossary's words",
  (name) => {
    const names = exportsOf(name);
    expect(names.length).toBeGreaterThan(10);
    const strange = names.flatMap((one) =>
      wordsOf(one)
        .filter((word) => !stemsOf(word).some((stem) => known.has(stem)))
        .map((word) => `${one}: ${word}`),
    );
    expect(strange).toEqual([]);
  },
);

test.each(["Taker", "gateState", "PulseOptions", "standingOf", "Insistence"])(
  "a name with a private word, such as %s, is found",
  (name) => {
    expect(wordsOf(name).filter((word) => !stemsOf(word).some((stem) => known.has(stem)))).not.toEqual([]);
  },
);
