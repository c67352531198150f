/* Variables that carry the values of forwarded headers from Secrets, for a RunConfig and for the file of a virtual server. */

/** How programs call variables that hold secrets; their configuration has the rest of the name. */
export const SECRET_VARIABLE_PREFIX = 'TOOLHIVE_SECRET_'

/** Upper case, with `_` for whatever cannot stand in the name of a variable. */
export function variablePart(text: string): string {
  return text.toUpperCase().replaceAll(/[^A-Z0-9_]/g, '_')
}

/** Header to identifier. `X-A` and `X_A` are two headers but would be one variable: the later one gets a number. */
export function headerIdentifiers(headers: readonly string[], owner: string): Record<string, string> {
  const taken = new Set<string>()
  return Object.fromEntries(
    headers.map((header) => {
      const base = `HEADER_FORWARD_${variablePart(header)}_${variablePart(owner)}`
      let identifier = base
      for (let n = 2; taken.has(identifier); n++) identifier = `${base}_${n}`
      taken.add(identifier)
      return [header, identifier]
    }),
  )
}
