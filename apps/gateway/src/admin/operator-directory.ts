/**
 * The operators of a gateway: those that its settings and their file name now.
 *
 * 1. A list is taken whole or not at all. A faulty file changes nothing.
 * 2. A call that has begun ends with what its operator was allowed when it began.
 */
import type { FieldFault } from "@adrelay/contract";
import { FileReader, type Finding } from "@adrelay/provider";
import { loadOperators, type Operator, type OperatorSettings } from "./operators.ts";

/** What differs between two lists of operators, by their names. */
interface OperatorsDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
}

/** What reading the file again came to. */
export type OperatorsReload =
  | { readonly kind: "reloaded"; readonly diff: OperatorsDiff }
  | { readonly kind: "unchanged" }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

export class OperatorDirectory {
  readonly #settings: OperatorSettings;
  #current: readonly Operator[] = [];
  #found: Finding = new Map();

  constructor(settings: OperatorSettings) {
    this.#settings = settings;
  }

  get current(): readonly Operator[] {
    return this.#current;
  }

  /** What the last reading found in the file. It is empty without a file. */
  get found(): Finding {
    return this.#found;
  }

  /** Reads the file, and puts its operators in force if all is well. */
  load(): OperatorsReload {
    const reader = new FileReader();
    const { operators, faults } = loadOperators(this.#settings, reader);
    this.#found = reader.found;
    if (faults.length > 0) {
      return { kind: "faulty", faults };
    }
    const diff = diffOperators(this.#current, operators);
    this.#current = operators;
    const isSame = Object.values(diff).every((names: readonly string[]) => names.length === 0);
    return isSame ? { kind: "unchanged" } : { kind: "reloaded", diff };
  }
}

function diffOperators(before: readonly Operator[], after: readonly Operator[]): OperatorsDiff {
  const textsOf = (operators: readonly Operator[]) =>
    new Map(operators.map((operator) => [operator.name, JSON.stringify(operator)]));
  const [was, is] = [textsOf(before), textsOf(after)];
  return {
    added: [...is.keys()].filter((name) => !was.has(name)),
    removed: [...was.keys()].filter((name) => !is.has(name)),
    changed: [...is].flatMap(([name, text]) => (was.has(name) && was.get(name) !== text ? [name] : [])),
  };
}
