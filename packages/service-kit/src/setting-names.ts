/** Finds variables that were probably meant to be settings. */

/** A variable whose name is near a setting's. */
export interface MisspeltName {
  readonly name: string;
  /** The setting that it was probably meant to be. */
  readonly nearest: string;
}

/** Names that other programs read, or another process of ours, and that are near a setting. */
const OTHERS: ReadonlySet<string> = new Set([
  "FTP_PROXY",
  "ALL_PROXY",
  "PROXY_BYTES_IN_FLIGHT",
  "INJECTION_TIMEOUT_MS",
  "MODEL_CLIENT_CERT_FILE",
]);

/** Names may differ in one character for each five of the setting's. */
const CHARACTERS_PER_SLIP = 5;

/** The names that are no settings but near one. `others`: names that are known to be something else. */
export function misspeltNames(
  names: readonly string[],
  settings: readonly string[],
  others: readonly string[] = [],
): MisspeltName[] {
  const proxies = settings.filter((name) => name.endsWith("_PROXY")).map((name) => name.toLowerCase());
  const known = new Set([...settings, ...others, ...proxies]);
  return names.flatMap((name) => {
    const nearest =
      known.has(name) || OTHERS.has(name.toUpperCase()) ? undefined : nearestName(name, settings);
    return nearest === undefined ? [] : [{ name, nearest }];
  });
}

function nearestName(name: string, settings: readonly string[]): string | undefined {
  const [best] = settings
    .map((setting) => ({ setting, slips: slipsBetween(name.toUpperCase(), setting) }))
    .filter(({ setting, slips }) => slips <= slipsMax(setting))
    .sort((one, other) => one.slips - other.slips);
  return best?.setting ?? settings.find((setting) => lacksOneWord(name.toUpperCase(), setting));
}

const slipsMax = (setting: string) => Math.max(1, Math.floor(setting.length / CHARACTERS_PER_SLIP));

/** Whether a name of several words is a setting's without one of its words: `PROVIDER_KEY` for `PROVIDER_API_KEY`. */
function lacksOneWord(name: string, setting: string): boolean {
  const words = setting.split("_");
  return name.includes("_") && words.some((_, at) => words.toSpliced(at, 1).join("_") === name);
}

/** How far apart two names are; infinite if that is too far. A forgotten or wrong unit of time counts as one slip. */
function slipsBetween(name: string, setting: string): number {
  const max = slipsMax(setting);
  const slips = editDistance(name, setting, max);
  const [bareName, bareSetting] = [withoutUnit(name), withoutUnit(setting)];
  return bareName === name && bareSetting === setting
    ? slips
    : Math.min(slips, 1 + editDistance(bareName, bareSetting, max));
}

function withoutUnit(name: string): string {
  return name.replace(/_(MS|MILLIS|S|SEC|SECS|SECONDS|MIN|MINUTES)$/, "");
}

/** Insertions, deletions, replacements, and swaps of neighbours; infinite if the lengths alone differ by more than `max`. */
function editDistance(from: string, to: string, max: number): number {
  // Each process asks this of each variable and setting when it starts.
  if (Math.abs(from.length - to.length) > max) {
    return Number.POSITIVE_INFINITY;
  }
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwap = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current[column] = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwap && row > 1 && column > 1 ? (beforeLast[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, current];
  }
  return last[to.length] ?? 0;
}
