/** Facts about a session that decide which one is dropped when there is no room. */
export interface Held {
  readonly party: string
  usedAt: number
  /** Belong to the list of the party: the sessions that were used before and after this one. */
  earlier: Held | undefined
  later: Held | undefined
}

/** The sessions of one party in the order of last use. A Set would take new tables all the time, as every request moves one to its end. */
interface Party<E> {
  size: number
  first: E | undefined
  last: E | undefined
}

/** Sessions by the party that holds them, each party's in the order of last use. */
export class Holders<E extends Held> {
  readonly #byParty = new Map<string, Party<E>>()

  add(entry: E): void {
    let party = this.#byParty.get(entry.party)
    if (party === undefined) {
      party = { size: 0, first: undefined, last: undefined }
      this.#byParty.set(entry.party, party)
    }
    append(party, entry)
  }

  used(entry: E): void {
    const party = this.#byParty.get(entry.party)
    if (party === undefined || party.last === entry || !isIn(party, entry)) return
    unlink(party, entry)
    append(party, entry)
  }

  /** Does nothing when it is not there. */
  delete(entry: E): void {
    const party = this.#byParty.get(entry.party)
    if (party === undefined || !isIn(party, entry)) return
    unlink(party, entry)
    if (party.size === 0) this.#byParty.delete(entry.party)
  }

  clear(): void {
    this.#byParty.clear()
  }

  /** The longest idle session of the party that holds the most and can spare it; of parties that hold as many, of any of them. */
  victim(isBusy: (entry: E) => boolean): E | undefined {
    let most = 0
    for (const { size } of this.#byParty.values()) if (size > most) most = size
    let victim: E | undefined
    for (const party of this.#byParty.values()) {
      if (party.size < most) continue
      const idle = firstIdle(party, isBusy)
      if (idle !== undefined && (victim === undefined || idle.usedAt < victim.usedAt)) victim = idle
    }
    return victim
  }
}

function isIn<E extends Held>(party: Party<E>, entry: E): boolean {
  return entry.earlier !== undefined || party.first === entry
}

function append<E extends Held>(party: Party<E>, entry: E): void {
  entry.earlier = party.last
  entry.later = undefined
  if (party.last === undefined) party.first = entry
  else party.last.later = entry
  party.last = entry
  party.size++
}

function unlink<E extends Held>(party: Party<E>, entry: E): void {
  const { earlier, later } = entry as { earlier: E | undefined; later: E | undefined }
  if (earlier === undefined) party.first = later
  else earlier.later = later
  if (later === undefined) party.last = earlier
  else later.earlier = earlier
  entry.earlier = entry.later = undefined
  party.size--
}

function firstIdle<E extends Held>({ first }: Party<E>, isBusy: (entry: E) => boolean): E | undefined {
  for (let entry = first; entry !== undefined; entry = entry.later as E | undefined) if (!isBusy(entry)) return entry
  return undefined
}
