import { randomInt } from 'node:crypto'

/** Which names a kind takes. `path`: anything that can stand in a URL, as for RBAC. */
export type NameRule = 'subdomain' | 'label' | 'label1035' | 'path'

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`
const LABEL_1035 = '[a-z]([-a-z0-9]*[a-z0-9])?'

const RULES = {
  subdomain: {
    pattern: new RegExp(`^${SUBDOMAIN}$`),
    max: 253,
    text: `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SUBDOMAIN}')`,
  },
  label: {
    pattern: new RegExp(`^${LABEL}$`),
    max: 63,
    text: `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`,
  },
  label1035: {
    pattern: new RegExp(`^${LABEL_1035}$`),
    max: 63,
    text: `a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '${LABEL_1035}')`,
  },
} as const

/** Problems of a name, in the server's words; empty when it is valid. */
export function nameProblems(rule: NameRule, name: string): string[] {
  if (rule === 'path') return pathProblems(name)
  const { pattern, max, text } = RULES[rule]
  const problems: string[] = []
  if (name.length > max) problems.push(`must be no more than ${max} characters`)
  // As the real server says it: a subdomain that is no label can only have dots too many.
  if (!pattern.test(name)) problems.push(rule === 'label' && RULES.subdomain.pattern.test(name) ? 'must not contain dots' : text)
  return problems
}

function pathProblems(name: string): string[] {
  if (name === '.' || name === '..') return [`may not be '${name}'`]
  return ['/', '%'].filter((letter) => name.includes(letter)).map((letter) => `may not contain '${letter}'`)
}

const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
const MAX_BASE = 58

/** The base and five random characters, as the real server makes it: without vowels, so that no words come out. */
export function generatedName(base: string): string {
  let name = base.slice(0, MAX_BASE)
  for (let count = 0; count < 5; count++) name += ALPHABET[randomInt(ALPHABET.length)]
  return name
}
