import { ThvError } from '@thv/kernel/errors'
import { isObject } from '@thv/kernel/json'
import { headerVariable } from '@thv/vmcpconfig/discovery/resolve-member'

export type Env = Readonly<Record<string, string | undefined>>

/**
 * The headers that the operator forwards to an entry: a manifest in a variable per entry, and the values of secrets in further variables.
 * A missing value is an error: the backend would answer with a riddle.
 */
export function forwardedHeaders(entry: string, env: Env): Readonly<Record<string, string>> {
  const variable = headerVariable(entry)
  const text = env[variable]
  if (text === undefined || text === '') return {}
  const manifest = parsed(text)
  if (manifest === undefined) throw invalid(`${variable} is not a JSON object`)
  const plain = texts(manifest['addPlaintextHeaders'], `${variable}: addPlaintextHeaders`)
  const secrets = texts(manifest['addHeadersFromSecret'], `${variable}: addHeadersFromSecret`)
  const values = Object.entries(secrets).map(([name, secret]) => {
    const value = env[`TOOLHIVE_SECRET_${secret}`]
    if (value === undefined || value === '') throw invalid(`variable TOOLHIVE_SECRET_${secret} for header ${name} is missing or empty`)
    return [name, value] as const
  })
  return { ...plain, ...Object.fromEntries(values) }
}

/** Headers are for one backend: names that lead to one variable would share its secrets. */
export function checkHeaderVariables(names: readonly string[], env: Env): void {
  const owners = new Map<string, string>()
  for (const name of names) {
    const variable = headerVariable(name)
    const owner = owners.get(variable)
    if (owner !== undefined && env[variable]) throw invalid(`${variable} is for both ${owner} and ${name}: rename one of these backends`)
    owners.set(variable, name)
  }
}

function parsed(text: string) {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined // reported by name; the message of the parser would quote the text
  }
}

function texts(value: unknown, where: string): Readonly<Record<string, string>> {
  if (value === undefined) return {}
  const entries = isObject(value) ? Object.entries(value) : []
  if (!isObject(value) || !entries.every((entry): entry is [string, string] => typeof entry[1] === 'string'))
    throw invalid(`${where} is not an object of texts`)
  return Object.fromEntries(entries)
}

function invalid(message: string): ThvError {
  return new ThvError('vmcp_config_invalid', message)
}
