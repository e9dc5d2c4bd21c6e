import { setImmediate as turn } from "node:timers/promises";
import type { Ad } from "./ad.ts";

/** What differs between two catalogues, by the ads' ids. */
export interface CatalogDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly { readonly id: string; readonly fields: readonly string[] }[];
}

/** Ads compared in one turn of the event loop. */
const TURN_ADS = 500;

/** Compares two catalogues; a long one leaves others their turn. */
export async function diffCatalogs(before: readonly Ad[], after: readonly Ad[]): Promise<CatalogDiff> {
  const left = new Map(before.map((ad) => [ad.id, ad]));
  const added: string[] = [];
  const changed: { id: string; fields: readonly string[] }[] = [];
  for (const [index, ad] of after.entries()) {
    if (index % TURN_ADS === TURN_ADS - 1) {
      await turn();
    }
    const old = left.get(ad.id);
    left.delete(ad.id);
    if (old === undefined) {
      added.push(ad.id);
    } else if (JSON.stringify(old) !== JSON.stringify(ad)) {
      const fields = changedFields(old, ad);
      changed.push(...(fields.length > 0 ? [{ id: ad.id, fields }] : []));
    }
  }
  return { added, removed: [...left.keys()], changed };
}

/** Fields whose values differ; those of a group by themselves: `targeting.countries`. */
function changedFields(old: object, ad: object, prefix = ""): string[] {
  const before = new Map<string, unknown>(Object.entries(old));
  const after = new Map<string, unknown>(Object.entries(ad));
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((field) => {
    const [was, is] = [before.get(field), after.get(field)];
    if (JSON.stringify(was) === JSON.stringify(is)) {
      return [];
    }
    return isGroup(was) && isGroup(is) ? changedFields(was, is, `${prefix}${field}.`) : [`${prefix}${field}`];
  });
}

function isGroup(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
