/**
 * Finds members that occur more than once in a JSON object. Of two members with the same name, `JSON.parse` keeps the
 * last, but another parser may keep the first. The relay forwards a body unchanged, so without this check it could
 * accept one id while the provider reads another.
 *
 * All functions here expect text that `JSON.parse` has accepted as an object. For other text the result means nothing.
 */

/** The names of the outermost object's members, in order and with repeats. Escapes are resolved. */
export function outermostKeys(json: string): string[] {
  return keyPaths(json, 1);
}

/**
 * Returns the `paths` that occur more than once. A path is `name` for a member of the outermost object, or `outer.inner`
 * for a member of an object inside it.
 */
export function duplicateKeys(json: string, paths: readonly string[]): string[] {
  // Only a `\u` escape can spell a plain name in another way.
  if (!json.includes("\\u") && paths.every((path) => occursOnce(json, path))) {
    return [];
  }
  const levels = paths.some((path) => path.includes(".")) ? 2 : 1;
  const counts = new Map<string, number>();
  for (const path of keyPaths(json, levels)) {
    counts.set(path, (counts.get(path) ?? 0) + 1);
  }
  return paths.filter((path) => (counts.get(path) ?? 0) > 1);
}

/** Whether a plain name occurs exactly once in the whole text, as a member's name or as a value. */
function occursOnce(json: string, name: string): boolean {
  const quoted = `"${name}"`;
  const at = json.indexOf(quoted);
  return PLAIN_NAME.test(name) && at !== -1 && !json.includes(quoted, at + 1);
}

const PLAIN_NAME = /^\w+$/;

/** The text before the member names of an open object; undefined if its members are not listed, and for an array. */
type Prefix = string | undefined;

/** The paths of the members of nested objects, down to `levels`. Objects in arrays are left out. */
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
