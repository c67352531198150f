import { createHash, randomUUID } from 'node:crypto'
import { isAddress } from '@thv/gateway/sessions/party'
import type { Clock } from '@thv/kernel/clock'
import { PARKED_MS, ParkedCall } from '@thv/mcp/bridge/parked-call'
import { modernError } from '@thv/mcp/bridge/projections'
import { lackedCapability, modernQuestion, type Question } from '@thv/mcp/bridge/questions'
import type { StateSeal } from '@thv/mcp/bridge/state-seal'
import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import type { McpClient, RequestOptions } from '@thv/mcp/client/mcp-client'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { errorObjectOf, missingCapability } from '@thv/mcp/wire-errors'
import { mayHoldMore } from '@thv/store/fair-share'
import { LocalRefusal } from '../members/local-refusal.ts'
import type { Member } from '../members/member.ts'
import { outgoingScope } from '../members/outgoing-scope.ts'
import type { SealKeys } from '../seal/seal-keys.ts'
import { ExclusiveClients } from './exclusive-clients.ts'
import { linksFirst } from './links-first.ts'

export interface ParkedRequest {
  readonly member: Member
  readonly method: string
  /** For the backend, without the answers of the client and their state. */
  readonly params: JsonObject
  readonly capabilities: JsonObject
  readonly principal: string
  /** That limits count for: see `partyOf`. */
  readonly party: string
  readonly inputResponses: unknown
  readonly requestState: unknown
}

const MAX_CALLS = 1_024
/**
 * Calls that wait for answers of one principal; without authentication, of those with the same passed headers at one address, or of the address where
 * there are none.
 */
const MAX_ASKING_PER_USER = 16

/**
 * Calls of modern clients to legacy backends that may ask. Each has a session of the backend for itself. While the client is asked, the
 * call stays open at the backend, and a sealed state leads the client's next request back to it.
 */
export class ParkedCalls {
  readonly #clock: Clock
  readonly #clients: ExclusiveClients
  readonly #seal: StateSeal
  readonly #replica: string
  readonly #calls = new Map<string, ParkedCall>()
  readonly #users = new WeakMap<ParkedCall, string>()
  /** Calls whose backend could not ask. */
  readonly #refused = new WeakMap<ParkedCall, Refused>()

  constructor(clock: Clock, sealKeys: SealKeys) {
    this.#clock = clock
    this.#seal = sealKeys.sealFor('parked calls')
    this.#replica = sealKeys.replica
    this.#clients = new ExclusiveClients(clock)
  }

  /** A client for one request: it starts the call or goes on with it. Its results are modern already. */
  clientFor(request: ParkedRequest): Pick<McpClient, 'request' | 'era'> {
    return { era: 'modern', request: (_method, _params, options = {}) => this.#round(request, options) }
  }

  async close(): Promise<void> {
    for (const call of this.#calls.values()) call.end('shutting down')
    await this.#clients.close()
  }

  async #round(request: ParkedRequest, options: RequestOptions): Promise<JsonObject> {
    const call = request.requestState === undefined ? this.#start(request, options) : this.#found(request)
    try {
      const round = await call.next(options)
      if ('result' in round) {
        const refused = this.#refused.get(call)
        if (refused !== undefined && (refused.isFatal || round.result['isError'] === true)) throw refused.reason
        return { ...round.result, resultType: 'complete' }
      }
      const state = { replica: this.#replica, id: call.id, round: call.round, until: this.#clock.now() + PARKED_MS }
      return { resultType: 'input_required', inputRequests: round.inputRequests, requestState: this.#seal.seal(state) }
    } catch (error) {
      // The answer that leads to a login is the client's own matter, not one of the backend.
      const isChallenge = error instanceof LocalRefusal && error.challenge !== undefined
      if (!(error instanceof McpErrorResponse) || isChallenge) throw error
      const refused = this.#refused.get(call)
      if (refused !== undefined) throw refused.reason
      const links = linksFirst(error, request.capabilities)
      if (links !== undefined) return links
      const { rpcCode: code, message, data } = error
      throw new McpErrorResponse(modernError(data === undefined ? { code, message } : { code, message, data }))
    }
  }

  #start(request: ParkedRequest, options: RequestOptions): ParkedCall {
    const { member, method, params, capabilities, principal, party } = request
    const user = userOf(party)
    const taken = this.#hasRoomFor(party) ? this.#clients.take(member, capabilities, principal) : undefined
    if (taken === undefined) throw new LocalRefusal({ code: -32603, message: 'Too many calls at a time', data: { reason: 'busy' } })
    const call: ParkedCall = new ParkedCall({
      ...{ id: randomUUID(), principal, party, digest: digestOf(request), clock: this.#clock },
      onEnd: () => void this.#calls.delete(call.id),
      onOver: (isClean) => {
        if (isClean) this.#clients.giveBack(taken)
        else this.#clients.discard(taken)
      },
    })
    this.#users.set(call, user)
    taken.ask = (question, signal) => {
      const refused = this.#refusal(call, question, capabilities)
      return refused === undefined ? call.ask(modernQuestion(question), signal) : this.#refuse(call, refused)
    }
    this.#calls.set(call.id, call)
    call.start(taken.client, method, params, options.onProgress !== undefined)
    return call
  }

  /** Users behind one gateway are one party, which leaves room for others. */
  #hasRoomFor(party: string): boolean {
    let own = 0
    for (const call of this.#calls.values()) if (call.party === party) own++
    return mayHoldMore({ own, used: this.#calls.size, limit: MAX_CALLS })
  }

  /** A call that asks already may ask more. */
  #mayAsk(call: ParkedCall): boolean {
    if (call.isAsking) return true
    const user = this.#users.get(call)
    let asking = 0
    for (const each of this.#calls.values()) if (each.isAsking && each.party === call.party && this.#users.get(each) === user) asking++
    return asking < MAX_ASKING_PER_USER
  }

  /** Why the client is not asked. Undefined: it is. Servers often go on without roots. */
  #refusal(call: ParkedCall, question: Question, capabilities: JsonObject): Refused | undefined {
    const lacked = lackedCapability(question, capabilities)
    if (lacked !== undefined)
      return {
        isFatal: question.method !== METHODS.rootsList,
        reason: new LocalRefusal(errorObjectOf(missingCapability(lacked))),
      }
    return this.#mayAsk(call) ? undefined : { isFatal: false, reason: tooManyQuestions() }
  }

  /** The backend goes on without an answer; the client hears of it if the call fails then, or cannot be what it should. */
  #refuse(call: ParkedCall, refused: Refused): Promise<never> {
    if (this.#refused.get(call)?.isFatal !== true) this.#refused.set(call, refused)
    return Promise.reject(new McpErrorResponse({ code: -32601, message: 'Method not found' }))
  }

  /** Every doubt is the same error: a state tells nothing to a client that it was not sealed for. */
  #found(request: ParkedRequest): ParkedCall {
    const state = this.#seal.open(request.requestState)
    const call = typeof state?.['id'] === 'string' ? this.#calls.get(state['id']) : undefined
    const isLate = typeof state?.['until'] !== 'number' || state['until'] < this.#clock.now()
    if (
      call === undefined ||
      isLate ||
      state?.['round'] !== call.round ||
      call.principal !== request.principal ||
      call.digest !== digestOf(request)
    )
      throw new LocalRefusal({
        code: -32602,
        message: 'Invalid params: requestState is not valid',
        data: { reason: state === undefined ? 'invalid' : state['replica'] === this.#replica ? 'expired' : 'wrong replica' },
      })
    call.answer(request.inputResponses)
    return call
  }
}

interface Refused {
  readonly reason: LocalRefusal
  /** The call fails, whatever the backend makes of it. */
  readonly isFatal: boolean
}

function tooManyQuestions(): LocalRefusal {
  const message = 'The backend had a question, and too many calls wait for answers already'
  return new LocalRefusal({ code: -32603, message, data: { reason: 'busy', mayHaveRun: true } })
}

function userOf(party: string): string {
  const passed = outgoingScope.getStore()?.passed
  return passed === undefined || !isAddress(party) ? party : `${party} ${passed.key}`
}

function digestOf({ member, method, params }: ParkedRequest): string {
  const { _meta: _, ...rest } = params
  return createHash('sha256')
    .update(JSON.stringify([member.name, method, rest]))
    .digest('base64url')
}
