/** The options of `npm run chaos`. JavaScript, because the bootstrap reads them on any Node from 18 on. */

/** The names of the faults, as --faults accepts them. e2e/chaos/fault-plan.ts says what they do. */
export const FAULT_NAMES = /** @type {const} */ ([
  "kill",
  "freeze",
  "long-freeze",
  "rolling-restart",
  "clock-skew",
  "redis-kill",
  "redis-restart",
  "redis-freeze",
  "redis-readonly",
  "redis-oom",
  "redis-maxclients",
  "link-cut",
  "link-delay",
  "link-swallow",
  "provider-hang",
  "provider-reset",
  "provider-drip",
  "provider-garbage",
  "provider-slow-headers",
  "provider-half-body",
  "provider-keep-alive-reset",
  "provider-500",
  "provider-503",
  "provider-429",
  "provider-401",
  "provider-recoverable",
  "provider-lost-answer",
  "edge-404",
  "edge-login",
  "gzip",
  "continue",
  "one-429",
  "many-403",
  "waf-403",
  "stale-key",
  "reload",
  "erase",
]);

/** @typedef {(typeof FAULT_NAMES)[number]} FaultName */

/**
 * @typedef {object} ChaosOptions
 * @property {"run"} kind
 * @property {number} durationMs
 * @property {number | undefined} seed The caller chooses one if it is undefined.
 * @property {number} runs How many runs, each with the next seed.
 * @property {readonly FaultName[]} faults
 * @property {boolean} isChoice Whether --faults chose the faults.
 * @property {string | undefined} logsDir
 * @property {boolean} isPlanOnly
 * @property {readonly ChaosPart[]} parts
 * @property {number} streams
 */

/** The parts of a run, in their order: the relay, and streams through the model proxy. */
const CHAOS_PARTS = /** @type {const} */ (["relay", "turns"]);
/** @typedef {(typeof CHAOS_PARTS)[number]} ChaosPart */

const MS_PER = { minutes: 60_000, seconds: 1000 };
const SECONDS_DEFAULT = "60";
const DURATION_MAX_MS = 24 * 3_600_000;
const SEEDS_MAX = 1000;
const STREAMS_DEFAULT = 50;
const STREAMS_MAX = 1000;
const NAMES_LINE_MAX = 80;

const help = `Usage: npm run chaos -- [--minutes N | --seconds N] [--seed S] [--seeds K] [--faults a,b,...]
                             [--only relay|turns] [--streams N] [--logs DIR] [--plan]

Runs gateways, workers, a Redis and a provider under traffic and faults. Then checks that no acknowledgment was lost or
doubled and that all counters agree. After that it does the same with streams through the model proxy, whose length
doesn't depend on --seconds. In the end it stops and removes everything.

  --minutes N  length of traffic and faults (default: one minute)
  --seconds N  the same in seconds (default: ${SECONDS_DEFAULT})
  --seed S     a whole number: the same seed gives the same plan of faults (default: a new one, printed first)
  --seeds K    K runs one after the other, with the seeds S, S+1, ...
  --only PART  relay: without streams through the proxy. turns: only these
  --streams N  how many streams each seed has (default: ${STREAMS_DEFAULT})
  --faults     only these faults, separated by commas, and no streams through the proxy:
${wrapNames()}
  --logs DIR   keep the apps' log lines in DIR, in a folder for each seed
  --plan       print the plan of faults without running it
  --help       this text

Exit code: 0 if all checks held, 1 if not, 130 after Ctrl-C. docs/chaos.md explains more.
`;

/** How `npm run chaos` is called. */
export const CHAOS_COMMAND = {
  help,
  texts: ["minutes", "seconds", "seed", "seeds", "faults", "logs", "only", "streams"],
  flags: ["plan"],
  read,
};

/**
 * @param {{ texts: Readonly<Record<string, string | undefined>>, flags: ReadonlySet<string> }} parsed
 * @returns {ChaosOptions | { kind: "faulty", why: string }}
 */
function read({ texts, flags }) {
  const { minutes, seconds, seed, seeds, faults: faultsText, logs } = texts;
  if (minutes !== undefined && seconds !== undefined) {
    return faulty("give either --minutes or --seconds, not both");
  }
  const unit = minutes === undefined ? "seconds" : "minutes";
  const durationMs = Number(minutes ?? seconds ?? SECONDS_DEFAULT) * MS_PER[unit];
  if (!(durationMs >= 1000 && durationMs <= DURATION_MAX_MS)) {
    return faulty(`--${unit} must be a number, at least one second and at most a day, not ${texts[unit]}`);
  }
  if (seed !== undefined && !/^\d{1,12}$/.test(seed)) {
    return faulty(`--seed must be a whole number, not ${seed}`);
  }
  const runs = Number(seeds ?? 1);
  if (!Number.isInteger(runs) || runs < 1 || runs > SEEDS_MAX) {
    return faulty(`--seeds must be a whole number from 1 to ${SEEDS_MAX}, not ${seeds}`);
  }
  /** @type {readonly string[]} */
  const names = faultsText === undefined ? FAULT_NAMES : faultsText.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !FAULT_NAMES.some((known) => known === name));
  if (unknown !== undefined) {
    return faulty(
      `--faults: ${unknown === "" ? "a name is empty" : `there is no fault ${unknown}`}; the faults are ${FAULT_NAMES.join(", ")}`,
    );
  }
  const parts = CHAOS_PARTS.filter(
    (part) => part === (texts["only"] ?? (faultsText === undefined ? part : "relay")),
  );
  if (parts.length === 0) {
    return faulty(`--only must be one of ${CHAOS_PARTS.join(", ")}, not ${texts["only"]}`);
  }
  const streams = Number(texts["streams"] ?? STREAMS_DEFAULT);
  if (!Number.isInteger(streams) || streams < 1 || streams > STREAMS_MAX) {
    return faulty(`--streams must be a whole number from 1 to ${STREAMS_MAX}, not ${texts["streams"]}`);
  }
  return {
    kind: "run",
    parts,
    streams,
    durationMs,
    seed: seed === undefined ? undefined : Number(seed),
    runs,
    faults: FAULT_NAMES.filter((name) => names.includes(name)),
    isChoice: faultsText !== undefined,
    isPlanOnly: flags.has("plan"),
    logsDir: logs,
  };
}

/** @param {string} why @returns {{ kind: "faulty", why: string }} */
function faulty(why) {
  return { kind: "faulty", why };
}

function wrapNames() {
  const lines = [""];
  for (const name of FAULT_NAMES) {
    const line = `${lines.pop()}${name}, `;
    lines.push(...(line.length > NAMES_LINE_MAX ? [line, ""] : [line]));
  }
  return lines
    .map((line) => `               ${line.trimEnd()}`)
    .join("\n")
    .replace(/,\s*$/, "");
}
