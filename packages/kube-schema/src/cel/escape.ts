const RESERVED = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(' '),
)
const ESCAPES: Readonly<Record<string, string>> = { __: '__underscores__', '.': '__dot__', '-': '__dash__', '/': '__slash__' }

/** The name by which a rule reads a property; undefined for one that no rule can read. */
export function celName(property: string): string | undefined {
  if (RESERVED.has(property)) return `__${property}__`
  if (!/^[A-Za-z_./-][\w./-]*$/.test(property)) return undefined
  return property.replace(/__|[./-]/g, (part) => ESCAPES[part] ?? part)
}
