/**
 * The members of the outermost object of a JSON text, in order and with repeats, escapes resolved.
 * `JSON.parse` keeps the last of two equal names where another parser may keep the first; a relay that
 * forwards a body unread must not book one id while the provider sees another.
 *
 * @param json text that `JSON.parse` has accepted as an object; anything else gives a meaningless list
 */
export function outermostKeys(json: string): string[] {
  const keys: string[] = [];
  let depth = 0;
  let expectsKey = false;
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at];
    if (char === '"') {
      const end = endOfString(json, at);
      if (depth === 1 && expectsKey) {
        keys.push(String(JSON.parse(json.slice(at, end + 1))));
        expectsKey = false;
      }
      at = end;
    } else if (char === "{" || char === "[") {
      depth += 1;
      expectsKey = depth === 1;
    } else if (char === "}" || char === "]") {
      depth -= 1;
    } else if (char === "," && depth === 1) {
      expectsKey = true;
    }
  }
  return keys;
}

/** Names that stand more than once in the outermost object. */
export function duplicateKeys(json: string, names: readonly string[]): string[] {
  const keys = outermostKeys(json);
  return names.filter((name) => keys.indexOf(name) !== keys.lastIndexOf(name));
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
