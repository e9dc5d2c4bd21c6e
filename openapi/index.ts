/** The three OpenAPI documents, each with the path at which it is committed and from which it is served. */
import { AD_SERVER_API } from "./ad-server-api.ts";
import { ADMIN_API } from "./admin-api/index.ts";
import { renderDocument } from "./document.ts";
import { PUBLIC_API } from "./public-api.ts";

/** The documents by name. */
export const API_DOCUMENTS = [
  { path: "docs/openapi/public.json", text: renderDocument(PUBLIC_API) },
  { path: "docs/openapi/admin.json", text: renderDocument(ADMIN_API) },
  { path: "docs/openapi/ad-server.json", text: renderDocument(AD_SERVER_API) },
] as const;
