import type { Clock, Timer } from '@thv/kernel/clock'
import type { Ask } from '@thv/mcp/bridge/parked-call'
import type { ClientHandler, ClientHandlers, McpClient } from '@thv/mcp/client/mcp-client'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import type { Member } from '../members/member.ts'
import { outgoingScope, requestClass } from '../members/outgoing-scope.ts'

/** A session at a legacy backend that one call has for itself: whatever the backend asks belongs to that call. */
export interface ExclusiveClient {
  readonly client: McpClient
  /** Of the call that has it now. */
  ask: Ask | undefined
}

interface Pooled extends ExclusiveClient {
  readonly key: string
  timer: Timer | undefined
}

const MAX_PER_KEY = 16
/** In use, idle and leaving: clients choose what they declare, and so how many kinds there are. */
const MAX_IN_ALL = 1_024
/** A declaration that is longer is kept no longer than its call. */
const MAX_KEPT_KEY = 4_096
const IDLE_MS = 60_000
/** Enough for the backend to hear that a call was cancelled, before its session ends. */
const FAREWELL_MS = 2_000

/** Sessions by backend and declared capabilities, kept for the next call of the same kind. */
export class ExclusiveClients {
  readonly #clock: Clock
  readonly #idle = new Map<string, Pooled[]>()
  readonly #counts = new Map<string, number>()
  /** All idle ones, the longest idle first. */
  readonly #waiting = new Set<Pooled>()
  readonly #leaving = new Set<Pooled>()
  /** Idle, leaving and in use. */
  readonly #all = new Set<Pooled>()
  #isClosed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Undefined when too many calls have one already. */
  take(member: Member, capabilities: JsonObject, principal: string): ExclusiveClient | undefined {
    const scope = outgoingScope.getStore()
    const own = scope && requestClass(scope, member.isPerCaller)
    const key = JSON.stringify([member.name, member.id, principal, own, canonical(capabilities)])
    const waiting = this.#idle.get(key)?.pop()
    if (waiting !== undefined) {
      this.#waiting.delete(waiting)
      waiting.timer?.cancel()
      return waiting
    }
    const count = this.#counts.get(key) ?? 0
    if (count >= MAX_PER_KEY || !this.#hasRoom()) return undefined
    this.#counts.set(key, count + 1)
    const pooled: Pooled = {
      key,
      ask: undefined,
      timer: undefined,
      client: member.open({ capabilities, handlers: handlersOf(() => pooled.ask) }),
    }
    this.#all.add(pooled)
    return pooled
  }

  giveBack(used: ExclusiveClient): void {
    const pooled = used as Pooled
    pooled.ask = undefined
    if (this.#isClosed) return
    if (pooled.key.length > MAX_KEPT_KEY) {
      this.#drop(pooled)
      return
    }
    const idle = this.#idle.get(pooled.key) ?? []
    this.#idle.set(pooled.key, idle)
    idle.push(pooled)
    this.#waiting.add(pooled)
    pooled.timer = this.#clock.setTimer(IDLE_MS, () => this.#drop(pooled))
  }

  /** Ends its session: the call was given up, and the backend may still be at it. */
  discard(used: ExclusiveClient): void {
    const pooled = used as Pooled
    pooled.ask = undefined
    if (this.#isClosed) return
    this.#leaving.add(pooled)
    pooled.timer = this.#clock.setTimer(FAREWELL_MS, () => this.#drop(pooled))
  }

  /** Ends the sessions of calls that are under way too. */
  async close(): Promise<void> {
    const all = [...this.#all]
    this.#isClosed = true
    this.#all.clear()
    this.#leaving.clear()
    this.#waiting.clear()
    this.#idle.clear()
    for (const { timer } of all) timer?.cancel()
    await Promise.all(all.map(({ client }) => client.close()))
  }

  /** Makes room, where there is none, by ending what no call uses. */
  #hasRoom(): boolean {
    if (this.#all.size < MAX_IN_ALL) return true
    const [unused] = this.#waiting.size > 0 ? this.#waiting : this.#leaving
    if (unused !== undefined) this.#drop(unused)
    return unused !== undefined
  }

  #drop(pooled: Pooled): void {
    pooled.timer?.cancel()
    pooled.ask = undefined
    this.#leaving.delete(pooled)
    this.#waiting.delete(pooled)
    const idle = this.#idle.get(pooled.key)?.filter((each) => each !== pooled) ?? []
    if (idle.length > 0) this.#idle.set(pooled.key, idle)
    else this.#idle.delete(pooled.key)
    this.#all.delete(pooled)
    const left = (this.#counts.get(pooled.key) ?? 1) - 1
    if (left > 0) this.#counts.set(pooled.key, left)
    else this.#counts.delete(pooled.key)
    void pooled.client.close()
  }
}

/** The call decides what its client may be asked. */
function handlersOf(current: () => Ask | undefined): ClientHandlers {
  const handler =
    (method: string): ClientHandler =>
    (params, { signal }) => {
      const ask = current()
      return ask === undefined ? Promise.reject(new Error('no call is under way')) : ask({ method, params }, signal)
    }
  return { sampling: handler(METHODS.createMessage), elicitation: handler(METHODS.elicit), roots: handler(METHODS.rootsList) }
}

/** The same text for the same capabilities, whatever the order of their members. */
function canonical(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.entries(value)
    .map(([key, member]) => [key, canonical(member)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
}
