/** The errors that the committed API documents describe: each operation's statuses, and the codes of each. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export type DocumentName = "public" | "admin" | "ad-server";

/** An operation, and what it answers in errors. */
export interface Operation {
  readonly document: DocumentName;
  readonly id: string;
  readonly method: "GET" | "POST";
  /** With a name in braces for each parameter. */
  readonly path: string;
  readonly hasBody: boolean;
  /** Such as `404 unknown_replay`. */
  readonly errors: readonly string[];
}

export function operationsOf(name: DocumentName): readonly Operation[] {
  const file = fileURLToPath(new URL(`../../docs/openapi/${name}.json`, import.meta.url));
  const document = JSON.parse(readFileSync(file, "utf8"));
  const follow = (node: unknown): Record<string, unknown> => {
    const { $ref, ...rest } = Object(node);
    const names = String($ref ?? "").split("/");
    return $ref === undefined ? rest : Object(names.slice(1).reduce((at, one) => at[one], document));
  };
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(Object(item)).map(([method, operation]) => {
      const { operationId, requestBody, responses } = Object(operation);
      return {
        document: name,
        id: operationId,
        method: method === "post" ? "POST" : "GET",
        path,
        hasBody: requestBody !== undefined,
        errors: Object.entries(responses).flatMap(([status, answer]) =>
          Number(status) < 400 ? [] : codesOf(follow(answer)).map((code) => `${status} ${code}`),
        ),
      } as const;
    }),
  );
}

/** What an answer can tell is in its description, also where its schema is that of a foreign body. */
function codesOf({ description }: Record<string, unknown>): readonly string[] {
  const codes = [...String(description).matchAll(/`([a-z_]+)`: /g)].map(([, code]) => String(code));
  // Such as the report of a process that isn't ready.
  return codes.length === 0 ? ["-"] : codes;
}
