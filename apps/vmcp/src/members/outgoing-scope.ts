import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import { readBearer } from '@thv/auth/incoming/bearer'
import { partyOf } from '@thv/gateway/sessions/party'
import type { Exchange } from '@thv/http/server/exchange'
import type { ParsedMessage } from '@thv/mcp/parse-body'
import { ANONYMOUS, type Caller, type Era } from '@thv/middleware/pipeline/request-context'
import type { PassedHeaders } from './passed-headers.ts'

/** The request of a client that backends are called for. Credentials at backends may depend on the caller. */
export interface OutgoingScope {
  /** Undefined for a request of our own. */
  readonly caller: Caller | undefined
  readonly exchange: Exchange | undefined
  readonly era?: Era | undefined
  /** The client's message. */
  readonly received?: ParsedMessage | undefined
  /** Headers of the client that go on to the backend. */
  readonly passed?: PassedHeaders | undefined
  /** Headers that authenticated the last request to the backend of this attempt. */
  credentials?: Readonly<Record<string, unknown>> | undefined
}

/** Follows a request through everything that is awaited for it. Absent for requests of our own, such as health checks. */
export const outgoingScope = new AsyncLocalStorage<OutgoingScope>()

/** The key of callers whose credentials at backends are the same. Undefined: there is nothing that could be exchanged. */
export function credentialClass({ caller, exchange }: OutgoingScope): string | undefined {
  if (caller?.identity !== undefined) return caller.principal
  const authorization = exchange?.headers['authorization']
  const bearer = typeof authorization === 'string' ? readBearer(authorization) : 'missing'
  return typeof bearer === 'object' ? createHash('sha256').update(bearer.token).digest('base64url') : undefined
}

/** The key of callers whose requests to a backend are the same. Undefined: nothing of the caller reaches it. */
export function requestClass(scope: OutgoingScope, isPerCaller: boolean): string | undefined {
  const own = isPerCaller ? credentialClass(scope) : undefined
  const passed = scope.passed?.key
  return own === undefined || passed === undefined ? (own ?? passed) : `${own} ${passed}`
}

/** The party that limits count for. */
export function partyOfScope({ caller, exchange }: OutgoingScope): string {
  return exchange === undefined ? 'unknown' : partyOf(caller?.principal ?? ANONYMOUS.principal, exchange)
}
