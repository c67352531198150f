import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Held, Holders } from './holders.ts'

interface Entry extends Held {
  readonly n: number
}

it('gives up the longest idle session of the party that holds the most, whatever was used and deleted before', () => {
  const step = fc.tuple(fc.constantFrom('add' as const, 'use' as const, 'delete' as const), fc.nat({ max: 11 }))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), fc.nat({ max: 3 }), (steps, busy) => {
      const entries = Array.from(
        { length: 12 },
        (_, n): Entry => ({ n, party: `p${n % 3}`, usedAt: 0, earlier: undefined, later: undefined }),
      )
      const holders = new Holders<Entry>()
      const order: Entry[] = [] // the one used longest ago first
      for (const [at, [what, n]] of steps.entries()) {
        const entry = entries[n] as Entry
        const isIn = order.includes(entry)
        if (isIn && what !== 'add') order.splice(order.indexOf(entry), 1)
        if (what === 'add' && !isIn) holders.add(entry)
        else if (what === 'use') holders.used(entry)
        else if (what === 'delete') holders.delete(entry)
        if (what === 'add' ? !isIn : what === 'use' && isIn) {
          entry.usedAt = at
          order.push(entry)
        }
      }
      const isBusy = ({ n }: Entry) => n % 4 === busy
      const sizes = Map.groupBy(order, ({ party }) => party)
      const most = Math.max(0, ...[...sizes.values()].map(({ length }) => length))
      const expected = order.find((entry) => sizes.get(entry.party)?.length === most && !isBusy(entry))
      expect(holders.victim(isBusy)?.n).toBe(expected?.n)
    }),
  )
})
