/** Facts about a session that decide which one is dropped when there is no room. */
export interface Held {
  readonly party: string
  usedAt: number
}

/** Sessions by the party that holds them, each party's in the order of last use. */
export class Holders<E extends Held> {
  readonly #byParty = new Map<string, Set<E>>()

  add(entry: E): void {
    const held = this.#byParty.get(entry.party)
    if (held === undefined) this.#byParty.set(entry.party, new Set([entry]))
    else held.add(entry)
  }

  used(entry: E): void {
    const held = this.#byParty.get(entry.party)
    if (held?.delete(entry)) held.add(entry)
  }

  delete(entry: E): void {
    const held = this.#byParty.get(entry.party)
    if (held?.delete(entry) && held.size === 0) this.#byParty.delete(entry.party)
  }

  clear(): void {
    this.#byParty.clear()
  }

  /** The longest idle session of the party that holds the most and can spare it; of parties that hold as many, of any of them. */
  victim(isBusy: (entry: E) => boolean): E | undefined {
    let most = 0
    for (const { size } of this.#byParty.values()) if (size > most) most = size
    let victim: E | undefined
    for (const held of this.#byParty.values()) {
      if (held.size < most) continue
      const idle = firstIdle(held, isBusy)
      if (idle !== undefined && (victim === undefined || idle.usedAt < victim.usedAt)) victim = idle
    }
    return victim
  }
}

function firstIdle<E>(held: ReadonlySet<E>, isBusy: (entry: E) => boolean): E | undefined {
  for (const entry of held) if (!isBusy(entry)) return entry
  return undefined
}
