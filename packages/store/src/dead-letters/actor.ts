/** Who makes a change: an operator's name and address. Scripts take both as one text, which dead-letters/audit.lua parts. */
export interface Actor {
  /** Without blanks. */
  readonly name: string;
  readonly address: string;
}

/** The text for scripts, as their `by`. A name without an address is one as well. */
export function writeActor({ name, address }: Actor): string {
  return `${name} ${address}`;
}

/** The name in such a text. */
export function nameOfActor(by: string): string {
  return by.split(" ")[0] ?? "";
}
