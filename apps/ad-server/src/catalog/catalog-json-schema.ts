import { z } from "zod";
import { catalogFormSchema } from "./load-catalog.ts";

/**
 * The form of a catalogue file for editors. It knows no rule over two fields and nothing of screening: what it
 * takes, the server may still refuse; what it refuses, the server refuses too.
 */
export function catalogJsonSchema(): object {
  return {
    title: "Ads of the ad server",
    description: "Generated from the code by `pnpm generate`: edit there.",
    ...z.toJSONSchema(catalogFormSchema, { io: "input" }),
  };
}
