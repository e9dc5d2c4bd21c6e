/**
 * The members of the outermost object of a JSON text, in order and with repeats, escapes resolved.
 * `JSON.parse` keeps the last of two equal names where another parser may keep the first; a relay that
 * forwards a body unread must not book one id while the provider sees another.
 *
 * @param json text that `JSON.parse` has accepted as an object; anything else gives a meaningless list
 */
export function outermostKeys(json: string): string[] {
  return keyPaths(json, 1);
}

/** Paths of members that stand more than once: `name`, or `outer.inner` for one of an object in the outermost one. */
export function duplicateKeys(json: string, paths: readonly string[]): string[] {
  // A plain name can be spelled in another way by `\u` alone.
  if (!json.includes("\\u") && paths.every((path) => standsOnce(json, path))) {
    return [];
  }
  const levels = paths.some((path) => path.includes(".")) ? 2 : 1;
  const counts = new Map<string, number>();
  for (const path of keyPaths(json, levels)) {
    counts.set(path, (counts.get(path) ?? 0) + 1);
  }
  return paths.filter((path) => (counts.get(path) ?? 0) > 1);
}

/** Whether a plain name stands just once in all of the text, whatever it is there. */
function standsOnce(json: string, name: string): boolean {
  const quoted = `"${name}"`;
  const at = json.indexOf(quoted);
  return PLAIN_NAME.test(name) && at !== -1 && !json.includes(quoted, at + 1);
}

const PLAIN_NAME = /^\w+$/;

/** What stands before the names of an open object's members; undefined for an array. */
type Prefix = string | undefined;

/** The paths of the members of objects down to so many levels, but not of those in arrays. */
function keyPaths(json: string, levels: number): string[] {
  const found: string[] = [];
  const open: Prefix[] = [];
  let path = "";
  let expectsKey = false;
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at];
    if (char === '"') {
      const end = endOfString(json, at);
      if (expectsKey) {
        path = `${open.at(-1) ?? ""}${JSON.parse(json.slice(at, end + 1))}`;
        found.push(path);
        expectsKey = false;
      }
      at = end;
    } else if (char === "{" || char === "[") {
      const isMember = open.length === 0 || open.at(-1) !== undefined;
      const prefix = open.length === 0 ? "" : `${path}.`;
      open.push(char === "{" && isMember && open.length < levels ? prefix : undefined);
      expectsKey = open.at(-1) !== undefined;
    } else if (char === "}" || char === "]") {
      open.pop();
    } else if (char === ",") {
      expectsKey = open.at(-1) !== undefined;
    }
  }
  return found;
}

/** Index of the quote that closes the string opened at `start`. */
function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(json, end)) {
    end = json.indexOf('"', end + 1);
  }
  return end === -1 ? json.length : end;
}

function isEscaped(json: string, quote: number): boolean {
  let backslashes = 0;
  while (json[quote - 1 - backslashes] === "\\") {
    backslashes += 1;
  }
  return backslashes % 2 === 1;
}
