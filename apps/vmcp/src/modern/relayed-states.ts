import { createHash } from 'node:crypto'
import { partyOf } from '@thv/gateway/sessions/party'
import type { Exchange } from '@thv/http/server/exchange'
import type { Clock } from '@thv/kernel/clock'
import { canonicalJson } from '@thv/kernel/config-hash'
import { inputProblem } from '@thv/mcp/bridge/questions'
import type { StateSeal } from '@thv/mcp/bridge/state-seal'
import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import type { McpClient, RequestOptions } from '@thv/mcp/client/mcp-client'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { LocalRefusal } from '../members/local-refusal.ts'
import type { Member } from '../members/member.ts'
import { USED_STATES_MS, type UsedStates } from '../seal/used-states.ts'

export interface RelayedRequest {
  readonly member: Member
  readonly method: string
  /** For the backend, with the answers of the client and their state. */
  readonly params: JsonObject
  /** Of the client. */
  readonly capabilities: JsonObject
  readonly principal: string
  readonly exchange: Exchange
}

const MAX_STATE = 64 * 1_024

/**
 * The `requestState` of modern backends on its way through modern clients. It is sealed for one principal, backend, method, target and
 * arguments for ten minutes, and leads back once: backends that are reached with shared credentials cannot tell callers apart.
 */
export class RelayedStates {
  readonly #clock: Clock
  readonly #seal: StateSeal
  readonly #used: UsedStates

  constructor(clock: Clock, seal: StateSeal, used: UsedStates) {
    this.#clock = clock
    this.#seal = seal
    this.#used = used
  }

  /** The shared client of the backend, for one request. */
  clientFor(request: RelayedRequest): Pick<McpClient, 'request' | 'era'> {
    return new RelayedClient(this, request)
  }

  /** As the client of one request. */
  async send(request: RelayedRequest, { method, params, options }: Sent): Promise<JsonObject> {
    const { shared } = request.member
    const { requestState, ...rest } = params
    const inner = requestState === undefined ? undefined : await this.#take(requestState, request)
    let isAnswered = false
    try {
      const result = await shared.request(method, inner === undefined ? rest : { ...rest, requestState: inner }, options)
      isAnswered = true
      return shared.era === 'modern' ? this.sealed(result, request) : result
    } catch (error) {
      isAnswered = error instanceof McpErrorResponse
      throw error
    } finally {
      // The backend may not have seen it: then the client may come back with it.
      if (!isAnswered && typeof requestState === 'string') await this.#used.release(requestState)
    }
  }

  /** A result with its state sealed, where it has one. Throws LocalRefusal for a question that its client must not be asked. */
  sealed(result: JsonObject, request: RelayedRequest): JsonObject {
    const { resultType, requestState: inner } = result
    if (resultType !== 'input_required') return result
    const problem = inputProblem(result, request.method, request.capabilities)
    if (problem !== undefined) throw notRelayed(`The backend ${problem}`)
    if (inner === undefined) return result
    if (typeof inner !== 'string' || inner.length > MAX_STATE)
      throw notRelayed(`The requestState of the backend is not a text of at most ${MAX_STATE} characters`)
    return { ...result, requestState: this.#seal.seal({ inner, owner: ownerOf(request), until: this.#clock.now() + USED_STATES_MS }) }
  }

  /** The state as the backend knows it. Every doubt is the same error: a state tells nothing to a client that it was not sealed for. */
  async #take(requestState: unknown, request: RelayedRequest): Promise<string> {
    const state = this.#seal.open(requestState)
    const { inner, until } = state ?? {}
    const isLive = typeof until === 'number' && until >= this.#clock.now()
    const isOwn = typeof inner === 'string' && isLive && state?.['owner'] === ownerOf(request)
    if (!isOwn || typeof requestState !== 'string' || !(await this.#used.use(requestState, partyOf(request.principal, request.exchange))))
      throw new LocalRefusal({
        code: -32602,
        message: 'Invalid params: requestState is not valid',
        data: { reason: state === undefined ? 'invalid' : 'expired' },
      })
    return inner
  }
}

class RelayedClient implements Pick<McpClient, 'request' | 'era'> {
  readonly #states: RelayedStates
  readonly #request: RelayedRequest

  constructor(states: RelayedStates, request: RelayedRequest) {
    this.#states = states
    this.#request = request
  }

  get era(): McpClient['era'] {
    return this.#request.member.shared.era
  }

  request(method: string, params: JsonObject = {}, options: RequestOptions = {}): Promise<JsonObject> {
    return this.#states.send(this.#request, { method, params, options })
  }
}

interface Sent {
  readonly method: string
  readonly params: JsonObject
  readonly options: RequestOptions
}

function notRelayed(message: string): LocalRefusal {
  return new LocalRefusal({ code: -32603, message, data: { reason: 'backend_protocol_error', mayHaveRun: true } })
}

function ownerOf({ member, method, params, principal }: RelayedRequest): string {
  const { _meta: _, inputResponses: _answers, requestState: _state, ...target } = params
  return createHash('sha256')
    .update(canonicalJson([principal, member.name, method, target]))
    .digest('base64url')
}
