/** An object's members for people, as `name=value`; those that are null are left out. */
export function describeMembers(value: unknown): string {
  return Object.entries(Object(value))
    .filter(([, member]) => member !== null && member !== undefined)
    .map(([name, member]) => `${name}=${describe(member)}`)
    .join(" ");
}

/** Text as it is, unless it could be taken for more than one member. */
function describe(member: unknown): string {
  return typeof member === "string" && /^[^\s="]+$/.test(member) ? member : JSON.stringify(member);
}
