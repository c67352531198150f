/** Both parts need two characters in the official registry; here one is enough (namespaces of a cluster may be short). */
export interface NameRule {
  readonly minPart?: number
}

const NAMESPACE = /^[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?$/
const NAME = /^[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?$/

/** The problem of a server name, or undefined. Case is kept and counts. */
export function serverNameProblem(name: string, rule: NameRule = {}): string | undefined {
  if (name === '') return 'server name cannot be empty'
  if (name.length > 200) return 'server name exceeds maximum length of 200 characters'
  const slash = name.indexOf('/')
  if (slash === -1) return "server name must be in format 'dns-namespace/name' (e.g., 'com.example.api/server')"
  if (name.includes('/', slash + 1)) return "server name must contain exactly one '/' separator"
  const namespace = name.slice(0, slash)
  const own = name.slice(slash + 1)
  if (namespace === '') return 'namespace part cannot be empty'
  if (own === '') return 'name part cannot be empty'
  if (name.length < 3) return 'server name must be at least 3 characters long'
  if (!NAMESPACE.test(namespace))
    return 'namespace part must consist of letters, digits, dots and hyphens, with a letter or digit at both ends'
  if (!NAME.test(own))
    return 'name part must consist of letters, digits, dots, underscores and hyphens, with a letter or digit at both ends'
  const minPart = rule.minPart ?? 1
  if (namespace.length < minPart || own.length < minPart) return `both parts must be at least ${minPart} characters long`
  return undefined
}

/** The part after the last slash; the whole where there is none. */
export function shortName(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1)
}
