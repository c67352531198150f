import type { ConfigMap, KubeClient } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { ContributionReader, SELECTION_BYTES } from './contribution-reader.ts'

const entry = {
  name: 'teams',
  format: 'toolhive',
  configMapSelector: { matchLabels: { team: 'a' }, key: 'registry.json', conflictStrategy: 'prefix' },
} as const
const { signal } = new AbortController()
const text = JSON.stringify({ servers: { fetch: { image: 'example.com/a:1', description: 'x'.repeat(1_000_000) } } })

/** A reader over ConfigMaps of a megabyte, and how many of them it has asked for. */
function readerOf(count: number) {
  const selected = Array.from({ length: count }, (_, index): ConfigMap => {
    const metadata = { name: `map-${String(index).padStart(3, '0')}`, namespace: 'team', uid: `uid-${index}`, resourceVersion: '1' }
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata }
  })
  let asked = 0
  const client = {
    async *listPages(_type: unknown, { limit }: { limit: number }) {
      for (let start = 0; start < selected.length; start += limit) {
        const items = selected.slice(start, start + limit).map((map) => ({ ...map, data: { 'registry.json': text } }))
        asked += items.length
        yield { items }
      }
    },
  }
  const reader = new ContributionReader(client as unknown as KubeClient)
  return { reader, selected, asked: () => asked }
}

describe('ContributionReader', () => {
  it('reads each version once', async () => {
    const { reader, selected, asked } = readerOf(20)
    for (const _ of [1, 2]) {
      const maps = await reader.read(selected, entry, { signal, budget: { left: SELECTION_BYTES } })
      expect(maps.map(({ name, reading }) => [name, reading.ok])).toEqual(selected.map(({ metadata }) => [metadata.name, true]))
    }
    expect(asked()).toBe(20)
  })

  it('stops reading beyond the budget, and takes no part for the whole', async () => {
    const { reader, selected, asked } = readerOf(400)
    for (const _ of [1, 2]) {
      const maps = await reader.read(selected, entry, { signal, budget: { left: SELECTION_BYTES } })
      expect(maps).toHaveLength(400)
      expect(maps.every(({ reading }) => !reading.ok && reading.problem.includes('32 MiB'))).toBe(true)
    }
    expect(asked()).toBeLessThan(60)
  })

  it('counts the entries of one registry together', async () => {
    const { reader, selected } = readerOf(20)
    const budget = { left: SELECTION_BYTES }
    const first = await reader.read(selected, entry, { signal, budget })
    const second = await reader.read(selected, entry, { signal, budget })
    expect(first.every(({ reading }) => reading.ok)).toBe(true)
    expect(second.some(({ reading }) => reading.ok)).toBe(false)
  })
})
