interface Owned {
  readonly party: string
}

interface Party<K> {
  weight: number
  readonly spare: (readonly [K, number])[]
  next: number
}

export interface FairOrderOptions<K, E> {
  /** How much room one takes; all take the same unless given. */
  weightOf?(entry: E): number
  /** Whether it can make room; all can unless given. */
  canSpare?(entry: E, key: K): boolean
}

/**
 * Keys in the order in which they make room: each time the party that holds the most gives the one that stands first. Parties that hold as much
 * give in the order of their first ones. Nothing may be added or removed meanwhile but the keys that it gives. Pure.
 */
export function* fairOrder<K, E extends Owned>(
  entries: Iterable<readonly [K, E]>,
  { weightOf = () => 1, canSpare = () => true }: FairOrderOptions<K, E> = {},
): Generator<K> {
  const parties = new Map<string, Party<K>>()
  for (const [key, entry] of entries) {
    const party = parties.get(entry.party) ?? { weight: 0, spare: [], next: 0 }
    parties.set(entry.party, party)
    const weight = weightOf(entry)
    party.weight += weight
    if (canSpare(entry, key)) party.spare.push([key, weight])
  }
  for (;;) {
    let most: Party<K> | undefined
    for (const party of parties.values())
      if (party.next < party.spare.length && (most === undefined || party.weight > most.weight)) most = party
    const given = most?.spare[most.next]
    if (most === undefined || given === undefined) return
    most.next++
    most.weight -= given[1]
    yield given[0]
  }
}
