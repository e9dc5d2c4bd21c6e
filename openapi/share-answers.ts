/** Puts answers that several operations have into the components of a document, so that it names each once. */
import type { createDocument } from "zod-openapi";

type Document = ReturnType<typeof createDocument>;
type Responses = NonNullable<NonNullable<Document["components"]>["responses"]>;

const PROBLEM = "application/problem+json";

/** The same document. Each answer with problems alone is a component, named after its codes. */
export function shareAnswers(document: Document): Document {
  const shared: Responses = {};
  for (const operation of operationsOf(document)) {
    for (const [status, answer] of Object.entries(operation.responses ?? {})) {
      const name = nameOf(answer);
      shared[name] ??= answer;
      if (name !== "" && JSON.stringify(shared[name]) === JSON.stringify(answer)) {
        operation.responses = {
          ...operation.responses,
          [status]: { $ref: `#/components/responses/${name}` },
        };
      }
    }
  }
  const { "": _unnamed, ...responses } = shared;
  return { ...document, components: { ...document.components, responses } };
}

function operationsOf({ paths = {} }: Document) {
  return Object.values(paths).flatMap(({ get, post }) => [get, post].filter((one) => one !== undefined));
}

/** `NotDeadOrAttemptUnderWay`; empty for an answer with another body. */
function nameOf(answer: Responses[string]): string {
  const content = "content" in answer ? (answer.content ?? {}) : {};
  const only = Object.keys(content).length === 1 ? content[PROBLEM] : undefined;
  const codes = only !== undefined && "examples" in only ? Object.keys(only.examples ?? {}) : [];
  return codes
    .map((code) => code.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase()))
    .join("Or");
}
