import { readDocument } from '@thv/catalog/merge/read-document'
import type { CanonicalRegistryEntry } from '@thv/resources/kinds/mcp-registry/normalise'
import { describe, expect, it } from 'vitest'
import { aggregateEntry } from './aggregate-entry.ts'
import type { ReadMap } from './contribution-reader.ts'
import { EntryMerges } from './entry-merges.ts'

const ENTRY = { name: 'teams', format: 'toolhive' } as const
const map = (name: string, servers: object, annotations: Record<string, string> = {}): ReadMap => ({
  name,
  annotations,
  reading: readDocument(JSON.stringify({ servers }), 'toolhive'),
})

describe('EntryMerges', () => {
  it('merges nothing again while nothing changed, and sees every change', () => {
    const merges = new EntryMerges()
    const [a, b] = [map('a', { x: { image: '1' } }), map('b', { x: { image: '2' } })]
    const first = merges.aggregate('ns/r', ENTRY, [a])
    expect(merges.aggregate('ns/r', ENTRY, [{ ...a, annotations: { other: 'word' } }])).toBe(first)
    const byPriority = { ...ENTRY, configMapSelector: { key: 'k', conflictStrategy: 'priority' } } as const
    const preferred = { ...b, annotations: { 'toolhive.stacklok.dev/registry-priority': '1' } }
    const steps: [CanonicalRegistryEntry, ReadMap[]][] = [
      [ENTRY, [a, b]],
      [ENTRY, [map('a', { y: { image: '1' } })]],
      [byPriority, [a, b]],
      [byPriority, [a, preferred]],
      [{ ...ENTRY, filter: { names: { include: ['z'] } } }, [a]],
      [ENTRY, []],
    ]
    for (const [entry, maps] of steps) expect(merges.aggregate('ns/r', entry, maps)).toEqual(aggregateEntry(entry, maps))
  })

  it('keeps a bounded amount of text, and nothing of a registry that is gone', () => {
    const long = (name: string) => map(name, { [name]: { image: 'x', description: 'y'.repeat(1_000) } })
    const merges = new EntryMerges({ maxBytes: 5_000 })
    const [a, b, c] = ['a', 'b', 'c'].map((name) => [long(name)])
    const first = merges.aggregate('ns/a', ENTRY, a ?? [])
    expect(merges.aggregate('ns/a', ENTRY, a ?? [])).toBe(first)
    merges.aggregate('ns/b', ENTRY, b ?? [])
    merges.aggregate('ns/c', ENTRY, c ?? [])
    const again = merges.aggregate('ns/a', ENTRY, a ?? [])
    expect(again).not.toBe(first)
    merges.forget('ns/a')
    expect(merges.aggregate('ns/a', ENTRY, a ?? [])).not.toBe(again)
  })

  it.each([
    ['names in conflict', {}, ['x', 'x']],
    ['a filter that leaves nothing', { filter: { names: { include: ['nothing'] } } }, ['x', 'y']],
    ['a refused result', { configMapSelector: { key: 'k', conflictStrategy: 'error' } as const }, ['x', 'x']],
  ])('counts what was read also with %s', (_, more, [first = '', second = '']) => {
    const entry: CanonicalRegistryEntry = { ...ENTRY, ...more }
    const maps = (name: string) =>
      [first, second].map((server, index) => map(`${name}-${index}`, { [server]: { image: 'x', description: 'y'.repeat(1_000) } }))
    const merges = new EntryMerges({ maxBytes: 8_000 })
    const [one, ...others] = ['a', 'b', 'c'].map(maps)
    const kept = merges.aggregate('ns/a', entry, one ?? [])
    expect(merges.aggregate('ns/a', entry, one ?? [])).toBe(kept)
    for (const [index, other] of others.entries()) merges.aggregate(`ns/other-${index}`, entry, other)
    expect(merges.aggregate('ns/a', entry, one ?? [])).not.toBe(kept)
  })

  it('forgets names of entries that are gone, also of those that select nothing', () => {
    const merges = new EntryMerges({ maxBytes: 10_000 })
    const first = merges.aggregate('ns/a', ENTRY, [])
    for (let index = 0; index < 20; index++) merges.aggregate('ns/a', { ...ENTRY, name: `renamed-${index}` }, [])
    expect(merges.aggregate('ns/a', ENTRY, [])).not.toBe(first)
  })
})
