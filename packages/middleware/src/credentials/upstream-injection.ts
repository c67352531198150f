import type { UpstreamTokens } from '@thv/authserver/upstream-tokens'
import { isRejection, type Rejection } from '@thv/mcp/wire-errors'
import type { Middleware } from '../pipeline/middleware.ts'
import { checkedHeaderName } from '../pipeline/outgoing-header.ts'
import type { Hop } from '../pipeline/request-context.ts'
import { addCredentials } from './add-credentials.ts'
import { createUpstreamToken, type UpstreamTokenOptions, type UsableToken } from './upstream-token.ts'

export type { UpstreamTokens }

export interface UpstreamInjectionOptions extends UpstreamTokenOptions {
  /** Carries the token instead of Authorization. */
  readonly header?: string | undefined
}

/**
 * Sends the backend the token that the caller has at an upstream provider. The caller's own token never reaches it. A token that is near costs no promise. A
 * provider without a usable token fails this call alone, with the challenge that leads to its login. Throws InvalidOptions.
 */
export function createUpstreamInjection(options: UpstreamInjectionOptions, tokens: UpstreamTokens): Middleware {
  const name = checkedHeaderName(options.header ?? 'authorization')
  const source = createUpstreamToken(options, tokens)
  const headersOf = createHeaders(name)

  function apply(hop: Hop, found: UsableToken | Rejection): Rejection | undefined {
    if (isRejection(found)) return found
    addCredentials(hop, headersOf(found))
    return undefined
  }

  return {
    name: 'upstreamswap',
    withholds: ['authorization'],
    prepare(hop) {
      if (hop.caller === undefined) return undefined // a request of our own has no user
      const found = source.of(hop)
      return 'then' in found ? found.then((ready) => apply(hop, ready)) : apply(hop, found)
    },
    credentialsRejected(hop) {
      const sent = hop.credentials?.[name]
      if (hop.caller?.identity === undefined || typeof sent !== 'string') return false
      source.rejected(hop, sent.slice('Bearer '.length))
      return true
    },
  }
}

/** One header map per token, so that hops share it. */
function createHeaders(name: string): (result: UsableToken) => { [name: string]: string } {
  const made = new WeakMap<UsableToken, { [name: string]: string }>()
  return (result) => {
    const known = made.get(result)
    if (known !== undefined) return known
    const headers = { [name]: `Bearer ${result.accessToken}` }
    made.set(result, headers)
    return headers
  }
}
