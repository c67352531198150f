import { createHash } from 'node:crypto'
import type { ResolvedBackend } from '../discover/resolved-backend.ts'
import { isPerCaller } from './backend-credentials.ts'
import { Member, type MemberDeps } from './member.ts'
import type { HealthSettings } from './member-health.ts'

/** Backends that came and went. One whose connection changed is in both. */
export interface RosterChange {
  readonly joined: readonly Member[]
  readonly left: readonly Member[]
  /** Backends that stayed, with other credentials. */
  readonly renewed: readonly Member[]
  /**
   * From those that left to those that took their place, where both are asked with the same rights: a caller who saw the lists of one may see those
   * of the other.
   */
  readonly successors: ReadonlyMap<Member, Member>
}

type Listener = (change: RosterChange) => void

/** The backends of the virtual server as they are now. Those that did not change keep their connections, sessions and lists. */
export class MemberRoster {
  readonly #deps: Omit<MemberDeps, 'health' | 'onRenewed'>
  readonly #listeners = new Set<Listener>()
  readonly #leaving = new Set<Promise<void>>()
  readonly #prints = new Map<Member, Prints>()
  #members: ReadonlyMap<string, Member> = new Map()
  #isPerCaller = false

  constructor(deps: Omit<MemberDeps, 'health' | 'onRenewed'>) {
    this.#deps = deps
  }

  /** Sorted by name. */
  get all(): readonly Member[] {
    return [...this.#members.values()]
  }

  get size(): number {
    return this.#members.size
  }

  /** The credentials of some backend are made from the caller's token. */
  get isPerCaller(): boolean {
    return this.#isPerCaller
  }

  get(name: string): Member | undefined {
    return this.#members.get(name)
  }

  /** Replaces all backends. Those that leave finish the calls that they have. */
  apply(backends: readonly ResolvedBackend[], health: HealthSettings): RosterChange {
    const next = new Map<string, Member>()
    const joined: Member[] = []
    const renewed: Member[] = []
    const successors = new Map<Member, Member>()
    for (const backend of backends.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const prints = printsOf(backend, health)
      const known = this.#members.get(backend.name)
      const before = known && this.#prints.get(known)
      const isSame = known !== undefined && before?.connection === prints.connection
      const member = isSame ? known : new Member(backend, { ...this.#deps, health, onRenewed: (renewed) => this.#renewed(renewed) })
      next.set(backend.name, member)
      const isOtherAuth = before?.auth !== prints.auth
      if (isSame) member.adopt(backend, { isOtherAuth })
      else joined.push(member)
      if (isSame && isOtherAuth) renewed.push(member)
      if (!isSame && known !== undefined && !isOtherAuth && before?.trust === prints.trust) successors.set(known, member)
      this.#prints.set(member, prints)
    }
    const left = this.all.filter((member) => next.get(member.name) !== member)
    this.#members = next
    this.#isPerCaller = [...next.values()].some((member) => member.isPerCaller)
    const change = { joined, left, renewed, successors }
    if (joined.length + left.length + renewed.length > 0) this.#tell(change)
    for (const member of left) this.#leave(member)
    return change
  }

  onChange(listener: Listener): void {
    this.#listeners.add(listener)
  }

  async close(): Promise<void> {
    this.#listeners.clear()
    await Promise.all([...this.#prints.keys()].map((member) => member.close()))
    await Promise.all(this.#leaving)
  }

  #renewed(member: Member): void {
    if (this.get(member.name) === member) this.#tell({ joined: [], left: [], renewed: [member], successors: new Map() })
  }

  #tell(change: RosterChange): void {
    for (const listener of this.#listeners) listener(change)
  }

  #leave(member: Member): void {
    const left = member.leave().finally(() => {
      this.#prints.delete(member)
      this.#leaving.delete(left)
    })
    this.#leaving.add(left)
  }
}

/** Digests, because there are secrets in them. */
interface Prints {
  /** The same for backends that can share connections and sessions. */
  readonly connection: string
  readonly auth: string
  readonly trust: string | undefined
}

function printsOf(
  { timeoutMs: _, ca, headers, auth, authType, authConfigRef, ...backend }: ResolvedBackend,
  health: HealthSettings,
): Prints {
  return {
    connection: digest([backend, ca?.id, health, isPerCaller({ auth })]),
    auth: digest([headers, auth, authType, authConfigRef]),
    trust: ca?.id,
  }
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url')
}
