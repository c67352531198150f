import { nameProblems } from './object-name.ts'

/* Problems of names and numbers, in the server's words; none when it is valid. */

const QUALIFIED = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const QUALIFIED_TEXT =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/
const LABEL_VALUE_TEXT =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
const CONFIG_KEY_TEXT =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
const HEADER_TEXT =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
const PERCENT_TEXT =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
const UNDERSCORED = '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?'
const SEARCH_DOMAIN = `${UNDERSCORED}(\\.${UNDERSCORED})*`
const SEARCH_DOMAIN_TEXT = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SEARCH_DOMAIN}')`

export const MAX_INT32 = 2 ** 31 - 1

export const labelNameProblems = (name: string): string[] => nameProblems('label', name)
export const subdomainProblems = (name: string): string[] => nameProblems('subdomain', name)

/** A key of labels and the like: a name, with or without a prefix. */
export function qualifiedNameProblems(value: string): string[] {
  const parts = value.split('/')
  if (parts.length > 2)
    return [`a qualified name ${QUALIFIED_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`]
  const name = parts.at(-1) ?? ''
  const problems: string[] = []
  if (parts.length === 2) {
    if (parts[0] === '') problems.push('prefix part must be non-empty')
    else problems.push(...subdomainProblems(parts[0] ?? '').map((why) => `prefix part ${why}`))
  }
  if (name === '') problems.push('name part must be non-empty')
  else if (name.length > 63) problems.push('name part must be no more than 63 characters')
  if (!QUALIFIED.test(name)) problems.push(`name part ${QUALIFIED_TEXT}`)
  return problems
}

export function labelValueProblems(value: string): string[] {
  const problems: string[] = []
  if (Buffer.byteLength(value) > 63) problems.push('must be no more than 63 characters')
  if (!LABEL_VALUE.test(value)) problems.push(LABEL_VALUE_TEXT)
  return problems
}

export function configKeyProblems(key: string): string[] {
  const problems: string[] = []
  if (key.length > 253) problems.push('must be no more than 253 characters')
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) problems.push(CONFIG_KEY_TEXT)
  if (key === '.') problems.push("must not be '.'")
  else if (key === '..') problems.push("must not be '..'")
  else if (key.startsWith('..')) problems.push("must not start with '..'")
  return problems
}

export function envNameProblems(name: string): string[] {
  if (/^[ -<>-~]*$/.test(name)) return []
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
}

export function portNameProblems(name: string): string[] {
  const problems: string[] = []
  if (name.length > 15) problems.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(name)) problems.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(name)) problems.push('must contain at least one letter (a-z)')
  if (name.includes('--')) problems.push('must not contain consecutive hyphens')
  if (name.startsWith('-') || name.endsWith('-')) problems.push('must not begin or end with a hyphen')
  return problems
}

export const portNumberProblems = (port: number): string[] => rangeProblems(port, 1, 65_535)
/** Of a user or a group. */
export const idProblems = (id: number): string[] => rangeProblems(id, 0, MAX_INT32)

export function rangeProblems(value: number, least: number, most: number): string[] {
  return value >= least && value <= most ? [] : [`must be between ${least} and ${most}, inclusive`]
}

export function headerNameProblems(name: string): string[] {
  return /^[-A-Za-z0-9]+$/.test(name) ? [] : [HEADER_TEXT]
}

export function percentProblems(text: string): string[] {
  return /^[0-9]+%$/.test(text) ? [] : [PERCENT_TEXT]
}

/** Search domains may have underscores. */
export function searchDomainProblems(name: string): string[] {
  const problems: string[] = []
  if (name.length > 253) problems.push('must be no more than 253 characters')
  if (!new RegExp(`^${SEARCH_DOMAIN}$`).test(name)) problems.push(SEARCH_DOMAIN_TEXT)
  return problems
}
