/**
 * Pure: the options of a command that are whole numbers from 1 on; `numbers` has the default and the highest of each. A
 * word that is no option is refused.
 */
export function readNumberOptions(command, { values, words }, numbers) {
  const [word] = words;
  if (word !== undefined) {
    return { kind: "faulty", why: `${command} takes no ${word}` };
  }
  const read = {};
  for (const [name, { byDefault, max }] of Object.entries(numbers)) {
    read[name] = Number(values[name] ?? byDefault);
    if (!isWhole(read[name], max)) {
      return {
        kind: "faulty",
        why: `--${name} wants a whole number from 1 to ${max}, not ${values[name]}`,
      };
    }
  }
  return { kind: "run", ...read };
}

/** Pure. */
export function isWhole(value, max) {
  return Number.isInteger(value) && value >= 1 && value <= max;
}
