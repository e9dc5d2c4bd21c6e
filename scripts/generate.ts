/** `npm run generate`: writes the documents that are generated from the code. */
import { writeFileSync } from "node:fs";
import { generateDocuments } from "./documents.ts";

for (const { path, text } of await generateDocuments()) {
  writeFileSync(new URL(`../${path}`, import.meta.url), text);
  console.log(`wrote ${path}`);
}
