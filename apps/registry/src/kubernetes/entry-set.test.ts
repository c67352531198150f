import fc from 'fast-check'
import { expect, it } from 'vitest'
import { EntrySet } from './entry-set.ts'

const entryOf = (name: number, text: number) => ({ name: `x/${name}`, version: '1.0.0', text: `{"n":${text}}`, tags: [] })

it('has one digest for one set of entries, however it came about, and another for every other', () => {
  const changes = fc.array(fc.tuple(fc.nat(30), fc.option(fc.nat(3))), { maxLength: 60 })
  fc.assert(
    fc.property(changes, changes, (first, second) => {
      const made = [first, second].map((steps) => {
        const set = new EntrySet()
        const now = new Map<number, ReturnType<typeof entryOf>>()
        for (const [i, [name, text]] of steps.entries()) {
          const old = now.get(name)
          now.delete(name)
          if (text !== null) now.set(name, entryOf(name, text))
          const entry = now.get(name)
          set.apply({
            entries: entry === undefined ? [] : [entry],
            gone: entry === undefined && old !== undefined ? [old] : [],
            replaced: entry !== undefined && old !== undefined ? [old] : [],
          })
          if (i % 5 === 0) set.digest()
        }
        const fresh = new EntrySet()
        for (const entry of [...now.values()].reverse()) fresh.add(entryOf(Number(entry.name.slice(2)), JSON.parse(entry.text).n))
        expect([set.digest(), set.size]).toEqual([fresh.digest(), now.size])
        return { digest: set.digest(), content: JSON.stringify([...now].sort(([a], [b]) => a - b)) }
      })
      expect(made[0]?.digest === made[1]?.digest).toBe(made[0]?.content === made[1]?.content)
    }),
  )
})
