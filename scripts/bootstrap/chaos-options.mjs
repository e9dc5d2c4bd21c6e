/** The faults of `npm run chaos`, by the names that --faults takes; e2e/chaos/fault-plan.ts says what they do. */
export const FAULT_NAMES = [
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
];

const MS_PER = { minutes: 60_000, seconds: 1000 };
const DEFAULT_SECONDS = "60";
const DURATION_MAX_MS = 24 * 3_600_000;
const SEEDS_MAX = 1000;

export const CHAOS_HELP = `Usage: npm run chaos -- [--minutes N | --seconds N] [--seed S] [--seeds K] [--faults a,b,...]
                             [--logs DIR] [--plan]

Runs gateways, workers, a Redis and a provider of its own under traffic and faults, then checks that no
acknowledgment was lost or doubled and that all books agree. Everything is stopped and removed in the end.

  --minutes N  how long traffic and faults last (default: ${DEFAULT_SECONDS} seconds)
  --seconds N  the same in seconds
  --seed S     a whole number: the same seed is the same plan of faults (default: a new one, printed first)
  --seeds K    K runs one after the other, with seeds S, S+1, ...
  --faults     only these, separated by commas:
${wrapNames()}
  --logs DIR   keep the apps' log lines there, a folder for each seed
  --plan       print the plan of faults and end
  --help       this text

Exit code: 0 if everything held, 1 if not, 130 on Ctrl-C. docs/chaos.md tells more.
`;

/** Pure: what a call of `npm run chaos` asks for; `parse` is the command line's. */
export function readChaosOptions({ values, words }, seedDefault) {
  const faulty = (why) => ({ kind: "faulty", why });
  const [word] = words;
  if (word !== undefined) {
    return faulty(`chaos takes no ${word}`);
  }
  if (values.minutes !== undefined && values.seconds !== undefined) {
    return faulty("either --minutes or --seconds, not both");
  }
  const unit = values.minutes === undefined ? "seconds" : "minutes";
  const durationMs = Number(values[unit] ?? DEFAULT_SECONDS) * MS_PER[unit];
  if (!(durationMs >= 1000 && durationMs <= DURATION_MAX_MS)) {
    return faulty(`--${unit} wants a number, of a second at the least, not ${values[unit]}`);
  }
  const seed = values.seed ?? String(seedDefault);
  if (!/^\d{1,12}$/.test(seed)) {
    return faulty(`--seed wants a whole number, not ${seed}`);
  }
  const runs = Number(values.seeds ?? 1);
  if (!Number.isInteger(runs) || runs < 1 || runs > SEEDS_MAX) {
    return faulty(`--seeds wants a number from 1 to ${SEEDS_MAX}, not ${values.seeds}`);
  }
  const names = values.faults === undefined ? FAULT_NAMES : values.faults.split(",").map((one) => one.trim());
  const unknown = names.find((name) => !FAULT_NAMES.includes(name));
  if (unknown !== undefined) {
    return faulty(`--faults knows no ${unknown || "empty name"}; it knows ${FAULT_NAMES.join(", ")}`);
  }
  const faults = FAULT_NAMES.filter((name) => names.includes(name));
  const isChoice = values.faults !== undefined;
  return {
    kind: "run",
    durationMs,
    seed: Number(seed),
    runs,
    faults,
    isChoice,
    isPlanOnly: values.plan === true,
    logsDir: values.logs,
  };
}

function wrapNames() {
  const lines = [""];
  for (const name of FAULT_NAMES) {
    const line = `${lines.pop()}${name}, `;
    lines.push(...(line.length > 80 ? [line, ""] : [line]));
  }
  return lines
    .map((line) => `               ${line.trimEnd()}`)
    .join("\n")
    .replace(/,\s*$/, "");
}
