/** Rules about members of a request that several dialects share. */
import type { JsonPlaces, NodeId } from "./json-places.ts";

/** The document's own value. */
export const ROOT: NodeId = 0;

/** A format other than text: the user's program reads the answer, and an ad would break it. */
export function demandsStructure(json: JsonPlaces, format: NodeId | undefined): boolean {
  return format !== undefined && json.stringMember(format, "type") !== "text";
}

/** The model must call a tool, so it writes no text in which an ad could stand. */
export function forcesTool(json: JsonPlaces): boolean {
  const choice = json.member(ROOT, "tool_choice");
  if (choice === undefined) return false;
  const word = json.string(choice);
  if (word !== undefined) return word === "required" || word === "any";
  switch (json.stringMember(choice, "type")) {
    case "auto":
    case "none":
      return false;
    case "allowed_tools":
      return isRequired(json, choice) || isRequired(json, json.member(choice, "allowed_tools"));
    default:
      return true;
  }
}

function isRequired(json: JsonPlaces, choice: NodeId | undefined): boolean {
  return choice !== undefined && json.stringMember(choice, "mode") === "required";
}

/** The answer is to be spoken. */
export function wantsAudio(json: JsonPlaces): boolean {
  const modalities = json.member(ROOT, "modalities");
  const isSpoken =
    modalities !== undefined && json.children(modalities).some((one) => json.string(one) === "audio");
  return isSpoken || json.member(ROOT, "audio") !== undefined;
}
