/** The examples of the documents, so that tests can run them. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = new URL("../../../", import.meta.url);

/** The text of a document, by its path from the root of the repository. */
export function readDocument(path: string): string {
  return readFileSync(fileURLToPath(new URL(path, ROOT)), "utf8");
}

/** The code blocks of a document in one language, in order. */
export function codeBlocks(path: string, language: string): string[] {
  const fenced = readDocument(path).matchAll(/^ *```(\w*)\n(.*?)^ *```$/gms);
  return [...fenced].filter(([, found]) => found === language).map(([, , code = ""]) => code);
}
