import type { z } from "zod";

/** A section of `.env.example`: an app's name and its settings. */
export interface EnvSection {
  readonly title: string;
  readonly shape: z.core.$ZodShape;
}

/** Writes `.env.example` from the schemas that the apps really load; a setting shared by apps stands once. */
export function renderEnvExample(
  sections: readonly EnvSection[],
  describe: (type: z.core.$ZodType) => unknown,
): string {
  const seen = new Set<string>();
  const lines = [
    "# Every setting with its default; take the # off a line to change it.",
    "# Generated from the schemas: edit those, then `pnpm generate`.",
  ];
  for (const { title, shape } of sections) {
    lines.push("", `# --- ${title} ---`);
    for (const [name, type] of Object.entries(shape)) {
      if (!seen.has(name)) {
        seen.add(name);
        lines.push("", ...settingLines(name, describe(type)));
      }
    }
  }
  return `${lines.join("\n")}\n`;
}

function settingLines(name: string, note: unknown): string[] {
  const { description, example } = readNote(note);
  return [`# ${description}`, `#${name}=${example ?? ""}`];
}

function readNote(note: unknown): { description: string; example: string | undefined } {
  const fields: Record<string, unknown> = typeof note === "object" && note !== null ? { ...note } : {};
  const { description, example } = fields;
  return {
    description: typeof description === "string" ? description : "(no description)",
    example: typeof example === "string" ? example : undefined,
  };
}
