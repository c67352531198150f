import type { ParsedNotification, ParsedResponse } from '@thv/mcp/parse-body'
import type { Rejection } from '@thv/mcp/wire-errors'

/** The waiting side of a call. Exactly one of `onResponse` and `onFailure` is called, once, unless the call is abandoned first. */
export interface CallSink {
  /** Its id is still the one on the wire. */
  onResponse(response: ParsedResponse): void
  onFailure(rejection: Rejection): void
  /** Its token is still the one on the wire. */
  onProgress?(notification: ParsedNotification): void
  /** Once, when the call has taken long enough for somebody to wonder. */
  onSlow?(): void
  /** True while silence is no sign of a dead server, such as while a person is being asked. */
  mayIdle?(): boolean
}

export interface CallOptions {
  /** For attribution: the session, or undefined for calls of the runner itself. */
  readonly owner?: object
  /** The party behind the owner: once the call is answered, it still counts against others for some time. Absent: it does not. */
  readonly party?: string | undefined
  /** Undefined: never, as for a subscription. */
  readonly idleMs?: number | undefined
  readonly hardMs?: number | undefined
  readonly slowMs?: number | undefined
}

export interface InFlightCall extends CallOptions {
  readonly wireId: string
  readonly sink: CallSink
  readonly startedAt: number
  activeAt: number
  isSlow: boolean
  /** Set once no client waits. The entry stays, because the server may still be at work for its owner. */
  ghostUntil: number | undefined
  /** Resolves when the line is in the pipe. */
  written: Promise<void>
}

/**
 * The calls that one process has not answered yet, by the id that this runner gave them on the wire. It also knows whose they are:
 * that is all there is to tell for whom a message without an id is meant.
 */
export class InFlight {
  readonly #calls = new Map<string, InFlightCall>()
  readonly #owners = new Map<object, number>()
  #ghosts = 0

  /** Calls somebody waits for. */
  get size(): number {
    return this.#calls.size - this.#ghosts
  }

  /** Ghosts count: what the server says on behalf of a cancelled call must not go to somebody else. */
  get owners(): ReadonlyMap<object, number> {
    return this.#owners
  }

  get isEmpty(): boolean {
    return this.#calls.size === 0
  }

  get(wireId: string): InFlightCall | undefined {
    return this.#calls.get(wireId)
  }

  add(call: InFlightCall): void {
    this.#calls.set(call.wireId, call)
    if (call.owner !== undefined) this.#owners.set(call.owner, (this.#owners.get(call.owner) ?? 0) + 1)
  }

  /** Answered, or as good as. */
  remove(call: InFlightCall): void {
    if (!this.#calls.delete(call.wireId)) return
    if (call.ghostUntil !== undefined) this.#ghosts--
    if (call.owner === undefined) return
    const left = (this.#owners.get(call.owner) ?? 0) - 1
    if (left > 0) this.#owners.set(call.owner, left)
    else this.#owners.delete(call.owner)
  }

  abandon(call: InFlightCall, until: number): void {
    if (call.ghostUntil !== undefined || !this.#calls.has(call.wireId)) return
    call.ghostUntil = until
    this.#ghosts++
  }

  /** Everything somebody waits for; the table is empty afterwards. */
  takeAll(): InFlightCall[] {
    const open = [...this.#calls.values()].filter(({ ghostUntil }) => ghostUntil === undefined)
    this.#calls.clear()
    this.#owners.clear()
    this.#ghosts = 0
    return open
  }

  /** The calls whose time is up. Ghosts that have waited long enough are gone afterwards. */
  sweep(now: number): InFlightCall[] {
    const late: InFlightCall[] = []
    for (const call of this.#calls.values()) {
      if (call.ghostUntil !== undefined) {
        if (now >= call.ghostUntil) this.remove(call)
      } else if (isLate(call, now)) late.push(call)
    }
    return late
  }
}

function isLate(call: InFlightCall, now: number): boolean {
  if (call.slowMs !== undefined && !call.isSlow && now - call.startedAt >= call.slowMs) {
    call.isSlow = true
    call.sink.onSlow?.()
  }
  if (call.hardMs !== undefined && now - call.startedAt >= call.hardMs) return true
  if (call.idleMs === undefined || now - call.activeAt < call.idleMs) return false
  if (call.sink.mayIdle?.() !== true) return true
  call.activeAt = now
  return false
}
