import { InvalidOptions } from '../pipeline/invalid-options.ts'
import { type Middleware, setHeader } from '../pipeline/middleware.ts'
import { checkedHeader } from '../pipeline/outgoing-header.ts'

export interface HeaderForwardOptions {
  /** Name to value. Values may be secrets. */
  readonly headers: Readonly<Record<string, string>>
}

export interface HeaderForwardDeps {
  warn(message: string): void
}

/**
 * Adds fixed headers to every request to a remote server. They replace headers of the client, but never credentials that another
 * middleware sets. Throws InvalidOptions on a name or value that must not be sent.
 */
export function createHeaderForward({ headers }: HeaderForwardOptions, { warn }: HeaderForwardDeps): Middleware {
  const pairs = Object.entries(headers).map(([name, value]) => checkedHeader(name, value))
  const repeated = pairs.find(([name], at) => pairs.findIndex(([other]) => other === name) !== at)
  if (repeated) throw new InvalidOptions(`${repeated[0]} is set twice`)
  if (pairs.some(([name]) => name === 'authorization'))
    warn('sets Authorization; credentials for the remote server take precedence over it')
  return {
    name: 'header-forward',
    headers(_hop, set) {
      for (const [name, value] of pairs) setHeader(set, name, value)
    },
  }
}
