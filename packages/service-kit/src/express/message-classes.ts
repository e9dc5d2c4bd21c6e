import { IncomingMessage, ServerResponse } from "node:http";
import type { Express } from "express";

/**
 * Classes of requests and responses for a server of this app: `createServer(messageClassesOf(app), app)`.
 *
 * Express replaces the prototype of each request and response that Node has made, and with that V8 loses what it has
 * learned about their shape. Requests and responses of these classes already have the prototypes that Express sets.
 */
export function messageClassesOf(app: Express) {
  class AppRequest extends IncomingMessage {}
  class AppResponse extends ServerResponse {}
  app.request = Object.setPrototypeOf(AppRequest.prototype, app.request);
  app.response = Object.setPrototypeOf(AppResponse.prototype, app.response);
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse };
}
