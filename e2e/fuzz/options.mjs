/** The options of `npm run fuzz`. JavaScript, because the bootstrap reads them on any Node from 18 on. */

/**
 * @typedef {object} FuzzCommandOptions
 * @property {"run"} kind
 * @property {number} minutes For each document.
 * @property {number} seed
 */

const MINUTES_DEFAULT = "5";
const MINUTES_MAX = 24 * 60;
const SEED_DEFAULT = "1";

const help = `Usage: npm run fuzz -- [--minutes N] [--seed S]

Sends generated requests to a real gateway and ad server, and compares each answer with the OpenAPI documents in
docs/openapi. Needs Python 3.11 or newer with pip; the fuzzer, schemathesis, is installed once from PyPI.

  --minutes N  time for each of the three documents (default: ${MINUTES_DEFAULT})
  --seed S     a whole number: the same seed gives the same requests (default: ${SEED_DEFAULT})
  --help       this text

Exit code: 0 if every answer is as the documents say, 1 if not, 130 after Ctrl-C.
`;

/** How `npm run fuzz` is called. */
export const FUZZ_COMMAND = { help, texts: ["minutes", "seed"], flags: [], read };

/**
 * @param {{ texts: Readonly<Record<string, string | undefined>> }} parsed
 * @returns {FuzzCommandOptions | { kind: "faulty", why: string }}
 */
function read({ texts: { minutes = MINUTES_DEFAULT, seed = SEED_DEFAULT } }) {
  if (!(Number(minutes) > 0 && Number(minutes) <= MINUTES_MAX)) {
    return { kind: "faulty", why: `--minutes must be a number up to ${MINUTES_MAX}, not ${minutes}` };
  }
  if (!/^\d{1,9}$/.test(seed)) {
    return { kind: "faulty", why: `--seed must be a whole number, not ${seed}` };
  }
  return { kind: "run", minutes: Number(minutes), seed: Number(seed) };
}
