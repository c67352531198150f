import { ThvError } from '@thv/kernel/errors'
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

/** A reader over ConfigMaps of that text, and how many of each page it has asked for. `wireBytes`: of one in a response. */
function readerOf(count: number, { content = text, wireBytes = 1_000_000 } = {}) {
  const selected = Array.from({ length: count }, (_, index): ConfigMap => {
    const metadata = { name: `map-${String(index).padStart(3, '0')}`, namespace: 'team', uid: `uid-${index}`, resourceVersion: '1' }
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata }
  })
  const pages: number[] = []
  const client = {
    async list(_type: unknown, { limit, continue: start = '0' }: { limit: number; continue?: string }) {
      const end = Number(start) + limit
      const items = selected.slice(Number(start), end).map((map) => ({ ...map, data: { 'registry.json': content } }))
      if (items.length * wireBytes > 128 << 20) throw new ThvError('kube_response_too_large', 'list configmaps: the response is too large')
      pages.push(items.length)
      return { items, metadata: end < count ? { continue: String(end) } : {} }
    },
  }
  const reader = new ContributionReader(client as unknown as KubeClient)
  return { reader, selected, pages, asked: () => pages.reduce((sum, items) => sum + items, 0) }
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

  it('asks for many small ConfigMaps at once', async () => {
    const content = JSON.stringify({ servers: { fetch: { image: 'example.com/a:1', description: 'x'.repeat(10_000) } } })
    const { reader, selected, pages } = readerOf(500, { content, wireBytes: content.length })
    const maps = await reader.read(selected, entry, { signal, budget: { left: SELECTION_BYTES } })
    expect(maps.every(({ reading }) => reading.ok)).toBe(true)
    expect(pages).toEqual([50, 450])
  })

  it('asks for fewer ConfigMaps where a page is larger than the client takes', async () => {
    const content = `${JSON.stringify({ servers: { fetch: { image: 'example.com/a:1' } } })}${' '.repeat(600_000)}`
    const { reader, selected, pages } = readerOf(50, { content, wireBytes: 6 * 600_000 })
    const maps = await reader.read(selected, entry, { signal, budget: { left: SELECTION_BYTES } })
    expect(maps.every(({ reading }) => reading.ok)).toBe(true)
    expect(pages).toEqual([10, 10, 10, 10, 10])
  })
})
