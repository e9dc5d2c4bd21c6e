import { ERROR_CATALOGUE } from "@adrelay/contract";
import { createOpsApp, serveApiDocument } from "@adrelay/service-kit";
import { expect, test } from "vitest";
import { createAdServerApp } from "../apps/ad-server/src/app.ts";
import { createAdminRouter } from "../apps/gateway/src/admin/router.ts";
import { createPublicApp } from "../apps/gateway/src/public-app.ts";
import { API_DOCUMENTS } from "./index.ts";

/** No request is sent to these apps, so that no handler needs its parts. */
const NOTHING = {} as never;

const APPS = {
  "docs/openapi/public.json": () => createPublicApp(NOTHING),
  "docs/openapi/admin.json": () =>
    createOpsApp({
      collect: NOTHING,
      checks: [],
      injectionChecks: [],
      isStopping: () => false,
      log: NOTHING,
      access: { settings: {}, listenHost: "localhost", guard: NOTHING },
      document: serveApiDocument("admin"),
      routes: createAdminRouter(NOTHING, NOTHING),
    }),
  "docs/openapi/ad-server.json": () => createAdServerApp(NOTHING),
} as const;

/** The parts of Express' layers that say what they route. */
interface Layer {
  readonly route?: {
    readonly path: string | readonly string[];
    readonly methods: Readonly<Record<string, boolean>>;
  };
  readonly handle?: { readonly stack?: readonly Layer[] };
}

/** `GET /path/{id}` for each route, in order, with paths as documents have them. */
function routesOf(stack: readonly Layer[]): string[] {
  return stack.flatMap(({ route, handle }) => {
    if (route === undefined) {
      return routesOf(handle?.stack ?? []);
    }
    const methods = Object.keys(route.methods).filter((method) => route.methods[method] && method !== "_all");
    return [route.path].flat().flatMap((path) => methods.map((method) => nameOf(method, path)));
  });
}

const nameOf = (method: string, path: string) =>
  `${method.toUpperCase()} ${path.replaceAll(/:(\w+)/g, "{$1}").replace(/(?<=.)\/$/, "")}`;

test.each(API_DOCUMENTS)("$path has exactly the routes of its listener", ({ path, text }) => {
  const { paths } = JSON.parse(text) as { readonly paths: Readonly<Record<string, object>> };
  const documented = Object.entries(paths).flatMap(([at, item]) =>
    Object.keys(item).map((method) => nameOf(method, at)),
  );
  // Express types its router's layers more narrowly than they are.
  const { stack } = APPS[path]().router as unknown as { readonly stack: readonly Layer[] };
  expect(documented.sort()).toEqual(routesOf(stack).sort());
});

test("each error code is an answer in a document, and no other code is", () => {
  const codes = API_DOCUMENTS.flatMap(({ text }) =>
    [...text.matchAll(/urn:adrelay:error:(\w+)/g)].map(([, code]) => code),
  );
  expect([...new Set(codes)].sort()).toEqual(Object.keys(ERROR_CATALOGUE).sort());
});
